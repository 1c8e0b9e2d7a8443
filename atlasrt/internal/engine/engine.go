// Package engine runs a model for many requests at once: it plans steps, keeps the cache, queues launches and hands out
// tokens. One goroutine, locked to its thread, owns the device's stream. Everything that crosses the engine's boundary is
// token ids and encodable values: text, templates and stop strings live in front of it. At temperature 0 a request's
// tokens do not depend on its neighbours, on chunking, on cache hits or on preemption.
//
// A step is one forward pass over a batch of rows, and the sampling behind it. A chunk is the rows that one sequence has in a
// step: a part of its prompt, or its last token. A draw is a token that is sampled from a row's logits. Drafts are guessed tokens
// that a chunk has as further rows: each has a draw as well, which counts where this draft and all before it were drawn. An
// early input of a step is sent before its forward pass, a late one is written while that runs, and read by sampling.
//
// Where the device works beside the host, a step is queued before the tokens of the last one are read: they stay on the
// device for it, and an end is noticed one step late, at the cost of a row that nobody gets. What sampling needs to know of
// those tokens, as penalties do, is a late input.
//
// A request may have a grammar. Other goroutines make the masks of the tokens that it allows while the forward pass runs.
// Where only one token may come it is appended without a draw. A mask that takes long delays its own request alone: the draw
// is put off, and its row computed again.
//
// Where to read:
//
//	loop.go                          the order of work
//	runner.go input.go fill.go       a step on the device, and the arrays that it reads
//	graph.go replay.go pieces.go     steps that are recorded and replayed
//	task.go outbox.go inbox.go       a request inside, and its tokens on their way out
//	settle.go guide.go workers.go    grammars
//	draft.go late.go depth.go        drafts, and how many pay off
//	config.go memory.go              what an engine is made of, and what fits
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/cache"
	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
)

// Engine serves requests with one model on one device. Its methods may be called from any goroutine.
type Engine struct {
	runner *runner
	log    *slog.Logger

	mutex     sync.Mutex // over everything down to tasks, and over scheduler and cache
	changed   *sync.Cond // something was submitted, cancelled, finished or closed
	cache     *cache.Cache
	scheduler *sched.Scheduler
	cancels   []*task
	between   []func() // to be done while no step is in flight
	draining  bool
	quit      bool
	tasks     []*task // by tag; nil where a tag is free
	tags      []int   // free ones

	stopped chan struct{} // closed when the loop has ended
	closed  sync.Once
	failure error // of Close

	// The loop's own.
	flights [overlapping]flight
	takeoff int // steps that were launched
	landed  int // steps whose results were read
	outbox  []parcel
	logits  []float32 // rows that log-probabilities are computed from, once the next step is queued
	ended   time.Time // when the step that landed last did
	read    time.Time // when the tokens of a decode step were read; zero otherwise
	started time.Time
	beat    atomic.Int64  // nanoseconds after started; negative while there is nothing to do
	pace    time.Duration // of the decode step that landed last and waited for nothing
	held    []*task       // no step computes them until their masks are made
	timer   *time.Timer   // of what is waited for
	workers *workers
	depth   *depth // of drafts; nil where it is fixed
	counts  counters
	broken  atomic.Pointer[error]
	lost    chan struct{} // closed when broken is set first
}

// New takes the memory that Config names and starts the engine's goroutine, which ends with Close.
func New(config Config) (*Engine, error) {
	e, err := build(config)
	if err != nil {
		return nil, err
	}
	go e.loop()
	return e, nil
}

// build makes an engine that does not run yet.
func build(config Config) (*Engine, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	r, err := newRunner(config)
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	e := &Engine{runner: r, log: config.Log, stopped: make(chan struct{}), lost: make(chan struct{}), started: time.Now(), timer: time.NewTimer(0)}
	e.cache = cache.New(config.cacheSizes(), !config.NoPrefixSharing)
	if config.CacheTokens > 0 {
		e.cache.LimitGrowth((config.CacheTokens + config.BlockSize - 1) / config.BlockSize)
	}
	e.scheduler = sched.New(config.limits(), e.cache)
	if config.Draws > 1 && !config.FixedDrafts {
		e.depth = newDepth(config.Draws - 1)
	}
	e.changed = sync.NewCond(&e.mutex)
	e.workers = newWorkers(e.wake, &e.counts)
	r.waiting = e.deliver
	return e, nil
}

// Submit queues requests, all or none, and returns the inbox of their events. When ctx ends the requests are cancelled, and
// leave with the next step. Whoever stops reading before all have ended must end ctx. Every request has a last event,
// whatever happens to the engine.
//
// Errors are *option.Error, *TooLong, *QueueFull, ErrDraining, or ctx's own.
func (e *Engine) Submit(ctx context.Context, requests ...Request) (*Inbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// Before prompts are copied, for a refusal must cost little.
	tokens := 0
	for i := range requests {
		r := &requests[i]
		if err := r.check(e.runner.layout.Vocab); err != nil {
			return nil, err
		}
		if limit := e.runner.config.MaxContext; r.MaxTokens > limit-len(r.Prompt) {
			return nil, &TooLong{Tokens: len(r.Prompt) + min(r.MaxTokens, 1<<30), Limit: limit}
		}
		tokens += len(r.Prompt)
	}
	if err := e.accepts(len(requests), tokens); err != nil {
		return nil, err
	}
	tasks, sequences := make([]*task, len(requests)), make([]*sched.Sequence, len(requests))
	inbox := NewInbox(len(requests), func(request int) { e.cancel(tasks[request]) })
	for i, r := range requests {
		t := newTask(r, e.runner.layout.Vocab, e.runner.config.Draws)
		t.inbox, t.number = inbox, i
		tasks[i], sequences[i] = t, &t.sequence
	}

	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.draining {
		return nil, ErrDraining
	}
	if err := e.scheduler.Add(sequences...); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { e.cancel(tasks...) })
	for _, t := range tasks {
		t.stop = stop
		e.tag(t)
		if t.guide != nil {
			e.guide(t)
		}
	}
	e.changed.Broadcast()
	return inbox, nil
}

// tag gives a task the number by which plans name it.
func (e *Engine) tag(t *task) {
	if n := len(e.tags); n > 0 {
		t.sequence.Tag, e.tags = e.tags[n-1], e.tags[:n-1]
	} else {
		t.sequence.Tag, e.tasks = len(e.tasks), append(e.tasks, nil)
	}
	e.tasks[t.sequence.Tag] = t
}

// accepts asks whether the queue has room for requests with so many prompt tokens, without entering it.
func (e *Engine) accepts(requests, tokens int) error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.draining {
		return ErrDraining
	}
	return e.scheduler.Room(requests, tokens)
}

func (e *Engine) cancel(tasks ...*task) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.cancels = append(e.cancels, tasks...)
	e.changed.Broadcast()
}

// Drain refuses new requests and ends those that have not begun, with ErrDraining. It returns when the others have ended, or
// with ctx's error when it ends first.
func (e *Engine) Drain(ctx context.Context) error {
	defer context.AfterFunc(ctx, e.wake)()
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.draining = true
	e.changed.Broadcast()
	for len(e.tags) < len(e.tasks) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("drain with %d requests left: %w", len(e.tasks)-len(e.tags), err)
		}
		e.changed.Wait()
	}
	return nil
}

// wake takes the lock, so that no waiter misses it between its check and its wait.
func (e *Engine) wake() {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.changed.Broadcast()
}

// Close cancels what runs, waits for the step in flight, ends the engine's goroutine and gives its memory back.
func (e *Engine) Close() error {
	e.closed.Do(func() {
		e.mutex.Lock()
		e.draining, e.quit = true, true
		e.changed.Broadcast()
		e.mutex.Unlock()
		<-e.stopped
		e.failure = e.runner.close()
	})
	return e.failure
}

// Between does something while no step is in flight, on the engine's goroutine, and forgets the steps that were recorded.
func (e *Engine) Between(do func() error) error {
	result := make(chan error, 1)
	e.mutex.Lock()
	e.between = append(e.between, func() {
		result <- errors.Join(append(e.runner.recorder.forget(), do())...)
	})
	e.changed.Broadcast()
	e.mutex.Unlock()
	select {
	case err := <-result:
		return err
	case <-e.stopped:
		return errors.New("the engine is closed")
	}
}

// doBetween does what waits for a pause between steps. The mutex is held, but not while it is done.
func (e *Engine) doBetween() {
	waiting := e.between
	e.between = nil
	e.mutex.Unlock()
	defer e.mutex.Lock()
	for _, do := range waiting {
		do()
	}
}

// applyCancels ends cancelled requests, those that wait when the engine drains, and all of them when it closes.
func (e *Engine) applyCancels() {
	if e.quit {
		for _, t := range e.tasks {
			if t != nil {
				e.cancels = append(e.cancels, t)
			}
		}
	}
	for _, t := range e.cancels {
		if finish, _ := t.sequence.Finish(); finish == sched.Unfinished {
			e.scheduler.Cancel(&t.sequence)
			e.counts.end(t, time.Now())
			e.outbox = append(e.outbox, parcel{task: t, event: Event{Token: -1, Finish: FinishCancelled}, last: true, send: true})
		}
	}
	clear(e.cancels)
	e.cancels = e.cancels[:0]
	if e.draining {
		e.turnAway()
	}
}

// turnAway ends requests that were in no step yet, while the engine drains: somebody else may take them.
func (e *Engine) turnAway() {
	for _, t := range e.tasks {
		if t == nil || !t.launched.IsZero() {
			continue
		}
		if finish, _ := t.sequence.Finish(); finish == sched.Unfinished {
			e.scheduler.Cancel(&t.sequence)
			e.outbox = append(e.outbox, parcel{task: t, event: Event{Token: -1, Finish: FinishError, Err: ErrDraining}, last: true, send: true})
		}
	}
}
