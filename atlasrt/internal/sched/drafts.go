package sched

// Draft sets how many drafts the plans to come make behind each chunk that draws: from 0 to Limits.Draws-1, which it is at first.
func (s *Scheduler) Draft(drafts int) {
	if drafts < 0 || drafts >= s.limits.Draws {
		panic("BUG: drafts that no step has room for")
	}
	s.drafts = drafts
}

// draws is how many tokens a step draws of q, whose last token alone is to be computed. There are drafts behind it if the step before drew of
// q as well, and made some. No draw is made that would be more than MaxTokens.
func (s *Scheduler) draws(q *Sequence) int {
	if q.Single || q.drew == 0 || q.drew != s.planned {
		return 1
	}
	return min(s.made+1, q.MaxTokens-q.generated())
}

// drafts tells whether the step behind that of chunk c, which has left, may have drafts of its sequence.
func drafts(c Chunk) bool {
	q := c.Sequence
	return c.Draws > 0 && !q.Single && q.MaxTokens-q.generated() > 1
}
