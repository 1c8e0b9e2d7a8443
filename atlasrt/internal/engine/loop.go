package engine

import (
	"cmp"
	"runtime"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
)

// loop is the engine: step after step, each in this order.
//
//	next     plans it
//	launch   sends its early inputs and queues its forward pass
//	deliver  hands out the tokens of steps that have landed
//	land     lands the step before: reads its tokens and books them
//	finish   writes its late inputs, which may depend on those tokens, behind the forward pass and queues sampling
//
// A step that needs no late inputs is queued whole by launch. Where the device does not overlap, each step lands as soon as it is
// queued, so there is none before.
func (e *Engine) loop() {
	runtime.LockOSThread()
	defer close(e.stopped)
	for e.step() {
	}
}

// flight is a step that was launched and whose results have not been read.
type flight struct {
	plan     *sched.Plan
	tasks    []*task // of its chunks
	err      error   // why it was not queued, or not whole
	waited   bool    // for masks
	recorded bool    // when it was launched
	trial    bool    // of another depth than the best
	launched time.Time
}

// step is one round of the loop; false when the engine closes. It waits until there is something to do.
func (e *Engine) step() bool {
	plan := e.next()
	if plan == nil {
		if e.takeoff == e.landed {
			return false
		}
		e.deliver()
		e.land()
		return true
	}
	e.launch(plan)
	e.deliver()
	var before error
	if e.takeoff-e.landed > 1 {
		before = e.land()
	}
	if err := e.finish(before); err != nil || e.runner.flights() == 1 {
		e.land()
	}
	return true
}

// next is the next plan; nil where a step in flight must land first, or when the engine closes. While there is nothing to
// do it waits.
func (e *Engine) next() *sched.Plan {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	for {
		e.applyCancels()
		if len(e.between) > 0 {
			if e.takeoff > e.landed {
				return nil
			}
			e.doBetween()
		}
		e.release()
		if plan := e.plan(); len(plan.Chunks) > 0 {
			e.beat.Store(int64(time.Since(e.started)))
			return plan
		}
		e.read = time.Time{}
		if e.takeoff > e.landed {
			return nil
		}
		if len(e.outbox) > 0 {
			e.mutex.Unlock()
			e.deliver()
			e.mutex.Lock()
			continue // what came meanwhile was announced to nobody
		}
		if e.quit {
			return nil
		}
		e.beat.Store(-1)
		e.changed.Wait()
	}
}

// launch begins a planned step.
func (e *Engine) launch(plan *sched.Plan) {
	f := &e.flights[e.takeoff%overlapping]
	f.plan, f.launched, f.waited, f.trial = plan, time.Now(), false, e.depth != nil && e.depth.begin()
	e.board(f)
	captures := e.runner.recorder.captures.Load()
	f.err = e.queue(f)
	f.recorded = e.runner.recorder.captures.Load() > captures
	e.takeoff++
	if !e.read.IsZero() && plan.Decode() && !f.recorded {
		e.counts.host.add(time.Since(e.read))
	}
}

// finish queues what launch left of a step. Where the step before it failed, before says why, and this one fails as well. After
// an error nothing may be launched until the step has landed.
func (e *Engine) finish(before error) error {
	f := &e.flights[(e.takeoff-1)%overlapping]
	f.err = cmp.Or(f.err, before)
	if f.err == nil {
		f.err = e.queueRest(f)
	}
	return f.err
}

// board finds the tasks of a flight's chunks. They stay its own: a tag may be given away before it lands.
func (e *Engine) board(f *flight) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	f.tasks = f.tasks[:0]
	for _, c := range f.plan.Chunks {
		t := e.tasks[c.Sequence.Tag]
		f.tasks = append(f.tasks, t)
		if t.launched.IsZero() {
			t.launched = f.launched
			e.counts.queue.add(t.launched.Sub(t.submitted))
		}
	}
}

func (e *Engine) queue(f *flight) (err error) {
	defer e.recovered(&err)
	return e.runner.launch(f.plan, f.tasks, e.takeoff)
}

func (e *Engine) queueRest(f *flight) (err error) {
	defer e.recovered(&err)
	e.settle(f)
	return e.runner.finish()
}

// land waits for the oldest step in flight, books what came of it and leaves its events in the outbox. It returns why the
// step failed, if it did.
func (e *Engine) land() error {
	f := &e.flights[e.landed%overlapping]
	var results sched.Results
	err := f.err
	if err == nil {
		results, err = e.collect(f)
	}
	e.landed++
	now := time.Now()
	took := min(now.Sub(f.launched), now.Sub(e.ended))
	e.counts.stepTime.add(took)
	e.ended = now
	if err == nil && f.plan.Decode() && !f.waited {
		e.pace = took
	}
	if err != nil {
		e.fail(err)
	} else if e.broken.Load() != nil {
		e.broken.Store(nil)
	}
	e.counts.step(f.plan, err)
	e.mutex.Lock()
	results.Err = err
	e.scheduler.Done(f.plan, results)
	e.mutex.Unlock()
	if err == nil {
		e.learn(f, results.Counts, took)
	}
	e.pack(f)
	return err
}

// collect waits for a step, and reads the logits that log-probabilities need before the next step overwrites them.
func (e *Engine) collect(f *flight) (results sched.Results, err error) {
	defer e.recovered(&err)
	results, err = e.runner.collect(f.plan, e.landed)
	e.read = time.Time{}
	if err == nil && f.plan.Decode() {
		e.read = time.Now()
	}
	if err == nil {
		err = e.readLogits(f)
	}
	return results, err
}
