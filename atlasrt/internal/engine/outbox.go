package engine

import (
	"cmp"
	"errors"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
)

// parcel is an event that waits until the next step is queued: the device must not idle while consumers are served.
type parcel struct {
	task  *task
	event Event
	send  bool // the event goes out; otherwise only prompt tokens are scored
	last  bool // and the request ends

	logProb     bool // of the token is wanted
	drawn       int  // row of Engine.logits that it was drawn from
	scored      int  // first row of Engine.logits of prompt tokens
	scoredRows  int
	scoredStart int // position of the first
}

// readLogits copies the outputs of a step that the host needs, each to the row of Engine.logits that it has on the device.
func (e *Engine) readLogits(f *flight) error {
	drawn, other, wanted := 0, f.plan.Draws, false
	for i, c := range f.plan.Chunks {
		if f.tasks[i].wantsLogits(c) {
			if !wanted {
				wanted = true
				e.makeRoom(f.plan.Outputs)
			}
			vocab := int(e.runner.layout.Vocab)
			if c.Draws > 0 {
				e.runner.readLogits(e.logits[drawn*vocab:], drawn, c.Draws)
			}
			if n := scoredRows(c); n > 0 {
				e.runner.readLogits(e.logits[other*vocab:], other, n)
			}
		}
		drawn += c.Draws
		other += scoredRows(c)
	}
	if !wanted {
		return nil
	}
	return e.runner.stream.Sync()
}

func (e *Engine) makeRoom(rows int) {
	if n := rows * int(e.runner.layout.Vocab); len(e.logits) < n {
		e.logits = make([]float32, n)
	}
}

// pack puts what a step gave into the outbox: nothing for a sequence that had ended before.
func (e *Engine) pack(f *flight) {
	drawn, other, number := 0, f.plan.Draws, 0
	for i, c := range f.plan.Chunks {
		t := f.tasks[i]
		p := parcel{task: t, scored: other, scoredRows: scoredRows(c), scoredStart: c.Start}
		finish, err := c.Sequence.Finish()
		if c.Surplus || finish == sched.Failed {
			p.scoredRows = 0
		}
		if c.Counted > 0 {
			t.drafts.Computed += c.Drafts()
			t.drafts.Right += c.Counted - 1
		}
		for n := range c.Counted {
			p.drawn = drawn + n
			e.packToken(p, n-c.Counted, finish, e.ended)
			p.scoredRows = 0
		}
		if t.guide != nil && c.Counted > 0 && finish == sched.Unfinished {
			t.guide.drafts = e.runner.drafted(t.guide.drafts[:0], f.plan, number)
			e.guide(t)
		}
		number += min(c.Draws, 1)
		if finish == sched.Failed && !c.Surplus {
			if t.guide != nil && errors.Is(err, sched.ErrNoToken) {
				err = cmp.Or(t.guide.beyond, t.nothing())
			}
			p.event, p.send, p.last = Event{Token: -1, Finish: FinishError, Err: err}, true, true
			e.counts.end(t, e.ended)
		}
		if p.send || p.scoredRows > 0 {
			e.outbox = append(e.outbox, p)
		}
		drawn += c.Draws
		other += scoredRows(c)
	}
}

// packToken completes p for a token of a step, counted from behind all that were generated: -1 is the last one, which may end the sequence.
func (e *Engine) packToken(p parcel, at int, finish sched.Finish, now time.Time) {
	t := p.task
	if !t.started {
		t.first = now
		e.counts.prefill.add(now.Sub(t.launched))
		e.counts.firstToken.add(now.Sub(t.submitted))
	}
	if at < -1 || finish == sched.Failed {
		finish = sched.Unfinished
	}
	p.event = t.next(len(t.sequence.Generated())+at, finish)
	p.send, p.last, p.logProb = true, finish != sched.Unfinished, t.request.LogProbs >= 0
	e.counts.generated.Add(1)
	if p.last {
		e.counts.end(t, now)
	}
	e.outbox = append(e.outbox, p)
}

// next is the event of the token that was generated at a place, which the edits and the guide take into account.
func (t *task) next(at int, finish sched.Finish) Event {
	event := Event{Token: t.sequence.Generated()[at], Drafts: t.drafts}
	if !t.started {
		t.started = true
		event.Cached = t.sequence.Cached()
	}
	switch finish {
	case sched.Stop:
		event.Finish = FinishStop
	case sched.Length:
		event.Finish = FinishLength
	}
	t.edits.Append(event.Token)
	if t.guide != nil {
		t.guide.append(event.Token)
	}
	if at+1 == t.request.MinTokens {
		t.edits.LetGo()
	}
	t.sequence.Single = t.single()
	return event
}

// deliver sends everything in the outbox.
func (e *Engine) deliver() {
	ended := false
	for i := range e.outbox {
		p := &e.outbox[i]
		t := p.task
		e.score(p)
		if !p.send {
			continue
		}
		if p.logProb {
			l := sample.LogProbs(e.row(p.drawn), p.event.Token, t.request.LogProbs)
			p.event.LogProb = &l
		}
		if p.event.Token >= 0 {
			p.event.Prompt, t.scored = t.scored, nil
		}
		t.send(p.event)
		ended = ended || p.last
	}
	if ended {
		e.forget()
	}
	clear(e.outbox)
	e.outbox = e.outbox[:0]
}

// forget frees the tags of the tasks that ended.
func (e *Engine) forget() {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	for i := range e.outbox {
		if p := &e.outbox[i]; p.last {
			tag := p.task.sequence.Tag
			e.tasks[tag] = nil
			e.tags = append(e.tags, tag)
		}
	}
	e.changed.Broadcast()
}

// score adds the log-probabilities of the prompt tokens that follow a parcel's rows.
func (e *Engine) score(p *parcel) {
	t := p.task
	if p.scoredRows > 0 && p.scoredStart == 0 {
		t.scored = make([]sample.TokenLogProb, 0, t.sequence.Prompt()-1) // a preempted prompt starts over
	}
	for i := range p.scoredRows {
		following := t.sequence.Tokens[p.scoredStart+i+1]
		t.scored = append(t.scored, sample.LogProbs(e.row(p.scored+i), following, max(t.request.LogProbs, 0)))
	}
}

func (e *Engine) row(i int) []float32 {
	vocab := int(e.runner.layout.Vocab)
	return e.logits[i*vocab : (i+1)*vocab]
}
