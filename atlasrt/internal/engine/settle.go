package engine

import (
	"slices"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
	"github.com/atlas-inference/atlas/atlasrt/model"
)

// How long a step waits for a mask before the draw is given up.
const (
	leastPatience = time.Millisecond      // at least
	lonePatience  = 20 * time.Millisecond // at least, where only a request to come or a cancel would wait as well
)

// guide has the guide of a task look for what may come behind its tokens.
func (e *Engine) guide(t *task) {
	t.guide.begin(&t.request, len(t.sequence.Generated()), t.started || !t.request.PromptLogProbs)
	e.workers.add(t.guide)
}

// settle sees to it that all draws of a step but those that are dropped have their masks. Tokens that must come are appended without a draw.
func (e *Engine) settle(f *flight) {
	e.await(f)
	e.mutex.Lock()
	defer e.mutex.Unlock()
	for i, t := range f.tasks {
		if !t.needsMask(&f.plan.Chunks[i]) {
			continue
		}
		switch g := t.guide; {
		case g.running:
			e.postpone(t)
		case g.err != nil:
			e.refuse(t, g.err)
		case len(g.forced) > 0:
			e.force(t)
		default:
			g.use()
		}
	}
}

// await waits for masks of a step, but not long: others wait for it as well. A mask that is late again is not waited for.
func (e *Engine) await(f *flight) {
	late := 0
	for i, t := range f.tasks {
		if t.needsMask(&f.plan.Chunks[i]) && !t.guide.poll() {
			late++
		}
	}
	if late == 0 {
		return
	}
	alone := late == len(f.tasks)                      // nothing else is in the step
	again := !e.runner.layout.Keeps(model.PerSequence) // rows can be computed again
	var expired <-chan time.Time
	for i, t := range f.tasks {
		g := t.guide
		switch {
		case !t.needsMask(&f.plan.Chunks[i]) || g.poll() || g.slow && again && !alone:
		case !again:
			f.waited = true
			g.wait(nil)
		default:
			if f.waited = true; expired == nil {
				e.timer.Reset(e.patience(alone))
				expired = e.timer.C
			}
			if !g.wait(expired) {
				expired = closed
			}
		}
	}
	e.timer.Stop()
}

// closed always receives.
var closed = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

// patience is how long a step waits for masks: as long as a step takes. Where the device works beside the host, its forward pass runs about as
// long, so that little is lost.
func (e *Engine) patience(alone bool) time.Duration {
	if alone {
		return max(e.pace, lonePatience)
	}
	return max(e.pace, leastPatience)
}

// postpone gives a draw up, for its mask is late. A later step draws the same token, from the same row.
func (e *Engine) postpone(t *task) {
	e.scheduler.Repeat(&t.sequence)
	if !t.sequence.Held { // it was, if it gave up what it held meanwhile and began anew
		e.held = append(e.held, t)
	}
	t.sequence.Held = true
	t.guide.postpone()
	e.workers.held.Store(int32(len(e.held)))
	e.counts.lateMasks.Add(1)
}

// release lets tasks go on whose masks were late and are there. The mutex is held.
func (e *Engine) release() {
	if len(e.held) == 0 {
		return
	}
	e.held = slices.DeleteFunc(e.held, func(t *task) bool {
		finish, _ := t.sequence.Finish()
		if finish == sched.Unfinished && !t.guide.poll() {
			return false
		}
		t.sequence.Held = false
		return true
	})
	e.workers.held.Store(int32(len(e.held)))
}

// force appends tokens that must come, in place of the draw.
func (e *Engine) force(t *task) {
	for i, token := range t.guide.forced {
		if t.rulesOut(token) {
			if i > 0 {
				break // the next look at the grammar comes to it first
			}
			e.refuse(t, t.nothing())
			return
		}
		if i == 0 {
			e.scheduler.Drop(&t.sequence)
		}
		finish := e.scheduler.Append(&t.sequence, token)
		e.packToken(parcel{task: t}, -1, finish, time.Now())
		e.counts.forced.Add(1)
		if finish != sched.Unfinished {
			return
		}
	}
	t.guide.drafts = t.guide.drafts[:0]
	e.guide(t)
}

// refuse ends a task, and no other.
func (e *Engine) refuse(t *task, err error) {
	e.scheduler.Fail(&t.sequence, err)
	e.counts.end(t, time.Now())
	e.outbox = append(e.outbox, parcel{task: t, event: Event{Token: -1, Finish: FinishError, Err: err}, last: true, send: true})
}

// nothing says that all tokens are ruled out which the grammar allows.
func (t *task) nothing() error {
	return &GrammarError{Tokens: len(t.sequence.Generated()),
		Reason: "no token is left that the grammar allows: biases or other limits of tokens rule all of them out (take some back), or the model's logits are not finite"}
}
