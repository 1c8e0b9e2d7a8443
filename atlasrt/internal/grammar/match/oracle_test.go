package match

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
)

// terminalCases are terminals of random grammars, for the set and for package regexp.
var terminalCases = []struct {
	pattern string
	build   func(s *regex.Set) regex.Ref
}{
	{"a", func(s *regex.Set) regex.Ref { return s.Literal("a") }},
	{"b", func(s *regex.Set) regex.Ref { return s.Literal("b") }},
	{"ab", func(s *regex.Set) regex.Ref { return s.Literal("ab") }},
	{"c", func(s *regex.Set) regex.Ref { return s.Literal("c") }},
	{"a+", func(s *regex.Set) regex.Ref { return s.Repeat(s.Literal("a"), 1, -1) }},
	{"[ab]{1,2}", func(s *regex.Set) regex.Ref { return s.Repeat(s.Bytes('a', 'b'), 1, 2) }},
	{"[abc]*b", func(s *regex.Set) regex.Ref {
		return s.Concat(s.Repeat(s.Bytes('a', 'c'), 0, -1), s.Literal("b"))
	}},
}

// random is a grammar with rules of all kinds, and the patterns of its terminals.
func random(r *rand.Rand) (*rules.Grammar, map[rules.Symbol]*regexp.Regexp) {
	b := rules.NewBuilder()
	patterns := map[rules.Symbol]*regexp.Regexp{}
	pool := []rules.Symbol{rules.Empty}
	for range 1 + r.IntN(4) {
		c := terminalCases[r.IntN(len(terminalCases))]
		s := b.Match(c.build(b.Regexes))
		patterns[s] = regexp.MustCompile("^(?:" + c.pattern + ")$")
		pool = append(pool, s)
	}
	var declared []rules.Symbol
	for i := range 1 + r.IntN(4) {
		declared = append(declared, b.Declare(fmt.Sprint("rule", i)))
	}
	pool = append(pool, declared...)
	pick := func() rules.Symbol { return pool[r.IntN(len(pool))] }
	sequence := func() rules.Symbol {
		var parts []rules.Symbol
		for range r.IntN(4) {
			parts = append(parts, pick())
		}
		return b.Sequence(parts...)
	}
	for range r.IntN(4) {
		least := r.IntN(3)
		most := least + r.IntN(3)
		if r.IntN(3) == 0 {
			most = rules.Unbounded
		}
		separator := rules.Empty
		if r.IntN(2) == 0 {
			separator = pick()
		}
		pool = append(pool, b.Repeat(pick(), separator, least, most))
	}
	for _, rule := range declared {
		var alternatives []rules.Symbol
		for range 1 + r.IntN(3) {
			alternatives = append(alternatives, sequence())
		}
		b.Define(rule, alternatives...)
	}
	g, err := b.Grammar(declared[0])
	if err != nil {
		return nil, nil
	}
	return g, patterns
}

// naive recognises by filling a table of which symbol is which part of a text until nothing is added.
type naive struct {
	grammar  *rules.Grammar
	patterns map[rules.Symbol]*regexp.Regexp
	text     string
	is       map[[3]int]bool // symbol, from, to
}

func (n *naive) accepts(text string) bool {
	n.text, n.is = text, map[[3]int]bool{}
	for changed := true; changed; {
		changed = false
		for s := range n.grammar.Symbols {
			for from := range len(text) + 1 {
				for to := from; to <= len(text); to++ {
					if !n.is[[3]int{s, from, to}] && n.spans(rules.Symbol(s), from, to) {
						n.is[[3]int{s, from, to}] = true
						changed = true
					}
				}
			}
		}
	}
	return n.is[[3]int{int(n.grammar.Start), 0, len(text)}]
}

func (n *naive) spans(s rules.Symbol, from, to int) bool {
	d := n.grammar.Symbols[s]
	switch d.Kind {
	case rules.Terminal:
		return n.patterns[s].MatchString(n.text[from:to])
	case rules.Rule:
		for _, a := range d.Alternatives {
			if n.ends(map[int]bool{from: true}, a)[to] {
				return true
			}
		}
		return false
	}
	most := d.Max
	if most == rules.Unbounded {
		most = d.Min + len(n.text) + 2
	}
	at := map[int]bool{from: true}
	for count := 0; count <= most; count++ {
		if count >= d.Min && at[to] {
			return true
		}
		if count > 0 {
			at = n.ends(at, []rules.Symbol{d.Separator})
		}
		at = n.ends(at, []rules.Symbol{d.Part})
	}
	return false
}

// ends is where a sequence may end that begins at some places.
func (n *naive) ends(at map[int]bool, sequence []rules.Symbol) map[int]bool {
	for _, part := range sequence {
		next := map[int]bool{}
		for from := range at {
			for to := from; to <= len(n.text); to++ {
				if n.is[[3]int{int(part), from, to}] {
					next[to] = true
				}
			}
		}
		at = next
	}
	return at
}

// texts are all texts of a, b and c with up to n bytes.
func texts(n int) []string {
	all := []string{""}
	for from := 0; n > 0; n-- {
		end := len(all)
		for ; from < end; from++ {
			for _, c := range "abc" {
				all = append(all, all[from]+string(c))
			}
		}
	}
	return all
}

func show(g *rules.Grammar, patterns map[rules.Symbol]*regexp.Regexp) string {
	var b strings.Builder
	fmt.Fprintf(&b, "start %d\n", g.Start)
	for s, d := range g.Symbols {
		switch d.Kind {
		case rules.Terminal:
			fmt.Fprintf(&b, "%d: %s\n", s, patterns[rules.Symbol(s)])
		case rules.Rule:
			fmt.Fprintf(&b, "%d: one of %v\n", s, d.Alternatives)
		default:
			fmt.Fprintf(&b, "%d: %d by %d, %d to %d\n", s, d.Part, d.Separator, d.Min, d.Max)
		}
	}
	return b.String()
}

func TestMachineAgreesWithNaive(t *testing.T) {
	v := NewVocabulary(smallVocabulary(), func(id int32) bool { return false })
	all := texts(4)
	grammars, accepted := 0, 0
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		g, patterns := random(r)
		if g == nil {
			continue
		}
		m, err := New(g, v, Limits{})
		if err != nil {
			n := &naive{grammar: g, patterns: patterns}
			if errors.Is(err, ErrNothing) && !slices.ContainsFunc(all, n.accepts) {
				continue
			}
			if !strings.Contains(err.Error(), "separator may be empty") {
				t.Fatalf("seed %d: %v\n%s", seed, err, show(g, patterns))
			}
			continue
		}
		grammars++
		n := &naive{grammar: g, patterns: patterns}
		for _, text := range all {
			state, fit := m.Start().NextBytes([]byte(text))
			got := fit == len(text) && state.Done()
			want := n.accepts(text)
			if got != want {
				t.Fatalf("seed %d: %q is accepted: %v, want %v\n%s", seed, text, got, want, show(g, patterns))
			}
			if want {
				accepted++
			}
			if fit < len(text) {
				continue
			}
			if rest, ok := completion(state, 14); !ok {
				t.Logf("seed %d: %q has no short completion\n%s", seed, text, show(g, patterns))
			} else if len(rest)+len(text) <= 9 && !n.accepts(text+rest) {
				t.Fatalf("seed %d: %q fits, and %q is said to complete it\n%s", seed, text, rest, show(g, patterns))
			}
			if r.IntN(20) == 0 {
				compareMask(t, state, v, seed, text)
			}
		}
	}
	t.Logf("%d grammars, %d texts accepted", grammars, accepted)
}

// completion is a shortest text of a, b and c behind which a state's text may end.
func completion(s State, most int) (string, bool) {
	type visit struct {
		state State
		text  string
	}
	queue := []visit{{s, ""}}
	seen := map[State]bool{s: true}
	for at := 0; at < len(queue); at++ {
		v := queue[at]
		if v.state.Done() {
			return v.text, true
		}
		if len(v.text) == most {
			return "", false
		}
		for _, c := range "abc" {
			if next, fit := v.state.NextBytes([]byte{byte(c)}); fit == 1 && !seen[next] {
				seen[next] = true
				queue = append(queue, visit{next, v.text + string(c)})
			}
		}
	}
	return "", false
}

// smallVocabulary has all texts of up to three letters, some twice, and one without bytes.
func smallVocabulary() [][]byte {
	var tokens [][]byte
	for _, text := range texts(3) {
		tokens = append(tokens, []byte(text))
	}
	return append(tokens, []byte("ab"), []byte("abcabc"), []byte("é"), []byte("\xc3"))
}

// compareMask compares a state's mask with what becomes of every token.
func compareMask(t *testing.T, s State, v *Vocabulary, where ...any) {
	t.Helper()
	mask := make([]uint32, v.Words())
	mask[0] = ^uint32(0)
	if err := s.Mask(mask); err != nil {
		t.Fatal(err)
	}
	compareTokens(t, s, v, mask, where...)
}

// compareTokens compares a mask with what becomes of every token.
func compareTokens(t *testing.T, s State, v *Vocabulary, mask []uint32, where ...any) {
	t.Helper()
	for id := range int32(v.Tokens()) {
		_, want := s.Next(id)
		if got := mask[id/32]>>(id%32)&1 != 0; got != want {
			t.Fatalf("%v: token %d %q is in the mask: %v, want %v", where, id, v.text(id), got, want)
		}
	}
}
