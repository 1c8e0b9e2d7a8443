package regex

import (
	"math/rand/v2"
	"testing"
)

// forkCases are patterns whose derivatives are of all kinds.
var forkCases = []string{
	`a{2,9}b|c`, `(ab|ac|ad)*`, `(?!abc)[a-c]*`, `(?=.*b)(?!.*aa)[abc]{3,7}`, `(abc|abd|bcd|cab|cba){1,3}`, `[^a]b?c+`, `(a|b(?!c))*`,
}

func TestForkKnowsWhatWasThereAndNoMore(t *testing.T) {
	s := NewSet()
	var refs []Ref
	for _, pattern := range forkCases {
		r, err := s.Parse(pattern, Syntax{Anchored: true})
		if err != nil {
			t.Fatal(pattern, err)
		}
		refs = append(refs, r)
	}
	m := s.Mark()
	random := rand.New(rand.NewPCG(1, 2))
	var derived []Ref
	for _, r := range refs {
		for range 200 {
			d := r
			for range random.IntN(6) {
				d = s.Derive(d, "abc"[random.IntN(3)])
			}
			derived = append(derived, d)
		}
	}
	f := s.Fork(m)
	if f.Size() != m.nodes {
		t.Fatalf("a fork has %d expressions, want %d", f.Size(), m.nodes)
	}
	for _, into := range []*Set{s, f} {
		data := s.AppendBinary([]byte("before"), m, derived)
		read, rest, err := into.ReadBinary(append(data, "behind"...)[len("before"):], m)
		if err != nil || string(rest) != "behind" || len(read) != len(derived) {
			t.Fatalf("read %d of %d expressions, then %q: %v", len(read), len(derived), rest, err)
		}
		for at, d := range derived {
			if into == s && read[at] != d {
				t.Fatalf("expression %d is %d when it is read again in its own set, want %d", at, read[at], d)
			}
			for range 30 {
				a, b := d, read[at]
				for range random.IntN(8) {
					c := "abc"[random.IntN(3)]
					a, b = s.Derive(a, c), into.Derive(b, c)
				}
				someOfA, errA := s.Alive(a)
				someOfB, errB := into.Alive(b)
				if s.Nullable(a) != into.Nullable(b) || someOfA != someOfB || errA != nil || errB != nil {
					t.Fatalf("expression %d does not do the same in the other set", at)
				}
			}
		}
	}
	for at, r := range refs[:len(refs)-1] { // the last one makes a loop of its own each time
		again, err := f.Parse(forkCases[at], Syntax{Anchored: true})
		if err != nil || again != r {
			t.Errorf("%s is %d in the fork, want %d: %v", forkCases[at], again, r, err)
		}
	}
}

func TestReadBinaryRefusesOtherBytes(t *testing.T) {
	s := NewSet()
	r, err := s.Parse(`(?!abc)[a-c]{2,9}|(ab|ac|ad)*`, Syntax{Anchored: true})
	if err != nil {
		t.Fatal(err)
	}
	m := s.Mark()
	data := s.AppendBinary(nil, m, []Ref{s.DeriveText(r, "a"), s.DeriveText(r, "ab")})
	random := rand.New(rand.NewPCG(3, 4))
	refused := 0
	for range 20000 {
		bad := append([]byte(nil), data...)
		for range 1 + random.IntN(3) {
			bad[random.IntN(len(bad))] = byte(random.IntN(256))
		}
		if _, _, err := s.Fork(m).ReadBinary(bad[:random.IntN(len(bad)+1)], m); err != nil {
			refused++
		}
	}
	if refused == 0 {
		t.Error("nothing is refused")
	}
}
