package regex

import (
	"strconv"
	"testing"
)

// divisible is the numbers that a divisor divides, the empty text among them.
func divisible(s *Set, by int) Ref {
	arcs, final := make([][]Arc, by), make([]bool, by)
	for rest := range by {
		for digit := range 10 {
			arcs[rest] = append(arcs[rest], Arc{s.Bytes(byte('0'+digit), byte('0'+digit)), (10*rest + digit) % by})
		}
	}
	final[0] = true
	return s.Automaton(arcs, final)
}

func TestAutomaton(t *testing.T) {
	s := NewSet()
	seven, three := divisible(s, 7), divisible(s, 3)
	both, neither := s.And(seven, three), s.Not(s.Or(seven, three))
	for n := range 3000 {
		text := strconv.Itoa(n)
		for _, c := range []struct {
			name string
			r    Ref
			want bool
		}{
			{"sevens", seven, n%7 == 0}, {"both", both, n%21 == 0}, {"neither", neither, n%7 != 0 && n%3 != 0},
			{"behind a sign", s.Concat(s.Literal("-"), seven), false},
		} {
			if got := s.Nullable(s.DeriveText(c.r, text)); got != c.want {
				t.Errorf("%s matches %s: %v", c.name, text, got)
			}
		}
	}
	if covers, err := s.Covers(three, divisible(s, 21)); !covers || err != nil {
		t.Errorf("the threes do not cover the multiples of 21: %v", err)
	}
	if covers, err := s.Covers(three, seven); covers || err != nil {
		t.Errorf("the threes cover the sevens: %v", err)
	}
}
