package regex

import "testing"

func TestRun(t *testing.T) {
	s := NewSet()
	letter, digit := s.Bytes('a', 'z'), s.Bytes('0', '9')
	word := s.Or(letter, digit)
	quote := s.Literal(`"`)
	names := s.Not(s.Or(s.Literal("id"), s.Literal("name")))
	cases := []struct {
		name string
		r    Ref
		want int
	}{
		{"letters", s.Repeat(word, 0, -1), Endless},
		{"counted", s.Concat(s.Repeat(word, 2, 7), quote), 7},
		{"digits first", s.Concat(s.Repeat(digit, 0, 3), s.Repeat(word, 0, 5)), 5},
		{"digits at least once", s.Concat(s.Repeat(digit, 1, 3), s.Repeat(word, 0, 5)), 0},
		{"either", s.Or(s.Concat(s.Repeat(digit, 1, 3), quote), s.Concat(s.Repeat(word, 0, 6), quote)), 6},
		{"no names", s.And(s.Repeat(word, 0, -1), names), Endless},
		{"no names, longer than they are", s.And(s.Repeat(word, 0, 5), names), 5},
		{"no names, not longer", s.And(s.Repeat(word, 0, 4), names), 0},
		{"not what has no longest text", s.And(s.Repeat(word, 0, -1), s.Not(s.Concat(letter, s.Repeat(digit, 0, -1)))), 0},
		{"a literal", s.Literal("id"), 0},
	}
	for _, c := range cases {
		if got := s.Run(c.r, letter); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}
