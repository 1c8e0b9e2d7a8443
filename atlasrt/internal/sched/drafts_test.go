package sched

import (
	"fmt"
	"slices"
	"testing"
)

// left is what a device leaves for the next step of a sequence.
type left struct {
	sequence *Sequence
	draws    []int32
	count    int     // of the draws, those that count
	drafts   []int32 // of the tokens behind them
}

// kept is what a slot keeps of a sequence: the state before the drafts of its last chunk, and a journal of these.
type kept struct {
	state
	journal []int32
}

// count is how a chunk's draws were counted.
type count struct {
	draws, count int
	follows      bool // the chunk was planned before it was known where it starts
}

// start is where a chunk starts, which the device knows.
func (m *machine) start(c Chunk) int {
	if c.Follows < 0 {
		return c.Start
	}
	return c.Start + m.left[c.Follows].count - 1
}

// tokens is all that a chunk may see.
func (m *machine) tokens(c Chunk) []int32 {
	all := slices.Clone(c.Sequence.Tokens)
	if c.Follows >= 0 {
		l := m.left[c.Follows]
		all = append(all, l.draws[:l.count]...)
	}
	all = all[:m.start(c)+c.Rows-c.Drafts()]
	if c.Drafts() > 0 {
		all = append(all, m.left[c.Drafted].drafts[:c.Drafts()]...)
	}
	return all
}

// draw draws from the last rows of a chunk, whose cache holds the tokens that were read, counts the draws whose drafts were right, and makes
// so many drafts of what may come behind them.
func (m *machine) draw(c Chunk, read []int32, drafts int) left {
	l := left{sequence: c.Sequence, count: 1}
	first := len(read) - c.Drafts()
	s := begin
	if len(m.states) > 0 {
		s = m.states[c.Sequence.Slot()].state
	} else {
		s = s.over(read[:first])
	}
	for i := range c.Draws {
		if i > 0 {
			s = s.after(read[first+i-1])
		}
		if l.draws = append(l.draws, s.next()); c.Sequence == m.silent {
			l.draws[i] = -1
		}
	}
	for l.count < c.Draws && read[first+l.count-1] == l.draws[l.count-1] {
		l.count++
	}
	m.counts[count{c.Draws, l.count, c.Follows >= 0}]++
	s = begin.over(read[:first]).over(l.draws[:l.count])
	right := m.guess()
	for i := range drafts {
		token := s.next()
		if i >= right {
			token = (token + 1) % 50
		}
		l.drafts, s = append(l.drafts, token), s.after(token)
	}
	return l
}

// advance takes the states of a plan's sequences over its rows, and returns whose slots they are. A sequence that starts does not read what its
// slot holds; another one begins behind those drafts of its last chunk that were right.
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
		accepted := c.Accepted
		if c.Follows >= 0 {
			accepted = m.left[c.Follows].count - 1
		}
		k := m.states[id]
		if m.start(c) == 0 {
			k.state = begin
		} else {
			k.state = k.over(k.journal[:accepted])
		}
		if k.length != m.start(c) {
			m.t.Fatalf("chunk %+v starts at %d, and its slot holds %d tokens", c, m.start(c), k.length)
		}
		rows := m.tokens(c)[m.start(c):]
		known := c.Rows - c.Drafts()
		m.states[id] = kept{k.over(rows[:known]), rows[known:]}
	}
	return slots
}

// Right drafts save steps, wrong ones cost none; the tokens stay, and no more are generated than were asked for.
func TestStepsDrawSeveralTokens(t *testing.T) {
	cases := []struct {
		draws, right, depth int
		single              bool
		steps               int // for 21 tokens
	}{
		{1, 0, 1, false, 21},
		{4, 3, 1, false, 6}, // the prompt's one, and five times four
		{4, 1, 1, false, 11},
		{4, 0, 1, false, 21},
		{4, 3, 1, true, 21},
		{4, 3, 2, false, 6},
		{4, 1, 2, false, 11},
		{3, 0, 2, false, 21},
	}
	for _, test := range cases {
		for _, slots := range []int{0, 2} {
			t.Run(fmt.Sprintf("%d draws, %d right, %d in flight, single %v, %d slots", test.draws, test.right, test.depth, test.single, slots), func(t *testing.T) {
				m := newMachineWithStates(t, Limits{BatchTokens: 16, Sequences: 2, Outputs: 8, Draws: test.draws}, 40, slots, true)
				m.guess, m.depth = func() int { return test.right }, test.depth
				q := &Sequence{Tokens: []int32{1, 2, 3, 4, 5}, MaxTokens: 21, Single: test.single}
				if err := m.s.Add(q); err != nil {
					t.Fatal(err)
				}
				plans := uint64(0)
				for m.step(nil) {
					plans = m.s.planned
				}
				if want, _ := alone([]int32{1, 2, 3, 4, 5}, 21, nil); !slices.Equal(q.Generated(), want) {
					t.Errorf("got %v, want %v", q.Generated(), want)
				}
				if plans != uint64(test.steps) {
					t.Errorf("took %d steps, want %d", plans, test.steps)
				}
			})
		}
	}
}

// Steps make as many drafts as the scheduler was told, and none where no sequence may use them.
func TestDraftsOfAPlan(t *testing.T) {
	m := newMachine(t, Limits{BatchTokens: 16, Sequences: 2, Outputs: 8, Draws: 4}, 40, true)
	m.guess = func() int { return 0 }
	q := &Sequence{Tokens: []int32{1, 2, 3, 4, 5}, MaxTokens: 9}
	if err := m.s.Add(q); err != nil {
		t.Fatal(err)
	}
	var got [][3]int
	for _, drafts := range []int{2, 2, 0, 1, 3, 3, 3, 3, 3} {
		m.s.Draft(drafts)
		plan := m.s.Next()
		got = append(got, [3]int{plan.Chunks[0].Draws, plan.Most, plan.Drafts})
		m.check(plan)
		m.advance(plan)
		m.s.Done(plan, m.compute(plan))
	}
	// In the end there is room for three, two and one token, and the last step has nothing to draft for.
	want := [][3]int{{1, 1, 2}, {3, 3, 2}, {3, 3, 0}, {1, 1, 1}, {2, 2, 3}, {4, 4, 3}, {3, 4, 3}, {2, 4, 3}, {1, 1, 0}}
	if !slices.Equal(got, want) {
		t.Errorf("draws, most draws and drafts of each step:\ngot  %v\nwant %v", got, want)
	}
	if want, _ := alone([]int32{1, 2, 3, 4, 5}, 9, nil); !slices.Equal(q.Generated(), want) {
		t.Errorf("got %v, want %v", q.Generated(), want)
	}
}

// A device whose count cannot be fails the sequence, and no other.
func TestCountsOutOfRange(t *testing.T) {
	for _, wrong := range []int32{-1, 0, 3, 1 << 30} {
		m := newMachine(t, Limits{BatchTokens: 16, Sequences: 2, Outputs: 4, Draws: 2}, 40, true)
		bad, good := m.add([]int32{1, 2}, 9), m.add([]int32{3, 4}, 9)
		m.step(nil)
		plan := m.s.Next()
		m.check(plan)
		m.advance(plan)
		results := m.compute(plan)
		results.Counts[0] = wrong
		m.s.Done(plan, results)
		if finish, err := bad.Finish(); finish != Failed || err == nil {
			t.Errorf("%d of 2 draws count: got %v %v, want a failure", wrong, finish, err)
		}
		m.run()
		if want, _ := alone([]int32{3, 4}, 9, nil); !slices.Equal(good.Generated(), want) {
			t.Errorf("its neighbour: got %v, want %v", good.Generated(), want)
		}
	}
}
