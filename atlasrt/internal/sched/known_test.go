package sched

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// take drops the draw of a sequence and appends tokens up to one that ends it. It tells how many there were.
func take(s *Scheduler, q *Sequence, tokens []int32) int {
	s.Drop(q)
	for i, token := range tokens {
		if s.Append(q, token) != Unfinished {
			return i + 1
		}
	}
	return len(tokens)
}

// dropper drops draws of a machine at random.
type dropper struct {
	m                  *machine
	r                  *rand.Rand
	held               []*Sequence
	took, ended, again int // sequences that took tokens, those that ended so, and those that draw again
}

func (d *dropper) drop(plan *Plan) {
	for _, c := range plan.Chunks {
		q := c.Sequence
		if finish, _ := q.Finish(); finish != Unfinished || c.Draws == 0 {
			continue
		}
		switch d.r.IntN(5) {
		case 0:
			tokens, finish := alone(q.Tokens, 1+d.r.IntN(7), q.End)
			want := min(len(tokens), q.MaxTokens-len(q.Generated()))
			if got := take(d.m.s, q, tokens); got != want {
				d.m.t.Fatalf("took %d of %d tokens, want %d (%v)", got, len(tokens), want, finish)
			}
			d.took++
			if finish, _ := q.Finish(); finish != Unfinished {
				d.ended++
			}
		case 1:
			if len(d.m.states) == 0 {
				d.m.s.Repeat(q)
				d.again++
				if d.r.IntN(2) == 0 {
					q.Held = true
					d.held = append(d.held, q)
				}
			}
		}
	}
}

// release lets go of the sequence that was held longest.
func (d *dropper) release(now bool) {
	if now && len(d.held) > 0 {
		d.held[0].Held, d.held = false, d.held[1:]
	}
}

// Tokens that are known are computed in one step, whatever was in flight, and one that ends the sequence is the last.
func TestAppend(t *testing.T) {
	for depth := 1; depth <= 2; depth++ {
		for _, slots := range []int{0, 1} {
			m := newMachineWithStates(t, Limits{BatchTokens: 16, Sequences: 1, Outputs: 1}, 40, slots, true)
			m.depth = depth
			prompt := []int32{1, 2, 3, 4, 5}
			want, _ := alone(prompt, 20, nil)
			q := m.add(prompt, 20)
			m.drop = func(plan *Plan) {
				if n := len(q.Generated()); n == 3 {
					take(m.s, q, want[n:n+9])
				}
			}
			before := uint64(0)
			for m.step(nil) {
				before = m.s.planned
			}
			if !slices.Equal(q.Generated(), want) || before != 12 { // three tokens, the row of the third, nine rows, which draw one, and seven more
				t.Errorf("depth %d, %d slots: got %v in %d steps, want %v in 12", depth, slots, q.Generated(), before, want)
			}
		}
	}
	m := newMachine(t, Limits{BatchTokens: 16, Sequences: 1, Outputs: 1}, 40, true)
	q := m.add([]int32{1}, 20)
	q.End = []int32{7}
	m.drop = func(*Plan) {
		if got := take(m.s, q, []int32{5, 7, 9}); got != 2 {
			t.Errorf("took %d tokens, want those up to the end", got)
		}
	}
	m.run()
	if finish, _ := q.Finish(); finish != Stop || !slices.Equal(q.Generated(), []int32{5, 7}) || m.surplus != 1 {
		t.Errorf("got %v %v, want a stop behind 5 and 7", q.Generated(), finish)
	}
}

// A sequence that draws again costs no other one a step, and waits as long as it is held.
func TestRepeat(t *testing.T) {
	for depth := 1; depth <= 2; depth++ {
		m := newMachine(t, Limits{BatchTokens: 16, Sequences: 2, Outputs: 2}, 40, true)
		m.depth = depth
		late, other := m.add([]int32{1, 2, 3}, 4), m.add([]int32{4, 5}, 30)
		m.drop = func(plan *Plan) {
			if len(late.Generated()) == 2 && slices.ContainsFunc(plan.Chunks, func(c Chunk) bool { return c.Sequence == late }) && !late.Held {
				m.s.Repeat(late)
				late.Held = true
			}
		}
		for range 20 {
			m.step(nil)
		}
		if n, other := len(late.Generated()), len(other.Generated()); n != 2 || other != 21-depth {
			t.Errorf("depth %d: %d tokens while it is held and %d of the other one, want 2 and %d", depth, n, other, 21-depth)
		}
		m.drop, late.Held = nil, false
		m.run()
		if want, _ := alone([]int32{1, 2, 3}, 4, nil); !slices.Equal(late.Generated(), want) {
			t.Errorf("depth %d: got %v, want %v", depth, late.Generated(), want)
		}
	}
}

// A sequence that fails between two steps fails alone.
func TestFail(t *testing.T) {
	m := newMachine(t, Limits{BatchTokens: 16, Sequences: 2, Outputs: 2}, 40, true)
	m.depth = 2
	bad, good := m.add([]int32{1, 2}, 9), m.add([]int32{3, 4}, 9)
	refused := errors.New("it is refused")
	m.drop = func(*Plan) { m.s.Fail(bad, refused) }
	m.run()
	if finish, err := bad.Finish(); finish != Failed || err != refused || len(bad.Generated()) != 0 {
		t.Errorf("got %v %v, want a failure", finish, err)
	}
	if want, _ := alone([]int32{3, 4}, 9, nil); !slices.Equal(good.Generated(), want) {
		t.Errorf("its neighbour: got %v, want %v", good.Generated(), want)
	}
}
