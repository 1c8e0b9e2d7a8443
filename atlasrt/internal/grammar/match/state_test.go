package match

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
)

func noControl(int32) bool { return false }

// byteTokens is a vocabulary of one token for each byte.
func byteTokens() *Vocabulary {
	var tokens [][]byte
	for b := range 256 {
		tokens = append(tokens, []byte{byte(b)})
	}
	return NewVocabulary(tokens, noControl)
}

func machine(t testing.TB, v *Vocabulary, limits Limits, build func(b *rules.Builder) rules.Symbol) *Machine {
	t.Helper()
	b := rules.NewBuilder()
	g, err := b.Grammar(build(b))
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(g, v, limits)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func accepts(m *Machine, text string) bool {
	s, n := m.Start().NextBytes([]byte(text))
	return n == len(text) && s.Done()
}

func maskOf(t testing.TB, s State) []uint32 {
	t.Helper()
	mask := make([]uint32, s.machine.vocabulary.Words())
	if err := s.Mask(mask); err != nil {
		t.Fatal(err)
	}
	return mask
}

// jsonMachine is one of any JSON value.
func jsonMachine(t testing.TB, v *Vocabulary, limits Limits) *Machine {
	t.Helper()
	j := newJSONRules()
	g, err := j.Grammar(j.value)
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(g, v, limits)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestZeroStateAllowsNothing(t *testing.T) {
	var s State
	mask := []uint32{7}
	if err := s.Mask(mask); err != nil || mask[0] != 0 {
		t.Errorf("the mask is %v, %v", mask, err)
	}
	if _, ok := s.Next(0); ok || s.Done() {
		t.Error("the zero State allows something")
	}
	if _, n := s.NextBytes([]byte("a")); n != 0 {
		t.Error("the zero State takes bytes")
	}
	if _, ok := s.Only(); ok {
		t.Error("the zero State knows a token")
	}
	if _, err := s.AppendBinary(nil); err == nil {
		t.Error("the zero State is encoded")
	}
}

func TestNothingIsAnError(t *testing.T) {
	b := rules.NewBuilder()
	loop := b.Declare("loop")
	b.Define(loop, b.Sequence(b.Literal("a"), loop))
	g, err := b.Grammar(loop)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(g, byteTokens(), Limits{}); !errors.Is(err, ErrNothing) {
		t.Errorf("a grammar without a text: %v", err)
	}
}

func TestControlTokensAreNotTheirText(t *testing.T) {
	v := NewVocabulary([][]byte{[]byte("<end>"), []byte("<end>"), []byte("<"), []byte("a"), nil}, func(id int32) bool { return id == 1 || id == 4 })
	m := machine(t, v, Limits{}, func(b *rules.Builder) rules.Symbol {
		return b.Sequence(b.Match(b.Regexes.Text()), b.Literal("\xff<end>\xfe"))
	})
	if got := maskOf(t, m.Start()); got[0] != 0b01111 {
		t.Errorf("the mask is %05b, want all but the token without bytes", got)
	}
	s, _ := m.Start().Next(0)
	if s.Done() {
		t.Error("the text of a control token ends the answer")
	}
	if s, ok := s.Next(1); !ok || !s.Done() {
		t.Error("a control token does not end the answer")
	}
	for _, token := range []int32{-1, 4, 5} {
		if _, ok := s.Next(token); ok {
			t.Errorf("token %d may come", token)
		}
	}
}

func TestStatesDoNotDependOnTokens(t *testing.T) {
	v := NewVocabulary(smallVocabulary(), noControl)
	r := rand.New(rand.NewPCG(5, 6))
	compared := 0
	for seed := range uint64(300) {
		g, _ := random(rand.New(rand.NewPCG(seed, 2)))
		if g == nil {
			continue
		}
		m, err := New(g, v, Limits{})
		if err != nil {
			continue
		}
		for range 20 {
			// A random walk over tokens, and the same text by bytes.
			s := m.Start()
			var text []byte
			for range 4 {
				id := int32(r.IntN(v.Tokens()))
				if next, ok := s.Next(id); ok {
					s, text = next, append(text, v.text(id)...)
				}
			}
			again := m.Start()
			for _, b := range text {
				again, _ = again.NextBytes([]byte{b})
			}
			if s != again {
				t.Fatalf("seed %d: %q leads to another state by bytes", seed, text)
			}
			compared += len(text)
			encoded, err := s.AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			if back, err := m.State(encoded); err != nil || back != s {
				t.Fatalf("seed %d: %q is another state when it is read again: %v", seed, text, err)
			}
		}
	}
	if compared == 0 {
		t.Error("no text was compared")
	}
}

func TestStatesMoveToOtherMachines(t *testing.T) {
	v := byteTokens()
	a, b := jsonMachine(t, v, Limits{}), jsonMachine(t, v, Limits{})
	text := []byte(`{"a":[1,{"b":"x\n","c":[[-2.5e3,"é"]]}],"d":null}`)
	for at := range len(text) + 1 {
		s, _ := a.Start().NextBytes(text[:at])
		data, err := s.AppendBinary([]byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		moved, err := b.State(data[1:])
		if err != nil {
			t.Fatalf("behind %q: %v", text[:at], err)
		}
		if !slices.Equal(maskOf(t, s), maskOf(t, moved)) || s.Done() != moved.Done() {
			t.Fatalf("behind %q the other machine allows something else", text[:at])
		}
		if end, n := moved.NextBytes(text[at:]); n != len(text)-at || !end.Done() {
			t.Fatalf("behind %q the other machine does not take the rest", text[:at])
		}
	}
	s, _ := a.Start().NextBytes(text[:20])
	data, _ := s.AppendBinary(nil)
	r := rand.New(rand.NewPCG(7, 8))
	refused := 0
	for range 5000 {
		bad := slices.Clone(data)
		bad[8+r.IntN(len(bad)-8)] = byte(r.IntN(256))
		got, err := b.State(bad[:8+r.IntN(len(bad)-7)])
		if err != nil {
			refused++
			continue
		}
		_ = got.Mask(make([]uint32, v.Words()))
	}
	if refused == 0 {
		t.Error("no bytes are refused")
	}
	other := machine(t, v, Limits{}, func(b *rules.Builder) rules.Symbol { return b.Literal("a") })
	if _, err := other.State(data); err == nil || !strings.Contains(err.Error(), "another grammar") {
		t.Errorf("a state of another grammar: %v", err)
	}
}

func TestOnly(t *testing.T) {
	v := NewVocabulary([][]byte{[]byte("a"), []byte("ab"), []byte("b"), []byte("c"), []byte("bc")}, noControl)
	m := machine(t, v, Limits{}, func(b *rules.Builder) rules.Symbol {
		return b.Sequence(b.Literal("cbca"), b.Optional(b.Literal("c")))
	})
	s := m.Start()
	if token, ok := s.Only(); !ok || token != 3 {
		t.Errorf("the only token is %d, %v, want c", token, ok)
	}
	s, _ = s.Next(3)
	if token, ok := s.Only(); ok {
		t.Errorf("the only token is %d, and b and bc may come", token)
	}
	s, _ = s.NextBytes([]byte("bca"))
	if _, ok := s.Only(); ok || !s.Done() {
		t.Error("c must come, and the text may end")
	}
}
