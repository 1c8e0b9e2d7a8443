package sched

import "slices"

// A draw may turn out to be in vain while its step is in flight: its token is known without it, or nobody can say yet which tokens may be
// drawn. These methods drop it. They are called between two steps, with one in flight, which draws of the sequence.

// Take appends tokens that are known although nothing was drawn, up to one that ends the sequence, and tells how many it appended. The next
// steps compute them as those of a prompt.
func (s *Scheduler) Take(q *Sequence, tokens []int32) (taken int) {
	s.drop(q)
	finish := Unfinished
	for ; taken < len(tokens) && finish == Unfinished; taken++ {
		finish = q.append(tokens[taken])
	}
	if finish != Unfinished {
		s.end(q, finish, nil)
	}
	return taken
}

// Repeat lets a later step compute the row again that a token was to be drawn from. The sequence must have no state, for the row would go into
// it twice.
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

// drop forgets what the step in flight draws of a sequence.
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
