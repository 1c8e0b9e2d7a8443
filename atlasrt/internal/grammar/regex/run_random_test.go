package regex

import (
	"math/rand/v2"
	"testing"
)

// TestRunHolds takes texts of random characters through expressions: they may not stop before the run ends.
func TestRunHolds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	told := 0
	for range 3000 {
		s := NewSet()
		var build func(depth int) Ref
		build = func(depth int) Ref {
			if depth == 0 {
				return []Ref{s.Bytes('a', 'b'), s.Bytes('b', 'c'), s.Bytes('a', 'c'), s.Literal("c"), s.Literal("ab"), s.Literal("b")}[r.IntN(6)]
			}
			a, b := build(depth-1), build(r.IntN(depth))
			switch r.IntN(6) {
			case 0:
				return s.Or(a, b)
			case 1:
				return s.And(a, b)
			case 2:
				return s.And(a, s.Not(b))
			case 3:
				return s.Concat(a, b)
			case 4:
				return s.Repeat(a, r.IntN(3), 3+r.IntN(4))
			}
			return s.Repeat(a, r.IntN(3), -1)
		}
		e := build(4)
		for _, c := range []Ref{s.Bytes('a', 'b'), s.Literal("b"), s.Literal("c"), s.Bytes('a', 'c')} {
			if alive, err := s.Alive(e); err != nil || !alive {
				continue
			}
			run := s.Run(e, c)
			if run == 0 {
				continue
			}
			told++
			for range 30 {
				d := e
				for n := range min(run, 12) {
					var may []byte
					for _, b := range "abc" {
						if s.Derive(c, byte(b)) == Empty {
							may = append(may, byte(b))
						}
					}
					d = s.Derive(d, may[r.IntN(len(may))])
					if alive, err := s.Alive(d); err == nil && !alive {
						t.Fatalf("a run of %d ends after %d characters", run, n)
					}
				}
			}
		}
	}
	if told < 500 {
		t.Errorf("only %d runs were told", told)
	}
}

func TestTermsThatAreLeftOutLeaveOutNoOthers(t *testing.T) {
	for _, first := range []byte{'a', 'b'} {
		s := NewSet()
		s.Bytes(first, 'c') // its number comes first
		r := s.Or(s.Repeat(s.Bytes('a', 'c'), 0, -1), s.Repeat(s.Bytes('b', 'c'), 0, -1))
		if want := s.Repeat(s.Bytes('a', 'c'), 0, -1); r != want {
			t.Errorf("[a-c]*|[b-c]* is expression %d, want %d", r, want)
		}
	}
}
