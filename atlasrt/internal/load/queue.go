package load

import (
	"context"
	"sync"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// queue runs jobs in their order on one goroutine, while what comes next is prepared: copies and launches of a stream, which that
// goroutine owns. Tensors whose bytes were copied are released by another. When its context ends, jobs that have not begun are left out.
type queue struct {
	ctx      context.Context
	jobs     chan func() error
	releases chan []weights.Tensor
	running  sync.WaitGroup
	errs     []error // of jobs; read once all have run
}

// Jobs wait for others to end where so many are queued already, so that no more than that is held in memory; and so do those whose tensors
// are not released yet.
const (
	jobsAhead     = 1
	releasesAhead = 8
)

func newQueue(ctx context.Context, release func(weights.Tensor)) *queue {
	q := &queue{ctx: ctx, jobs: make(chan func() error, jobsAhead), releases: make(chan []weights.Tensor, releasesAhead)}
	q.running.Go(func() {
		defer close(q.releases)
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
		for tensors := range q.releases {
			for _, t := range tensors {
				release(t)
			}
		}
	})
	return q
}

// add queues a job.
func (q *queue) add(job func() error) { q.jobs <- job }

// release gives tensors back; a job calls it.
func (q *queue) release(tensors []weights.Tensor) { q.releases <- tensors }

// wait ends the queue when all jobs have run, and returns their errors. It may be called again.
func (q *queue) wait() []error {
	if q.jobs != nil {
		close(q.jobs)
		q.running.Wait()
		q.jobs = nil
	}
	return q.errs
}
