package match

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// FuzzMachine takes bytes through machines of random grammars: they keep to their limits, masks agree with what becomes of every token, and a state is the
// same when it is read again.
func FuzzMachine(f *testing.F) {
	f.Add(uint64(1), []byte("abcabc"))
	f.Add(uint64(77), []byte("aabbccab"))
	f.Add(uint64(4), []byte("0100")) // a text with many positions
	v := NewVocabulary(smallVocabulary(), noControl)
	f.Fuzz(func(t *testing.T, seed uint64, text []byte) {
		g, _ := random(rand.New(rand.NewPCG(seed, 3)))
		if g == nil {
			return
		}
		m, err := New(g, v, Limits{States: 1000, Bytes: 4 << 20, Steps: 1 << 14, Depth: 20})
		if err != nil {
			return
		}
		roomy, err := New(g, v, Limits{States: 100_000, Bytes: 64 << 20, Steps: 1 << 24, Depth: 20})
		if err != nil {
			t.Fatal(err)
		}
		s, same := m.Start(), roomy.Start()
		for at := range min(len(text), 16) {
			next, n := s.NextBytes([]byte{"abc"[text[at]%3]})
			if n == 0 {
				continue
			}
			s = next
			if same, n = same.NextBytes([]byte{"abc"[text[at]%3]}); n == 0 {
				t.Fatalf("seed %d: %q is refused at %d where there is more room", seed, text, at)
			}
			mask, other := make([]uint32, v.Words()), make([]uint32, v.Words())
			if err := s.Mask(mask); errors.Is(err, ErrLimit) {
				return
			}
			compareTokens(t, same, v, mask, seed, text) // Next of s may be over the limits where its mask was not
			data, err := s.AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			again, err := m.State(data)
			if err != nil {
				t.Fatal(err)
			}
			if err := again.Mask(other); errors.Is(err, ErrLimit) {
				return // what was made before may have been forgotten
			}
			if mask[0] != other[0] || s.Done() != again.Done() {
				t.Fatalf("seed %d: a state that is read again allows something else", seed)
			}
		}
	})
}
