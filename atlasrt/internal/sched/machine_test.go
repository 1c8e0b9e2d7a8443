package sched

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/cache"
)

const blockSize = 4

// machine runs plans on a pretended paged memory, so that a wrong block table or a block given away too early gives
// wrong tokens.
type machine struct {
	t      *testing.T
	s      *Scheduler
	c      *cache.Cache
	blocks int
	memory []int32   // the token whose key and value lie in each slot
	silent *Sequence // its logits hold nothing to sample

	depth   int // steps in flight at most
	flights []flight
	surplus int // chunks that were computed in vain
}

// flight is a step that has run, and whose results the scheduler has not been told.
type flight struct {
	plan    *Plan
	results Results
}

func newMachine(t *testing.T, limits Limits, blocks int, share bool) *machine {
	if limits.Waiting == 0 {
		limits.Waiting, limits.WaitingTokens = 1000, 1_000_000
	}
	if limits.Context == 0 {
		limits.Context = 1_000_000
	}
	c := cache.New(blocks, blockSize, share)
	m := &machine{t: t, s: New(limits, c), c: c, blocks: blocks, memory: make([]int32, blocks*blockSize), depth: 1}
	for i := range m.memory {
		m.memory[i] = -7
	}
	return m
}

// continuation is the one right next token of a sequence: it depends on all that came before.
func continuation(tokens []int32) int32 {
	h := uint32(2166136261)
	for _, token := range tokens {
		h = (h ^ uint32(token)) * 16777619
	}
	return int32((h >> 8) % 50)
}

// step runs one plan, if there is one, and tells the scheduler what came of the oldest one when depth are in flight; false
// when there was nothing to do.
func (m *machine) step(between func()) bool {
	m.t.Helper()
	plan := m.s.Next()
	m.balance()
	if len(plan.Chunks) > 0 {
		m.flights = append(m.flights, flight{plan, m.compute(plan)})
	}
	if between != nil {
		between()
		m.balance()
	}
	if len(m.flights) == 0 {
		return false
	}
	if len(m.flights) == m.depth || len(plan.Chunks) == 0 {
		m.land()
	}
	return true
}

// land tells the scheduler what came of the oldest step.
func (m *machine) land() {
	m.t.Helper()
	f := m.flights[0]
	m.flights = m.flights[1:]
	m.s.Done(f.plan, f.results)
	m.balance()
	for _, c := range f.plan.Chunks {
		if c.Surplus {
			m.surplus++
		}
	}
}

// compute does what a device does with a plan, and checks it.
func (m *machine) compute(plan *Plan) Results {
	m.t.Helper()
	limits := m.s.limits
	rows, outputs, samples := 0, 0, 0
	seen := map[*Sequence]bool{}
	for _, c := range plan.Chunks {
		if seen[c.Sequence] {
			m.t.Fatalf("a sequence is twice in the plan %+v", *plan)
		}
		seen[c.Sequence] = true
		if finish, _ := c.Sequence.Finish(); finish != Unfinished {
			m.t.Fatalf("a sequence that ended (%v) is in the plan", finish)
		}
		length := len(c.Sequence.Tokens)
		if c.Follows >= 0 {
			length++
			if c.Rows != 1 || len(m.flights) == 0 {
				m.t.Fatalf("chunk %+v follows a token, with %d steps in flight", c, len(m.flights))
			}
		}
		if c.Rows < 1 || c.Start+c.Rows > length || c.Sample != (c.Start+c.Rows == length) {
			m.t.Fatalf("chunk %+v of %d tokens", c, length)
		}
		if limits.ChunkTokens > 0 && c.Rows > limits.ChunkTokens {
			m.t.Fatalf("chunk of %d rows, the limit is %d", c.Rows, limits.ChunkTokens)
		}
		rows, outputs = rows+c.Rows, outputs+c.Outputs
		if c.Sample {
			samples++
		}
	}
	if rows != plan.Rows || outputs != plan.Outputs || samples != plan.Samples {
		m.t.Fatalf("plan says %d rows, %d outputs, %d samples; its chunks come to %d, %d, %d", plan.Rows, plan.Outputs, plan.Samples, rows, outputs, samples)
	}
	if rows > limits.BatchTokens || outputs > limits.Outputs || len(plan.Chunks) > limits.Sequences {
		m.t.Fatalf("plan of %d rows, %d outputs, %d sequences is over the limits %+v", rows, outputs, len(plan.Chunks), limits)
	}

	slot := func(q *Sequence, t int) *int32 { return &m.memory[int(q.Blocks()[t/blockSize])*blockSize+t%blockSize] }
	tokens := func(c Chunk) []int32 { // all that the chunk may see
		if c.Follows < 0 {
			return c.Sequence.Tokens[:c.Start+c.Rows]
		}
		return append(slices.Clone(c.Sequence.Tokens), m.flights[len(m.flights)-1].results.Tokens[c.Follows])
	}
	for _, c := range plan.Chunks { // writes come first, as on a device where each row is of another thread
		for t := c.Start; t < c.Start+c.Rows; t++ {
			*slot(c.Sequence, t) = tokens(c)[t]
		}
	}
	var results Results
	for _, c := range plan.Chunks {
		read := make([]int32, c.Start+c.Rows)
		for t := range read {
			read[t] = *slot(c.Sequence, t)
		}
		if want := tokens(c); !slices.Equal(read, want) {
			m.t.Fatalf("the cache holds %v, want %v", read, want)
		}
		if c.Sample && c.Sequence == m.silent {
			results.Tokens = append(results.Tokens, -1)
		} else if c.Sample {
			results.Tokens = append(results.Tokens, continuation(read))
		}
	}
	return results
}

func (m *machine) balance() {
	m.t.Helper()
	free, used, cached := m.c.Counts()
	if free+used+cached != m.blocks || free < 0 || used < 0 || cached < 0 {
		m.t.Fatalf("free %d + used %d + cached %d is not %d", free, used, cached, m.blocks)
	}
}

func (m *machine) run() (steps int) {
	m.t.Helper()
	for m.step(nil) {
		if steps++; steps > 100_000 {
			m.t.Fatal("no end after 100000 steps")
		}
	}
	if len(m.flights) != 0 || m.s.Running() != 0 || m.c.Available() != m.blocks {
		m.t.Fatalf("at rest: %d running, %d of %d blocks available", m.s.Running(), m.c.Available(), m.blocks)
	}
	if n, tokens := m.s.Waiting(); n != 0 || tokens != 0 {
		m.t.Fatalf("at rest: %d waiting with %d tokens", n, tokens)
	}
	return steps
}

func (m *machine) add(prompt []int32, generate int) *Sequence {
	m.t.Helper()
	q := &Sequence{Tokens: slices.Clone(prompt), MaxTokens: generate}
	if err := m.s.Add(q); err != nil {
		m.t.Fatalf("Add(%d tokens, %d new): %v", len(prompt), generate, err)
	}
	return q
}

// alone is what a prompt gives when nothing else runs.
func alone(prompt []int32, generate int, end []int32) ([]int32, Finish) {
	q := Sequence{Tokens: slices.Clone(prompt), MaxTokens: generate, End: end, prompt: len(prompt)}
	for {
		if finish := q.append(continuation(q.Tokens)); finish != Unfinished {
			return q.Generated(), finish
		}
	}
}

func random(r *rand.Rand, n, vocabulary int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(r.IntN(vocabulary))
	}
	return out
}
