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
		{"not what has no longest text", s.And(s.Repeat(word, 0, -1), s.Not(s.Concat(letter, s.Repeat(digit, 0, -1)))), Endless},
		{"not what begins with a letter", s.And(s.Repeat(word, 0, -1), s.Not(s.Concat(letter, s.Repeat(word, 0, -1)))), 0},
		{"words, counted as a whole", s.And(s.Repeat(s.Or(word, quote), 0, 9), s.Concat(s.Repeat(s.Concat(s.Repeat(word, 1, -1), quote), 0, 3), word)), 0},
		{"a word, counted as a whole", s.And(s.Repeat(s.Or(word, quote), 0, 9), s.Concat(s.Repeat(word, 0, -1), quote)), 8},
		{"a literal", s.Literal("id"), 0},
	}
	for _, c := range cases {
		if got := s.Run(c.r, letter); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

func TestShorten(t *testing.T) {
	s := NewSet()
	word, quote := s.Bytes('a', 'b'), s.Literal(`"`)
	build := func(lo, hi int) []Ref {
		counted := s.Repeat(word, lo, hi)
		return []Ref{
			counted,
			s.Concat(counted, quote),
			s.Or(s.Concat(counted, quote), s.Concat(s.Repeat(s.Or(word, quote), lo, hi), quote)),
			s.Concat(s.Repeat(quote, 0, hi), counted),
		}
	}
	const n = 3
	for _, bounds := range [][2]int{{0, 9}, {2, 5}, {4, 4}, {7, 9}, {0, 3}, {5, -1}} {
		for at, r := range build(bounds[0], bounds[1]) {
			short := s.Shorten(r, n)
			if again := s.Shorten(short, n); again != short {
				t.Errorf("%v, form %d: shortened again it is another", bounds, at)
			}
			begin := []string{""}
			for range n + 1 {
				var longer []string
				for _, text := range begin {
					a, b := s.DeriveText(r, text), s.DeriveText(short, text)
					if (a == Nothing) != (b == Nothing) || s.Nullable(a) != s.Nullable(b) {
						t.Fatalf("%v, form %d: %q does not do the same", bounds, at, text)
					}
					for _, c := range `ab"` {
						longer = append(longer, text+string(c))
					}
				}
				begin = longer
			}
		}
	}
	if s.Shorten(s.Repeat(word, 2, 500), n) != s.Shorten(s.Repeat(word, 2, 600), n) {
		t.Error("far counts are not made one")
	}
}
