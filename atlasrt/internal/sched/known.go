package sched

import "slices"

// A draw may turn out to be in vain while its step is in flight: its token is known without it, or nobody can say yet which tokens may be
// drawn. Drop and Repeat are called between two steps, with one in flight, which draws of the sequence.

// Drop forgets what the step in flight draws of a sequence, whose next token Append must bring.
func (s *Scheduler) Drop(q *Sequence) { s.drop(q) }

// Append gives a running sequence, of which nothing is being drawn, a token that is known, and tells whether that ends it. Tokens that come so
// are computed together, as those of a prompt.
func (s *Scheduler) Append(q *Sequence, token int32) Finish {
	if q.pending > 0 || q.finish != Unfinished {
		panic("BUG: a token is appended to a sequence that is drawn from, or has ended")
	}
	if finish := q.append(token); finish != Unfinished {
		s.end(q, finish, nil)
	}
	return q.finish
}

// Repeat drops a draw and lets a later step compute its row again, and draw. The sequence must have no state, for the row would go into it
// twice.
func (s *Scheduler) Repeat(q *Sequence) {
	s.drop(q).Again = true
	q.ahead--
}

// Fail ends a running sequence with an error. It does nothing to one that ended.
func (s *Scheduler) Fail(q *Sequence, err error) {
	if q.finish == Unfinished {
		s.end(q, Failed, err)
	}
}

func (s *Scheduler) drop(q *Sequence) *Chunk {
	if s.planned != s.done+1 {
		panic("BUG: a draw is dropped while not one step is in flight")
	}
	plan := &s.plans[s.done%2]
	i := slices.IndexFunc(plan.Chunks, func(c Chunk) bool { return c.Sequence == q && c.Draws > 0 && !c.Dropped })
	if i < 0 || q.finish != Unfinished {
		panic("BUG: a draw is dropped that no step makes")
	}
	c := &plan.Chunks[i]
	c.Dropped = true
	q.pending--
	q.slack -= c.Drafts()
	q.accepted, q.drew = 0, 0 // no draft of the chunk counts, and those that come behind it are of no use
	return c
}
