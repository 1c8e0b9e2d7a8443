package match

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
)

func TestRecursionLeavesNoTrace(t *testing.T) {
	v := byteTokens()
	for _, c := range []struct {
		name  string
		part  string
		build func(b *rules.Builder) rules.Symbol
	}{
		{"left", "ab", func(b *rules.Builder) rules.Symbol {
			list := b.Declare("list")
			b.Define(list, b.Literal("ab"), b.Sequence(list, b.Literal("ab")))
			return list
		}},
		{"right", "ab", func(b *rules.Builder) rules.Symbol {
			list := b.Declare("list")
			b.Define(list, b.Literal("ab"), b.Sequence(b.Literal("ab"), list))
			return list
		}},
		{"right, by an optional rule", "ab", func(b *rules.Builder) rules.Symbol {
			list := b.Declare("list")
			b.Define(list, b.Sequence(b.Literal("a"), b.Literal("b"), b.Optional(list)))
			return b.Sequence(list, b.Optional(b.Literal(".")))
		}},
		{"right, by two rules", "ab", func(b *rules.Builder) rules.Symbol {
			even, odd := b.Declare("even"), b.Declare("odd")
			b.Define(even, rules.Empty, b.Sequence(b.Literal("a"), odd))
			b.Define(odd, b.Sequence(b.Literal("b"), even))
			return even
		}},
		{"repeated", "ab", func(b *rules.Builder) rules.Symbol {
			return b.Repeat(b.Sequence(b.Literal("a"), b.Literal("b")), rules.Empty, 2, rules.Unbounded)
		}},
		{"ambiguous", "ab", func(b *rules.Builder) rules.Symbol {
			list := b.Declare("list")
			b.Define(list, b.Literal("ab"), b.Sequence(list, list))
			return list
		}},
	} {
		m := machine(t, v, Limits{}, c.build)
		rows := 0
		for _, n := range []int{20, 200} {
			if text := strings.Repeat(c.part, n); !accepts(m, text) {
				t.Errorf("%s: %d parts are not accepted", c.name, n)
			}
			if made := len(m.tables.Load().rows); rows == 0 {
				rows = made
			} else if c.name != "ambiguous" && made != rows {
				t.Errorf("%s: %d parts make %d rows, want %d as for fewer", c.name, n, made, rows)
			}
		}
	}
}

// TestStepsAreLinear doubles texts and grammars and counts.
func TestStepsAreLinear(t *testing.T) {
	v := byteTokens()
	count := func(m *Machine, text string) int {
		w := m.work()
		n := m.Start().node
		for at := range len(text) {
			if n = n.step(text[at], w); n == nil || n == n.tables.dead {
				t.Fatalf("%.30q… stops at byte %d: %v", text, at, w.err)
			}
		}
		return m.limits.Steps - w.left
	}
	cases := []struct {
		name string
		make func(n int) (*Machine, string)
	}{
		{"nested", func(n int) (*Machine, string) {
			return jsonMachine(t, v, Limits{Depth: 1 << 20}), strings.Repeat("[", n) + strings.Repeat("]", n)
		}},
		{"nested objects", func(n int) (*Machine, string) {
			return jsonMachine(t, v, Limits{Depth: 1 << 20}), strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n)
		}},
		{"counted parts", func(n int) (*Machine, string) {
			m := machine(t, v, Limits{}, func(b *rules.Builder) rules.Symbol {
				return b.Repeat(b.Literal("a"), b.Literal(","), 0, 1000000)
			})
			return m, strings.Repeat("a,", n)
		}},
		{"counted characters", func(n int) (*Machine, string) {
			m := machine(t, v, Limits{}, func(b *rules.Builder) rules.Symbol {
				return b.Match(b.Regexes.Repeat(b.Regexes.NotRunes(), 3, 1000000))
			})
			return m, strings.Repeat("é", n)
		}},
		{"members that must come", func(n int) (*Machine, string) {
			var text strings.Builder
			m := machine(t, v, Limits{}, func(b *rules.Builder) rules.Symbol {
				var parts []rules.Symbol
				for i := range n {
					fmt.Fprintf(&text, `"k%d":1,`, i)
					parts = append(parts, b.Literal(fmt.Sprintf(`"k%d":`, i)), b.Match(b.Regexes.Repeat(b.Regexes.Bytes('0', '9'), 1, -1)), b.Literal(","))
				}
				return b.Sequence(parts...)
			})
			return m, text.String()
		}},
		{"words to choose from", func(n int) (*Machine, string) {
			m := machine(t, v, Limits{}, func(b *rules.Builder) rules.Symbol {
				var words []rules.Symbol
				for i := range n {
					words = append(words, b.Literal(fmt.Sprintf("w%d", i)))
				}
				return b.Either(words...)
			})
			return m, fmt.Sprint("w", n/2)
		}},
	}
	for _, c := range cases {
		m, text := c.make(500)
		small := count(m, text)
		m, text = c.make(1000)
		if large := count(m, text); large > 2*small+small/4 || small < 100 {
			t.Errorf("%s: %d steps, then %d for twice as much", c.name, small, large)
		}
	}
}

func TestDepthIsBounded(t *testing.T) {
	m := jsonMachine(t, byteTokens(), Limits{Depth: 50})
	if s, n := m.Start().NextBytes(bytes.Repeat([]byte("["), 100)); n < 45 || n > 55 {
		t.Errorf("%d brackets are taken, want about 50", n)
	} else if maskOf(t, s)['['/32]>>('['%32)&1 != 0 {
		t.Error("the mask has a bracket that may not come")
	} else if maskOf(t, s)[']'/32]>>(']'%32)&1 == 0 {
		t.Error("what is nested cannot be closed")
	}
}

func TestLimitsFailAlone(t *testing.T) {
	tokens := smallVocabulary()
	v := NewVocabulary(tokens, noControl)
	m := machine(t, v, Limits{Steps: 3000}, func(b *rules.Builder) rules.Symbol {
		var words []rules.Symbol
		for i := range 5000 {
			words = append(words, b.Sequence(b.Literal(fmt.Sprintf("b%d", i)), b.Literal("c")))
		}
		return b.Either(b.Sequence(b.Literal("a"), b.Literal("c")), b.Sequence(b.Literal("ab"), b.Either(words...)))
	})
	s, _ := m.Start().NextBytes([]byte("a"))
	if err := s.Mask(make([]uint32, v.Words())); !errors.Is(err, ErrLimit) {
		t.Errorf("too much work: %v", err)
	}
	if _, n := s.NextBytes([]byte("b")); n != 0 {
		t.Error("too much work is done for a byte")
	}
	if s, n := s.NextBytes([]byte("c")); n != 1 || !s.Done() {
		t.Error("another text of the grammar fails as well")
	}
}

func TestFullTablesAreBegunAnew(t *testing.T) {
	v := byteTokens()
	large, small := jsonMachine(t, v, Limits{}), jsonMachine(t, v, Limits{Bytes: 200 << 10})
	r := rand.New(rand.NewPCG(9, 9))
	begun := 0
	last := small.tables.Load()
	for range 30 {
		text := randomJSON(r, 6)
		a, b := large.Start(), small.Start()
		for at := range len(text) {
			var n int
			if a, n = a.NextBytes([]byte(text[at : at+1])); n != 1 {
				t.Fatalf("%q stops at %d", text, at)
			}
			if b, n = b.NextBytes([]byte(text[at : at+1])); n != 1 {
				t.Fatalf("%q stops at %d with small tables", text, at)
			}
			if !slices.Equal(maskOf(t, a), maskOf(t, b)) || a.Done() != b.Done() {
				t.Fatalf("behind %q small tables allow something else", text[:at+1])
			}
			if now := small.tables.Load(); now != last {
				begun++
				last = now
			}
		}
		if !a.Done() {
			t.Fatalf("%q is not done", text)
		}
	}
	if begun < 3 {
		t.Errorf("tables were begun anew %d times: the limit is too large for this test", begun)
	}
	if size := small.tables.Load().size(); size > 400<<10 {
		t.Errorf("the tables have %d bytes", size)
	}
}

// randomJSON is a value with some nesting.
func randomJSON(r *rand.Rand, depth int) string {
	var parts []string
	for range r.IntN(5) {
		if depth > 0 {
			parts = append(parts, randomJSON(r, depth-1))
		}
	}
	switch r.IntN(5) {
	case 0:
		for i := range parts {
			parts[i] = fmt.Sprintf(`"k%d":`, r.IntN(1000)) + parts[i]
		}
		return "{" + strings.Join(parts, ",") + "}"
	case 1:
		return fmt.Sprint(r.IntN(2000)-1000, ".5e", r.IntN(9))
	case 2:
		return fmt.Sprintf(`"s%d é \" \u00%x%x"`, r.IntN(100), r.IntN(16), r.IntN(16))
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func TestManyGoroutines(t *testing.T) {
	v := byteTokens()
	large, small := jsonMachine(t, v, Limits{}), jsonMachine(t, v, Limits{Bytes: 300 << 10})
	var texts []string
	r := rand.New(rand.NewPCG(4, 4))
	for range 8 {
		texts = append(texts, randomJSON(r, 4))
	}
	var running sync.WaitGroup
	for worker := range 8 {
		running.Go(func() {
			for at := range texts {
				text := texts[(at+worker)%len(texts)]
				a, b := large.Start(), small.Start()
				for at := range len(text) {
					a, _ = a.NextBytes([]byte(text[at : at+1]))
					b, _ = b.NextBytes([]byte(text[at : at+1]))
					x, y := make([]uint32, v.Words()), make([]uint32, v.Words())
					if err := errors.Join(a.Mask(x), b.Mask(y)); err != nil || !slices.Equal(x, y) {
						t.Errorf("behind %q masks differ: %v", text[:at+1], err)
						return
					}
				}
				if !a.Done() || !b.Done() {
					t.Errorf("%q is not done", text)
				}
			}
		})
	}
	running.Wait()
}
