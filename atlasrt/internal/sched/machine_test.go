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
	memory []int32    // the token whose key and value lie in each slot
	states []kept     // of the slots of sequences; none where sequences have none
	silent *Sequence  // its logits hold nothing to draw
	left   []left     // of each chunk that drew in the step that ran last
	guess  func() int // how many of the drafts behind a chunk are right, at most
	deep   func() int // drafts that a step makes; nil: as many as it may

	depth   int         // steps in flight at most
	drop    func(*Plan) // is shown each plan when it alone is in flight; or nil
	flights []flight
	surplus int // chunks that were computed in vain
	cut     int // draws that counted, but for the end of their sequences
	counts  map[count]int
}

// flight is a step that has run, and whose results the scheduler has not been told.
type flight struct {
	plan    *Plan
	results Results
	slots   map[int32]*Sequence // that it uses
}

// state is what a model might make of a sequence's tokens.
type state struct {
	length int
	hash   uint32
}

// after is the state over one token more.
func (s state) after(token int32) state {
	return state{s.length + 1, (s.hash ^ uint32(token)) * 16777619}
}

// over is the state over more tokens.
func (s state) over(tokens []int32) state {
	for _, token := range tokens {
		s = s.after(token)
	}
	return s
}

// begin is the state of a sequence without tokens.
var begin = state{0, 2166136261}

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
	limits.Draws = max(limits.Draws, 1)
	c := cache.New(cache.Sizes{Blocks: blocks, BlockSize: blockSize, Slots: slots}, share)
	m := &machine{t: t, s: New(limits, c), c: c, blocks: blocks, memory: make([]int32, blocks*blockSize), states: make([]kept, slots), depth: 1}
	r := rand.New(rand.NewPCG(uint64(blocks), 8))
	m.guess, m.counts = func() int { return r.IntN(limits.Draws) }, map[count]int{}
	for i := range m.memory {
		m.memory[i] = -7
	}
	for i := range m.states {
		m.states[i].state = state{-7, 7}
	}
	return m
}

// continuation is the one right next token of a sequence: it depends on all that came before.
func continuation(tokens []int32) int32 {
	return begin.over(tokens).next()
}

// step runs one plan, if there is one, and tells the scheduler what came of the oldest one when depth are in flight; false
// when there was nothing to do.
func (m *machine) step(between func()) bool {
	m.t.Helper()
	if m.deep != nil {
		m.s.Draft(m.deep())
	}
	plan := m.s.Next()
	m.balance()
	if len(plan.Chunks) > 0 {
		m.check(plan)
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
	full := len(m.flights) == m.depth
	if len(plan.Chunks) == 0 || full && m.depth > 1 {
		m.land()
	}
	if m.drop != nil && len(plan.Chunks) > 0 && len(m.flights) == 1 {
		m.drop(plan)
		m.balance()
	}
	if full && m.depth == 1 {
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
	number := 0
	for _, c := range f.plan.Chunks {
		if c.Surplus {
			m.surplus++
		} else if f.results.Counts != nil && c.Draws > 0 && !c.Dropped {
			m.cut += int(f.results.Counts[number]) - c.Counted
		}
		number += min(c.Draws, 1)
	}
}

// check finds fault with a plan.
func (m *machine) check(plan *Plan) {
	m.t.Helper()
	limits := m.s.limits
	rows, outputs, draws, drawing, most := 0, 0, 0, 0, 0
	seen := map[*Sequence]bool{}
	for _, c := range plan.Chunks {
		q := c.Sequence
		if seen[q] {
			m.t.Fatalf("a sequence is twice in the plan %+v", *plan)
		}
		seen[q] = true
		if finish, _ := q.Finish(); finish != Unfinished {
			m.t.Fatalf("a sequence that ended (%v) is in the plan", finish)
		}
		length, start, slack := len(q.Tokens), m.start(c), 0
		if c.Follows >= 0 {
			if len(m.flights) == 0 || m.left[c.Follows].sequence != q || c.Rows != c.Draws || rows != draws {
				m.t.Fatalf("chunk %+v behind %d rows and %d draws follows another, with %d steps in flight", c, rows, draws, len(m.flights))
			}
			length += m.left[c.Follows].count
			slack = len(m.left[c.Follows].draws) - 1
		}
		if c.Slack != slack || len(q.Blocks())*blockSize < c.Start+c.Slack+c.Rows {
			m.t.Fatalf("chunk %+v, want a slack of %d; it has %d blocks", c, slack, len(q.Blocks()))
		}
		if c.Drafts() > 0 && (m.left[c.Drafted].sequence != q || len(m.left[c.Drafted].drafts) < c.Drafts() || q.Single) {
			m.t.Fatalf("the drafts of chunk %+v are another's, or too many", c)
		}
		if c.Accepted > 0 && c.Drafts() > 0 && c.Rows != c.Draws {
			m.t.Fatalf("chunk %+v has several rows between accepted drafts and drafts", c)
		}
		known := start + c.Rows - c.Drafts()
		if c.Rows-c.Drafts() < 1 || known > length || (c.Draws > 0) != (known == length) {
			m.t.Fatalf("chunk %+v of %d tokens", c, length)
		}
		if c.Draws > 0 && length-q.prompt+c.Draws > q.MaxTokens || c.Draws > limits.Draws {
			m.t.Fatalf("chunk %+v behind %d tokens of %d", c, length-q.prompt, q.MaxTokens)
		}
		if limits.ChunkTokens > 0 && c.Rows > max(limits.ChunkTokens, c.Draws) {
			m.t.Fatalf("chunk of %d rows, the limit is %d", c.Rows, limits.ChunkTokens)
		}
		rows, outputs, draws, drawing, most = rows+c.Rows, outputs+c.Outputs, draws+c.Draws, drawing+min(c.Draws, 1), max(most, c.Draws)
	}
	if most > plan.Most || plan.Most > limits.Draws || plan.Drafts >= limits.Draws {
		m.t.Fatalf("a chunk has %d draws of the %d that the plan says, and %d drafts are to be made", most, plan.Most, plan.Drafts)
	}
	if rows != plan.Rows || outputs != plan.Outputs || draws != plan.Draws || drawing != plan.Drawing {
		m.t.Fatalf("plan says %d rows, %d outputs, %d draws of %d chunks; its chunks come to %d, %d, %d of %d",
			plan.Rows, plan.Outputs, plan.Draws, plan.Drawing, rows, outputs, draws, drawing)
	}
	if rows > limits.BatchTokens || outputs > limits.Outputs || len(plan.Chunks) > limits.Sequences {
		m.t.Fatalf("plan of %d rows, %d outputs, %d sequences is over the limits %+v", rows, outputs, len(plan.Chunks), limits)
	}
}

// compute does what a device does with a plan.
func (m *machine) compute(plan *Plan) Results {
	m.t.Helper()
	slot := func(q *Sequence, t int) *int32 { return &m.memory[int(q.Blocks()[t/blockSize])*blockSize+t%blockSize] }
	for _, c := range plan.Chunks { // writes come first, as on a device where each row is of another thread
		for t := m.start(c); t < m.start(c)+c.Rows; t++ {
			*slot(c.Sequence, t) = m.tokens(c)[t]
		}
	}
	var all []left
	for _, c := range plan.Chunks {
		read := make([]int32, m.start(c)+c.Rows)
		for t := range read {
			read[t] = *slot(c.Sequence, t)
		}
		if want := m.tokens(c); !slices.Equal(read, want) {
			m.t.Fatalf("the cache holds %v, want %v", read, want)
		}
		if c.Draws > 0 {
			all = append(all, m.draw(c, read, plan.Drafts))
		}
	}
	m.left = all
	var results Results
	for _, l := range all {
		results.Tokens = append(results.Tokens, l.draws...)
		if m.s.limits.Draws > 1 {
			results.Counts = append(results.Counts, int32(l.count))
		}
	}
	return results
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
