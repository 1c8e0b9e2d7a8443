package load

import (
	"context"
	"slices"
	"sync"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// queue runs jobs in their order on one goroutine, while what comes next is prepared: copies and launches of a stream, which that
// goroutine owns. Another gets the tensors whose bytes were copied. When its context ends, jobs that have not begun are left out.
type queue struct {
	ctx     context.Context
	jobs    chan func() error
	copied  chan []weights.Tensor
	running sync.WaitGroup
	errs    []error // of jobs; read once all have run
	faults  []error // of tensors that were copied; read once all have run
}

// Jobs wait for others to end where so many are queued already, so that no more than that is held in memory; and so do those whose tensors
// nobody has taken yet.
const (
	jobsAhead   = 1
	copiedAhead = 8
)

// newQueue makes a queue; done gets the tensors whose bytes were copied, and says what is wrong with them.
func newQueue(ctx context.Context, done func([]weights.Tensor) []error) *queue {
	q := &queue{ctx: ctx, jobs: make(chan func() error, jobsAhead), copied: make(chan []weights.Tensor, copiedAhead)}
	q.running.Go(func() {
		defer close(q.copied)
		for job := range q.jobs {
			if ctx.Err() != nil {
				continue
			}
			if err := job(); err != nil {
				q.errs = append(q.errs, err)
			}
		}
	})
	q.running.Go(func() {
		for tensors := range q.copied {
			q.faults = append(q.faults, done(tensors)...)
		}
	})
	return q
}

// add queues a job.
func (q *queue) add(job func() error) { q.jobs <- job }

// done hands tensors on whose bytes were copied; a job calls it.
func (q *queue) done(tensors []weights.Tensor) { q.copied <- tensors }

// wait ends the queue when all jobs have run, and returns their errors. It may be called again.
func (q *queue) wait() []error {
	if q.jobs != nil {
		close(q.jobs)
		q.running.Wait()
		q.jobs = nil
	}
	return slices.Concat(q.errs, q.faults)
}
