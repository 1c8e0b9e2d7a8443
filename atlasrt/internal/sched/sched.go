// Package sched decides what a step computes: which sequences, and how many tokens of each.
//
// Batching is continuous (Yu et al. 2022, Orca). Every step takes the next token of each running sequence, and fills the rest of its budget
// of rows with chunks of prompts, so that prefill and decode share one ragged batch. Requests start in the order in which they came. Where
// the cache runs out, the youngest running sequence is preempted: it gives up what it holds and waits at the head of the queue, to compute its
// tokens again later; the tokens that were drawn stay. So the oldest sequence always advances, and every request ends.
//
// A step draws the next token of a sequence, and may draw more: behind the sequence's last token it computes drafts, guesses of the tokens to
// come, and draws one token from each row. A draw counts if every draft before it turned out to be right, so that between one and all of them
// count. The rows of wrong drafts are void, and computed again with the right tokens.
//
// A second step can be planned while one is in flight. Where it continues a sequence whose count is not known yet, the plan says which chunk it
// follows (Chunk.Follows): the device finds out where it starts. Blocks are reserved for as many tokens as may count. A sequence that turns
// out to have ended is then computed once for nothing.
//
// There is no clock, goroutine or device here. One goroutine at a time may use a Scheduler.
package sched

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/cache"
)

// ErrNoToken is the error of a sequence whose logits leave nothing to sample.
var ErrNoToken = errors.New("the model's logits are not finite or leave no token to sample")

// Counts are totals since the start.
type Counts struct {
	Preemptions                 uint64 // times that a running sequence gave up what it held
	PromptTokens                uint64 // tokens of prompts that began to run
	PrefixQueries, PrefixHits   uint64 // prompt tokens looked up in the prefix cache, and those that were taken from it
	PrefixRecomputed            uint64 // of those looked up, the ones that were found and computed nevertheless: no state is kept behind them
	Finished, Cancelled, Failed uint64 // sequences, by how they ended
}

// Scheduler holds the queue and the running sequences.
type Scheduler struct {
	limits  Limits
	cache   *cache.Cache
	drafts  int         // that plans to come make behind a chunk
	made    int         // that the newest plan makes
	waiting []*Sequence // by age; all are younger than the running ones
	running []*Sequence // by age
	plans   [2]Plan
	planned uint64 // plans that Next has returned
	done    uint64 // plans that Done has taken
	plan    *Plan  // the one that is being made
	stuckAt int    // blocks that were available when the head of the queue did not fit; -1: it was not tried
	tokens  int    // of waiting sequences
	counts  Counts
}

// New makes a scheduler over c.
func New(limits Limits, c *cache.Cache) *Scheduler {
	least := limits.Sequences * limits.Draws
	if limits.Sequences < 1 || limits.Draws < 1 || limits.BatchTokens < least || limits.Outputs < least || limits.ChunkTokens < 0 {
		panic(fmt.Sprintf("BUG: limits %+v of a scheduler", limits))
	}
	return &Scheduler{limits: limits, cache: c, drafts: limits.Draws - 1, stuckAt: -1}
}

// Add queues sequences, all of them or none; their Tokens are prompts. It returns *TooLong where one can never fit, *QueueFull where too
// much waits, and another error for a sequence without tokens.
func (s *Scheduler) Add(sequences ...*Sequence) error {
	tokens := 0
	for _, q := range sequences {
		if len(q.Tokens) == 0 || q.MaxTokens < 1 {
			return fmt.Errorf("a sequence of %d tokens that generates %d (both must be at least 1)", len(q.Tokens), q.MaxTokens)
		}
		// The last token that is generated is never in the cache. The comparison subtracts, because MaxTokens may be the largest int.
		if limit := min(s.limits.Context, s.cache.Tokens()+1); q.MaxTokens > limit-len(q.Tokens) {
			return &TooLong{Tokens: len(q.Tokens) + min(q.MaxTokens, math.MaxInt32), Limit: limit}
		}
		tokens += len(q.Tokens)
	}
	if err := s.Room(len(sequences), tokens); err != nil {
		return err
	}
	for _, q := range sequences {
		q.prompt = len(q.Tokens)
		s.waiting = append(s.waiting, q)
	}
	s.tokens += tokens
	return nil
}

// Room returns *QueueFull where so many sequences, with so many prompt tokens in all, find no room in the queue.
func (s *Scheduler) Room(sequences, tokens int) error {
	waiting, tokens := len(s.waiting)+sequences, s.tokens+tokens
	if waiting > s.limits.Waiting || waiting > 1 && tokens > s.limits.WaitingTokens {
		return &QueueFull{waiting, s.limits.Waiting, tokens, s.limits.WaitingTokens}
	}
	return nil
}

// Cancel ends a sequence: it is in no later plan. It does nothing to one that ended.
func (s *Scheduler) Cancel(q *Sequence) {
	if q.finish != Unfinished {
		return
	}
	if i := slices.Index(s.waiting, q); i >= 0 {
		s.dequeue(i)
		q.finish = Cancelled
		s.counts.Cancelled++
		return
	}
	if slices.Contains(s.running, q) {
		s.end(q, Cancelled, nil)
	}
}

// Next plans a step. A plan without chunks means that there is nothing to do, or nothing until the step in flight is done. Call Done for
// plans in the order in which Next returned them; at most two may be in flight.
func (s *Scheduler) Next() *Plan {
	if s.planned-s.done > 1 {
		panic("BUG: a third plan while two are in flight")
	}
	s.plan = &s.plans[s.planned%2]
	*s.plan = Plan{Chunks: s.plan.Chunks[:0], Most: s.made + 1}
	if s.flying() && s.plans[s.done%2].waits {
		return s.plan
	}
	if !s.extend() {
		*s.plan = Plan{Chunks: s.plan.Chunks[:0], Most: s.made + 1}
		return s.plan
	}
	s.prefill()
	s.admit()
	if len(s.plan.Chunks) > 0 {
		s.planned++
		if s.plan.Draws == s.plan.Drawing {
			s.plan.Most = 1
		}
		number := 0
		for i := range s.plan.Chunks {
			c := &s.plan.Chunks[i]
			c.Sequence.leave(c)
			if c.Draws > 0 {
				c.Sequence.drew, c.Sequence.number = s.planned, number
				number++
			}
		}
		if s.plan.Most > 1 || slices.ContainsFunc(s.plan.Chunks, drafts) {
			s.plan.Drafts = s.drafts
		}
		s.made = s.plan.Drafts
		s.cache.Begin()
	}
	return s.plan
}

// flying tells whether a plan is not done yet.
func (s *Scheduler) flying() bool { return s.planned > s.done }

// Done takes the results of the oldest plan that is not done: it appends tokens, ends sequences and commits what is written to the cache.
func (s *Scheduler) Done(plan *Plan, results Results) {
	if !s.flying() || plan != &s.plans[s.done%2] {
		panic("BUG: done with a plan that was not next")
	}
	s.done++
	s.cache.End()
	drawn, number := 0, 0
	for i := range plan.Chunks {
		c := &plan.Chunks[i]
		q := c.Sequence
		q.land(c)
		var tokens []int32
		count := 0
		if c.Draws > 0 && results.Err == nil {
			if count = 1; results.Counts != nil {
				count = int(results.Counts[number])
			}
			tokens = results.Tokens[drawn : drawn+c.Draws]
			drawn, number = drawn+c.Draws, number+1
		}
		switch {
		case q.finish != Unfinished:
			c.Surplus = true
		case results.Err != nil:
			s.end(q, Failed, results.Err)
		case c.Dropped:
			s.cache.Commit(q.blocks, q.Tokens[:q.blocks.Committed()+c.known()])
		case count < min(c.Draws, 1) || count > c.Draws:
			s.end(q, Failed, fmt.Errorf("the device says that %d of %d draws count", count, c.Draws))
		default:
			s.book(q, c, tokens[:count])
		}
	}
}

// book appends the tokens that count, up to one that ends the sequence, and commits the rows that led to them.
func (s *Scheduler) book(q *Sequence, c *Chunk, tokens []int32) {
	start := q.blocks.Committed()
	finish, err := Unfinished, error(nil)
	for _, token := range tokens {
		if token < 0 {
			finish, err = Failed, ErrNoToken
		} else {
			finish = q.append(token)
			c.Counted++
		}
		if finish != Unfinished {
			break
		}
	}
	q.accepted = max(c.Counted-1, 0)
	s.cache.Commit(q.blocks, q.Tokens[:start+c.Rows-c.Drafts()+q.accepted])
	if finish != Unfinished {
		s.end(q, finish, err)
	}
}

// Running is how many sequences run.
func (s *Scheduler) Running() int { return len(s.running) }

// Waiting is how many sequences wait, and how many tokens they have.
func (s *Scheduler) Waiting() (sequences, tokens int) { return len(s.waiting), s.tokens }

// Counts are totals since the start.
func (s *Scheduler) Counts() Counts { return s.counts }

// extend plans the next tokens of every sequence that decodes, the oldest first, and makes room for tokens that Append brought. Where blocks run out it
// preempts the youngest. It reports false where it would have to preempt while a step is in flight, which uses the blocks: then nothing is
// planned.
func (s *Scheduler) extend() bool {
	for i := 0; i < len(s.running); i++ {
		q := s.running[i]
		rows := q.remaining()
		if rows == 0 || q.full() || q.Held {
			continue
		}
		decodes := rows == 1
		if decodes {
			rows = s.draws(q)
		}
		for !s.cache.Reserve(q.blocks, q.computed()+q.slack+rows) {
			if s.flying() {
				return false
			}
			s.preempt()
			if i >= len(s.running) {
				return true // q was the youngest and has been preempted
			}
		}
		if decodes {
			s.schedule(q, rows)
		}
	}
	return true
}

// prefill plans chunks of the running sequences that have several tokens to compute. Their blocks are reserved.
func (s *Scheduler) prefill() {
	for _, q := range s.running {
		if q.remaining() > 1 && !q.Held {
			s.schedule(q, s.chunk(q))
		}
	}
}

// chunk is how many rows of a prompt a step may have.
func (s *Scheduler) chunk(q *Sequence) int {
	if s.limits.ChunkTokens > 0 {
		return min(q.remaining(), s.limits.ChunkTokens)
	}
	return q.remaining()
}

// admit starts waiting sequences in order, as long as the cache has a slot and blocks for all tokens of the next one, and one more block for
// each running sequence to grow into.
func (s *Scheduler) admit() {
	for len(s.waiting) > 0 && len(s.running) < s.limits.Sequences && s.plan.Rows < s.limits.BatchTokens {
		if !s.cache.Admits() || s.cache.Blocks().Available() <= s.stuckAt {
			return
		}
		q := s.waiting[0]
		first := q.blocks == nil
		if first {
			q.blocks = s.cache.Open(q.Salt, min(q.most(), len(q.Tokens)+roomTokens))
		}
		matched, recompute := 0, 0
		if !q.scoring() {
			matched, recompute = s.cache.Match(q.blocks, q.Tokens)
		}
		if !s.cache.Reserve(q.blocks, len(q.Tokens)) || s.cache.Blocks().Available() < len(s.running) {
			s.cache.Release(q.blocks)
			if first {
				q.blocks = nil
			}
			s.stuckAt = s.cache.Blocks().Available()
			return
		}
		s.dequeue(0)
		s.running = append(s.running, q)
		if first {
			q.Tokens = slices.Grow(q.Tokens, min(q.MaxTokens, roomTokens))
			q.cached = matched
			s.counts.PromptTokens += uint64(q.prompt)
			if !q.scoring() {
				s.counts.PrefixQueries += uint64(q.prompt)
				s.counts.PrefixHits += uint64(matched)
				s.counts.PrefixRecomputed += uint64(recompute)
			}
		}
		s.schedule(q, s.chunk(q))
	}
}

// roomTokens is how many tokens a sequence has room for beyond its prompt before its slices are reallocated. Most answers are shorter, and
// room for the longest context in every sequence would be wasted.
const roomTokens = 4096

// schedule plans up to so many rows of q, as far as the step's budgets of rows and of logits allow. Rows behind its last token are drafts.
func (s *Scheduler) schedule(q *Sequence, rows int) {
	start := q.computed()
	last := q.length() - 1
	rows = min(rows, s.limits.BatchTokens-s.plan.Rows)
	if outputs := s.limits.Outputs - s.plan.Outputs; q.scoring() {
		rows = min(rows, outputs)
	} else {
		rows = min(rows, last-start+outputs)
	}
	if rows <= 0 {
		return
	}
	c := Chunk{Sequence: q, Start: start, Rows: rows, Draws: max(start+rows-last, 0), Follows: -1, Slack: q.slack, Drafted: -1, Accepted: q.accepted}
	if q.pending > 0 {
		c.Follows, c.Accepted = q.number, 0
	}
	if c.Draws > 1 {
		c.Drafted = q.number
	}
	if c.Outputs = c.Draws; q.scoring() {
		c.Outputs = rows
	}
	if c.Draws > 0 {
		s.plan.Drawing++
	}
	s.plan.Chunks = append(s.plan.Chunks, c)
	s.plan.Rows += rows
	s.plan.Outputs += c.Outputs
	s.plan.Draws += c.Draws
	s.plan.waits = s.plan.waits || c.Draws > 0 && q.Waits || q.scoring()
}

// preempt moves the youngest running sequence to the head of the queue.
func (s *Scheduler) preempt() {
	last := len(s.running) - 1
	q := s.running[last]
	s.running = s.running[:last]
	q.accepted = 0
	s.cache.Release(q.blocks)
	s.waiting = slices.Insert(s.waiting, 0, q)
	s.tokens += len(q.Tokens)
	s.stuckAt = -1
	s.counts.Preemptions++
}

// dequeue removes waiting sequence i.
func (s *Scheduler) dequeue(i int) {
	s.tokens -= len(s.waiting[i].Tokens)
	s.waiting = slices.Delete(s.waiting, i, i+1)
	if i == 0 {
		s.stuckAt = -1
	}
}

// end finishes a running sequence. What it held can be taken again after the step in flight.
func (s *Scheduler) end(q *Sequence, finish Finish, err error) {
	i := slices.Index(s.running, q)
	s.running = slices.Delete(s.running, i, i+1)
	s.cache.Release(q.blocks)
	q.finish, q.err = finish, err
	switch finish {
	case Cancelled:
		s.counts.Cancelled++
	case Failed:
		s.counts.Failed++
	default:
		s.counts.Finished++
	}
}
