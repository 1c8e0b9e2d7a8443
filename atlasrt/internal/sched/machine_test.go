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
	states []state   // of the slots of sequences; none where sequences have none
	silent *Sequence // its logits hold nothing to sample

	depth   int // steps in flight at most
	flights []flight
	surplus int // chunks that were computed in vain
}

// flight is a step that has run, and whose results the scheduler has not been told.
type flight struct {
	plan    *Plan
	results Results
	slots   map[int32]*Sequence // that it uses
}

// state is what a model might keep of a sequence in place of its tokens.
type state struct {
	length int
	hash   uint32
}

// after is the state over one token more.
func (s state) after(token int32) state {
	return state{s.length + 1, (s.hash ^ uint32(token)) * 16777619}
}

// start is the state of a sequence without tokens.
var start = state{0, 2166136261}

// next is the token that a model draws, which depends on all that came before.
func (s state) next() int32 { return int32((s.hash >> 8) % 50) }

func newMachine(t *testing.T, limits Limits, blocks int, share bool) *machine {
	return newMachineWithStates(t, limits, blocks, 0, share)
}

func newMachineWithStates(t *testing.T, limits Limits, blocks, slots int, share bool) *machine {
	if limits.Waiting == 0 {
		limits.Waiting, limits.WaitingTokens = 1000, 1_000_000
	}
	if limits.Context == 0 {
		limits.Context = 1_000_000
	}
	c := cache.New(cache.Sizes{Blocks: blocks, BlockSize: blockSize, Slots: slots}, share)
	m := &machine{t: t, s: New(limits, c), c: c, blocks: blocks, memory: make([]int32, blocks*blockSize), states: make([]state, slots), depth: 1}
	for i := range m.memory {
		m.memory[i] = -7
	}
	for i := range m.states {
		m.states[i] = state{-7, 7}
	}
	return m
}

// continuation is the one right next token of a sequence: it depends on all that came before.
func continuation(tokens []int32) int32 {
	s := start
	for _, token := range tokens {
		s = s.after(token)
	}
	return s.next()
}

// step runs one plan, if there is one, and tells the scheduler what came of the oldest one when depth are in flight; false
// when there was nothing to do.
func (m *machine) step(between func()) bool {
	m.t.Helper()
	plan := m.s.Next()
	m.balance()
	if len(plan.Chunks) > 0 {
		slots := m.advance(plan)
		m.flights = append(m.flights, flight{plan, m.compute(plan), slots})
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
	for _, c := range plan.Chunks { // writes come first, as on a device where each row is of another thread
		for t := c.Start; t < c.Start+c.Rows; t++ {
			*slot(c.Sequence, t) = m.tokens(c)[t]
		}
	}
	var results Results
	for _, c := range plan.Chunks {
		read := make([]int32, c.Start+c.Rows)
		for t := range read {
			read[t] = *slot(c.Sequence, t)
		}
		if want := m.tokens(c); !slices.Equal(read, want) {
			m.t.Fatalf("the cache holds %v, want %v", read, want)
		}
		if c.Sample && c.Sequence == m.silent {
			results.Tokens = append(results.Tokens, -1)
		} else if c.Sample && len(m.states) > 0 {
			results.Tokens = append(results.Tokens, m.states[c.Sequence.Slot()].next())
		} else if c.Sample {
			results.Tokens = append(results.Tokens, continuation(read))
		}
	}
	return results
}

// tokens is all that a chunk may see.
func (m *machine) tokens(c Chunk) []int32 {
	if c.Follows < 0 {
		return c.Sequence.Tokens[:c.Start+c.Rows]
	}
	return append(slices.Clone(c.Sequence.Tokens), m.flights[len(m.flights)-1].results.Tokens[c.Follows])
}

// advance takes the states of a plan's sequences over its rows, and returns whose slots they are. A sequence that starts does not read what its
// slot holds.
func (m *machine) advance(plan *Plan) map[int32]*Sequence {
	m.t.Helper()
	slots := map[int32]*Sequence{}
	for _, c := range plan.Chunks {
		id := c.Sequence.Slot()
		if len(m.states) == 0 {
			if id >= 0 {
				m.t.Fatalf("slot %d of none", id)
			}
			continue
		}
		if id < 0 || int(id) >= len(m.states) || slots[id] != nil {
			m.t.Fatalf("slot %d of %d, shared %v", id, len(m.states), slots[id] != nil)
		}
		slots[id] = c.Sequence
		for _, f := range m.flights {
			if q := f.slots[id]; q != nil && q != c.Sequence {
				m.t.Fatalf("slot %d was given away while a step used it", id)
			}
		}
		s := m.states[id]
		if c.Start == 0 {
			s = start
		}
		if s.length != c.Start {
			m.t.Fatalf("chunk %+v starts at %d, and its slot holds %d tokens", c, c.Start, s.length)
		}
		for _, token := range m.tokens(c)[c.Start:] {
			s = s.after(token)
		}
		m.states[id] = s
	}
	return slots
}

func (m *machine) balance() {
	m.t.Helper()
	for _, pool := range []struct {
		name   string
		counts cache.Counts
		total  int
	}{{"blocks", m.c.Blocks(), m.blocks}, {"slots", m.c.Slots(), len(m.states)}} {
		if c := pool.counts; c.Total() != pool.total || c.Free < 0 || c.Used < 0 || c.Cached < 0 {
			m.t.Fatalf("%s: %+v is not %d", pool.name, c, pool.total)
		}
	}
	if used := m.c.Slots().Used; len(m.states) > 0 && (used < m.s.Running() || len(m.flights) == 0 && used != m.s.Running()) {
		m.t.Fatalf("%d slots are used by %d sequences, with %d steps in flight", used, m.s.Running(), len(m.flights))
	}
}

func (m *machine) run() (steps int) {
	m.t.Helper()
	for m.step(nil) {
		if steps++; steps > 100_000 {
			m.t.Fatal("no end after 100000 steps")
		}
	}
	if len(m.flights) != 0 || m.s.Running() != 0 || m.c.Blocks().Used+m.c.Slots().Used > 0 {
		m.t.Fatalf("at rest: %d running, blocks %+v, slots %+v", m.s.Running(), m.c.Blocks(), m.c.Slots())
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
