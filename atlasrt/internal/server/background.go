package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/responses"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/metrics"
	"github.com/atlas-inference/atlas/atlasrt/internal/store"
)

// errCancelled ends an answer that its owner cancelled.
var errCancelled = errors.New("the response was cancelled")

// jobs are the answers that are made while no connection waits for them. How many there are the engine's queue bounds.
type jobs struct {
	ctx  context.Context // of all of them
	stop context.CancelCauseFunc

	mutex   sync.Mutex
	running map[job]running
	group   sync.WaitGroup
	over    bool // no more are taken
}

// job names an answer.
type job struct {
	owner store.Owner
	id    string
}

// running is a job that goes on.
type running struct {
	stop  context.CancelCauseFunc
	ended chan struct{}
}

func newJobs() *jobs {
	j := &jobs{running: map[job]running{}}
	j.ctx, j.stop = context.WithCancelCause(context.Background())
	return j
}

// start runs a job in a goroutine of its own, which ends when work does; false: the server shuts down.
func (j *jobs) start(of job, stop context.CancelCauseFunc, work func()) bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.over {
		return false
	}
	r := running{stop, make(chan struct{})}
	j.running[of] = r
	j.group.Go(func() {
		defer func() {
			j.mutex.Lock()
			defer j.mutex.Unlock()
			delete(j.running, of)
			close(r.ended)
		}()
		work()
	})
	return true
}

// cancel tells a job to end, and gives what is closed once it has; nil: there is no such job.
func (j *jobs) cancel(of job) <-chan struct{} {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	r, ok := j.running[of]
	if !ok {
		return nil
	}
	r.stop(errCancelled)
	return r.ended
}

// end takes no more jobs, and waits for those that run.
func (j *jobs) end() {
	j.mutex.Lock()
	j.over = true
	j.mutex.Unlock()
	j.group.Wait()
	j.stop(errShutdown)
}

// detach answers with an answer that waits in the queue, and makes it while nobody waits.
func (s *Server) detach(c *gin.Context, x *exchange, k *keeper) {
	ctx, release := context.WithTimeoutCause(s.jobs.ctx, s.limits.RequestTime, errDeadline)
	ctx, stop := context.WithCancelCause(ctx)
	end := func() {
		stop(nil)
		release()
	}
	stream, err := s.start(ctx, x)
	if err != nil {
		end()
		s.end(c, err)
		return
	}
	e := entryOf(c)
	e.model, e.usage.Prompt = x.name, x.tokens()
	answer := k.Answer(x.request, api.Head{ID: newID(""), Created: time.Now().Unix(), Model: x.name})
	queued, later := k.answer.Shown(responses.StatusQueued), e.record.later(c, e)
	work := func() {
		defer end()
		defer stream.Close()
		s.work(ctx, x, k, answer, stream)
		s.config.Dump.answered(later, k.answer.Body())
	}
	if !s.jobs.start(job{k.owner, k.answer.ID()}, stop, work) {
		stream.Close()
		end()
		k.settle(false)
		s.end(c, errShutdown)
		return
	}
	s.write(c, 200, jsonType, queued)
}

// work makes an answer that nobody waits for.
func (s *Server) work(ctx context.Context, x *exchange, k *keeper, to api.Answer, from *completion.Stream) {
	clock := newClock(s.metrics, x)
	defer func() {
		if value := recover(); value != nil {
			s.log.Error("a response in the background panicked", "type", fmt.Sprintf("%T", value), "stack", string(debug.Stack()))
			s.metrics.Rejected(metrics.Panic)
			k.settle(true)
		}
	}()
	err := s.follow(ctx, from, func(events []chat.Event) error {
		if events[0].Kind == chat.EventStart {
			s.store.Update(k.owner, k.answer.ID(), k.answer.Shown(responses.StatusInProgress), time.Now())
		}
		clock.tick(events)
		to.Add(events)
		return nil
	}, func() error { return nil })
	usage := from.Usage()
	switch {
	case err == nil:
		s.metrics.Finished(time.Since(x.arrived), usage.Prompt, usage.Cached, usage.Output)
	case errors.Is(err, errCancelled):
		clock.abort()
		s.metrics.Cancelled(metrics.ClientGone)
		k.settle(false)
	default:
		clock.abort()
		e := problem(err, x.dialect)
		s.count(e)
		to.Fail(nil, e)
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "response in the background", append([]slog.Attr{slog.String("model", x.name), slog.Int("prompt", usage.Prompt),
		slog.Int("cached", usage.Cached), slog.Int("new", usage.Output), slog.Int64("ms", time.Since(x.arrived).Milliseconds()),
		slog.String("finish", reasons(clock.ended)), slog.Bool("done", err == nil)}, drafts(usage)...)...)
}
