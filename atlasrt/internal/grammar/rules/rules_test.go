package rules

import (
	"slices"
	"strings"
	"testing"
)

func TestWhatIsNothingStaysNothing(t *testing.T) {
	b := NewBuilder()
	a := b.Literal("a")
	cases := []struct {
		name      string
		got, want Symbol
	}{
		{"a sequence with nothing", b.Sequence(a, Nothing), Nothing},
		{"an empty sequence", b.Sequence(), Empty},
		{"a sequence of one", b.Sequence(Empty, a, Empty), a},
		{"none", b.Either(), Nothing},
		{"one or nothing at all", b.Either(a, Nothing, a), a},
		{"nothing, perhaps", b.Optional(Nothing), Empty},
		{"no times", b.Repeat(a, Empty, 0, 0), Empty},
		{"nothing, from none", b.Repeat(Nothing, Empty, 0, 5), Empty},
		{"nothing, once at least", b.Repeat(Nothing, Empty, 1, 5), Nothing},
		{"more than there may be", b.Repeat(a, Empty, 3, 2), Nothing},
		{"once", b.Repeat(a, Empty, 1, 1), a},
		{"the same literal", b.Literal("a"), a},
		{"the empty literal", b.Literal(""), Empty},
	}
	for _, c := range cases {
		if c.got != c.want {
			t.Errorf("%s is symbol %d, want %d", c.name, c.got, c.want)
		}
	}
}

func TestTerminalsAreNeverEmpty(t *testing.T) {
	b := NewBuilder()
	s := b.Match(b.Regexes.Repeat(b.Regexes.Bytes('a', 'z'), 0, -1))
	g, err := b.Grammar(s)
	if err != nil {
		t.Fatal(err)
	}
	if d := g.Symbols[s]; d.Kind != Rule || !slices.ContainsFunc(d.Alternatives, func(a []Symbol) bool { return slices.Equal(a, []Symbol{Empty}) }) {
		t.Errorf("a text that may be empty is %+v, want a rule with the empty text", d)
	}
	for _, d := range g.Symbols {
		if d.Kind == Terminal && g.Regexes.Nullable(d.Regex) {
			t.Errorf("a terminal matches the empty text: %+v", d)
		}
	}
}

func TestRulesMustBeDefined(t *testing.T) {
	b := NewBuilder()
	value := b.Declare("value")
	if _, err := b.Grammar(b.Sequence(b.Literal("a"), value)); err == nil || !strings.Contains(err.Error(), "value") {
		t.Errorf("a rule that is not defined: %v", err)
	}
	b.Define(value, b.Literal("b"))
	if _, err := b.Grammar(value); err != nil {
		t.Error(err)
	}
}
