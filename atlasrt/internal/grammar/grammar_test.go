package grammar

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/ebnf"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/match"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/schema"
)

// vocabulary is the bytes and some control tokens.
func vocabulary(controls ...string) *match.Vocabulary {
	var tokens [][]byte
	for b := range 256 {
		tokens = append(tokens, []byte{byte(b)})
	}
	for _, c := range controls {
		tokens = append(tokens, []byte(c))
	}
	return match.NewVocabulary(tokens, func(id int32) bool { return id >= 256 })
}

// accepts tells whether a text is of a form. Control tokens in it stand between ⟦ and ⟧.
func accepts(g *Grammar, text string) bool {
	text = strings.NewReplacer("⟦", "\xff", "⟧", "\xfe").Replace(text)
	s, n := g.Start().NextBytes([]byte(text))
	return n == len(text) && s.Done()
}

type texts []string

func literal(text string) Spec { return Spec{Kind: Literal, Text: text} }

func TestSpecs(t *testing.T) {
	free := func(words ...string) Spec { return Spec{Kind: Free, Words: words} }
	parts := func(k Kind, p ...Spec) Spec { return Spec{Kind: k, Parts: p} }
	object := `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	cases := []struct {
		name    string
		spec    Spec
		in, out texts
	}{
		{"schema", Spec{Kind: Schema, Text: object}, texts{`{"a":1}`, `{"a":-2,"b":"ü\n"}`}, texts{`{}`, `{"a": 1}`, `{"a":1.5}`, `{"a":1}x`}},
		{"schema, spaced", Spec{Kind: Schema, Text: object, Notation: Spaced}, texts{`{"a": 1, "b": ""}`}, texts{`{"a":1}`, `{"a": 1,"b": ""}`}},
		{"schema, flexible", Spec{Kind: Schema, Text: object, Notation: Flexible}, texts{`{"a":1}`, "{\n  \"a\": 1\n}"}, texts{`{}`}},
		{"regex", Spec{Kind: Regex, Text: `[a-c]{2,3}|é?`}, texts{"", "ab", "cab", "é"}, texts{"a", "abcd", "xab"}},
		{"choice", Spec{Kind: Choice, Words: []string{"yes", "no", "yes, but", "no"}}, texts{"yes", "no", "yes, but"}, texts{"", "yes,", "noyes"}},
		{"gbnf", Spec{Kind: GBNF, Text: `root ::= "(" root ")" | "x"`}, texts{"x", "((x))"}, texts{"", "((x)"}},
		{"lark", Spec{Kind: Lark, Text: "start: \"(\" start \")\" | \"x\"\n%ignore \" \""}, texts{"x", "( ( x ) ) "}, texts{"", "((x)"}},
		{"literal", literal("a\n"), texts{"a\n"}, texts{"a", ""}},
		{"empty literal", literal(""), texts{""}, texts{"a"}},
		{"control token", Spec{Kind: Control, Text: "<go>"}, texts{"⟦<go>⟧"}, texts{"<go>", ""}},
		{"control token that is none", Spec{Kind: Control, Text: "<no>"}, texts{"<no>"}, texts{"⟦<no>⟧"}},
		{"free", free(), texts{"", "é😀 {\n", "⟦<go>⟧ and ⟦<stop>⟧", "<go>"}, texts{"\x80", "é\xc3", "⟦⟧"}},
		{"free of a control token", free("<go>"), texts{"a <go>", "⟦<stop>⟧"}, texts{"⟦<go>⟧", "a⟦<go>⟧b"}},
		{"free of a text", free("<no>", "x"), texts{"a <no", "⟦<go>⟧<n", "<<no"}, texts{"<no>", "a<no>", "axb", "<<no>"}},
		{"free of a beginning", Spec{Kind: Free, Not: ` *\{`}, texts{"", "a {", "  ", " a{"}, texts{"{", "  {a"}},
		{"free to a mark", parts(Sequence, free("<go>"), Spec{Kind: Control, Text: "<go>"}, literal("x"), free("<go>")), texts{"⟦<go>⟧x", "<go>a⟦<go>⟧xyz"}, texts{"x", "<go>x", "⟦<go>⟧y", "⟦<go>⟧x⟦<go>⟧"}},
		{"free to a text", parts(Sequence, free("<no>"), literal("<no>x")), texts{"<no>x", "a<<n<no>x"}, texts{"<no>y", "<no><no>x"}},
		{"sequence", parts(Sequence, literal("a"), literal(""), Spec{Kind: Regex, Text: "b*"}), texts{"a", "abb"}, texts{"", "b"}},
		{"empty sequence", parts(Sequence), texts{""}, texts{"a"}},
		{"either", parts(Either, literal("a"), literal("bc"), parts(Sequence)), texts{"", "a", "bc"}, texts{"b", "abc"}},
		{"repeat", Spec{Kind: Repeat, Parts: []Spec{literal("ab")}, Min: 1, Max: 3}, texts{"ab", "ababab"}, texts{"", "aba", "abababab"}},
		{"repeat without a bound", Spec{Kind: Repeat, Parts: []Spec{Spec{Kind: Regex, Text: "a?"}}, Min: 2, Max: Unbounded}, texts{"", "a", "aaaaaa"}, texts{"b"}},
		{"repeat of nothing", Spec{Kind: Repeat, Parts: []Spec{literal("")}, Min: 2, Max: 5}, texts{""}, texts{"a"}},
	}
	v := vocabulary("<go>", "<stop>")
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g, err := Compile(context.Background(), c.spec, v, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range c.in {
				if !accepts(g, text) {
					t.Errorf("refuses %q", text)
				}
			}
			for _, text := range c.out {
				if accepts(g, text) {
					t.Errorf("accepts %q", text)
				}
			}
		})
	}
}

func TestErrors(t *testing.T) {
	schemaOf := func(text string) Spec { return Spec{Kind: Schema, Text: text} }
	deep := literal("x")
	for range 100 {
		deep = Spec{Kind: Sequence, Parts: []Spec{deep}}
	}
	cases := []struct {
		spec   Spec
		limits Limits
		want   string
	}{
		{schemaOf(`{"type":"foo"}`), Limits{}, "schema: "},
		{schemaOf(`{`), Limits{}, "schema: "},
		{schemaOf(`[]`), Limits{}, "schema: "},
		{schemaOf(`false`), Limits{}, "schema: "},
		{schemaOf(`{"$ref":"https://example.com/x"}`), Limits{}, "schema: "},
		{schemaOf(`{"type":"array","items":{"enum":[1,2]},"uniqueItems":true,"minItems":3}`), Limits{}, "schema: no value satisfies this JSON schema"},
		{Spec{Kind: Schema, Text: "{}", Notation: "odd"}, Limits{}, `schema: the notation "odd" is not known`},
		{Spec{Kind: Regex, Text: "("}, Limits{}, "regex: "},
		{Spec{Kind: Regex, Text: `(a)\1`}, Limits{}, "regex: "},
		{Spec{Kind: Regex, Text: `[^\s\S]`}, Limits{}, "regex: the grammar allows nothing"},
		{Spec{Kind: Choice}, Limits{}, "choice: there is nothing to choose from"},
		{Spec{Kind: Choice, Words: []string{"a", "\xff"}}, Limits{}, "choice: text 1 is no valid UTF-8"},
		{literal("\xff"), Limits{}, "literal: the text is no valid UTF-8"},
		{Spec{Kind: Control, Text: "\xff"}, Limits{}, "control: the text is no valid UTF-8"},
		{Spec{Kind: Control}, Limits{}, "control: a mark has no text"},
		{Spec{Kind: Free, Words: []string{""}}, Limits{}, "free: a mark has no text"},
		{Spec{Kind: Free, Not: "("}, Limits{}, "free: "},
		{Spec{Kind: GBNF, Text: "root ::= \"a\"\n  | b"}, Limits{}, "gbnf: line 2, column 5: "},
		{Spec{Kind: GBNF, Text: "root ::= \"a\" root"}, Limits{}, "gbnf: the grammar allows nothing"},
		{Spec{Kind: Lark, Text: "start: a"}, Limits{}, "lark: line 1, column 8: "},
		{Spec{Kind: "odd"}, Limits{}, "odd: no such kind of form is known"},
		{Spec{Kind: Repeat}, Limits{}, "repeat: has 0 parts"},
		{Spec{Kind: Repeat, Parts: []Spec{literal("a")}, Min: 3, Max: 2}, Limits{}, "repeat: has 1 parts, from 3 to 2 times"},
		{Spec{Kind: Either}, Limits{}, "either: the grammar allows nothing"},
		{Spec{Kind: Sequence, Name: "tools", Parts: []Spec{{Kind: Either, Parts: []Spec{{Kind: Regex, Text: "(", Name: "tools[0]"}}}}}, Limits{}, "tools[0] (regex): "},
		{Spec{Kind: Sequence, Name: "tools", Parts: []Spec{{Kind: Regex, Text: "("}}}, Limits{}, "tools (regex): "},
		{deep, Limits{}, "sequence: takes more than 64 levels of parts"},
		{Spec{Kind: Either, Parts: make([]Spec, 20)}, Limits{Parts: 10}, ": takes more than 10 parts"},
		{Spec{Kind: Choice, Words: make([]string, 20)}, Limits{Parts: 10}, "choice: takes more than 10 parts"},
		{Spec{Kind: Choice, Words: []string{strings.Repeat("x", 20)}}, Limits{Bytes: 10}, "choice: takes more than 10 bytes"},
		{Spec{Kind: GBNF, Text: "root ::= r \"a\" r\nr ::= r \"b\" | \"c\"\n"}, Limits{Symbols: 3}, "gbnf: takes more than 3 rules"},
		{Spec{Kind: Regex, Text: "(a1|b2|c3|d4|e5|f6)*g*h?"}, Limits{Expressions: 10}, "regex: takes more than 10 regular expressions"},
	}
	for _, c := range cases {
		_, err := Compile(context.Background(), c.spec, vocabulary(), c.limits)
		var typed *Error
		if !errors.As(err, &typed) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.200v:\n got %v\nwant %s", c.spec, err, c.want)
		}
	}
}

// Dialects tell by the type of an error what to blame.
func TestErrorsKeepTheirCause(t *testing.T) {
	cause := func(s Spec) error {
		_, err := Compile(context.Background(), s, vocabulary(), Limits{})
		return err
	}
	var unsupported *schema.Unsupported
	if err := cause(Spec{Kind: Schema, Text: `{"$ref":"https://example.com/x"}`}); !errors.As(err, &unsupported) || unsupported.Keyword != "$ref" {
		t.Errorf("%v, want a *schema.Unsupported of $ref", err)
	}
	var invalid *schema.Invalid
	if err := cause(Spec{Kind: Schema, Text: `{"type":"foo"}`}); !errors.As(err, &invalid) {
		t.Errorf("%v, want a *schema.Invalid", err)
	}
	var place *ebnf.Error
	if err := cause(Spec{Kind: GBNF, Text: "\nroot ="}); !errors.As(err, &place) || place.Line != 2 {
		t.Errorf("%v, want an *ebnf.Error of line 2", err)
	}
	var large *TooLarge
	if err := cause(literal(strings.Repeat("x", 2<<20))); !errors.As(err, &large) {
		t.Errorf("%v, want a *TooLarge", err)
	}
}

func TestT081PanicCostsItsRequestAlone(t *testing.T) {
	v := vocabulary()
	spec := Spec{Kind: Sequence, Parts: []Spec{literal("a"), {Kind: Schema, Text: "{}"}}}
	for _, kind := range []Kind{Schema, Literal} {
		c := newCompiler(context.Background(), v, Limits{})
		c.fronts[kind] = func(*compiler, *Spec) (rules.Symbol, error) {
			var none []int
			return rules.Symbol(none[1]), nil
		}
		g, err := c.compile(&spec)
		var fault *Fault
		if g != nil || !errors.As(err, &fault) || fault.Kind != kind || !strings.Contains(string(fault.Stack), "grammar_test.go") {
			t.Errorf("a panic in %s gives %v and %v, want a *Fault with its stack", kind, g, err)
		} else if text := err.Error(); strings.Contains(text, "range") || strings.Contains(text, ".go") {
			t.Errorf("the error tells a client of the inside: %s", text)
		}
	}
	if g, err := Compile(context.Background(), spec, v, Limits{}); err != nil || !accepts(g, `a{}`) {
		t.Errorf("the next request fails: %v", err)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	g, err := Compile(ctx, literal("a"), vocabulary(), Limits{})
	if g != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v and %v, want the error of the context", g, err)
	}
}

func TestLooseSchemas(t *testing.T) {
	spec := Spec{Kind: Schema, Name: "f", Text: `{"$ref":"https://example.com/x"}`, Loose: true}
	twice := Spec{Kind: Sequence, Parts: []Spec{spec, literal(";"), spec}}
	g, err := Compile(context.Background(), twice, vocabulary(), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if !accepts(g, `{"a":[1]};{}`) || accepts(g, `1;{}`) || accepts(g, `{};1`) {
		t.Error("a loose schema is not any object")
	}
	if notes := g.Notes(); len(notes) != 1 || !strings.HasPrefix(notes[0].String(), "f: any object may come: this JSON schema cannot be held to: ") {
		t.Errorf("notes %v, want one on f", notes)
	}
	spec.Text = `{"type":"object","required":["a"]}`
	if g, err = Compile(context.Background(), spec, vocabulary(), Limits{}); err != nil || accepts(g, `{}`) || len(g.Notes()) > 0 {
		t.Errorf("%v: a loose schema that can be held is not, or is noted", err)
	}
	spec = Spec{Kind: Schema, Text: `{"type":"string","format":"phone"}`}
	if g, err = Compile(context.Background(), spec, vocabulary(), Limits{}); err != nil || !accepts(g, `"x"`) || len(g.Notes()) != 1 || !strings.Contains(g.Notes()[0].String(), `the format "phone"`) {
		t.Errorf("%v: a format that nobody knows is held, or is not noted", err)
	}
}

// A state goes to another process with the Spec.
func TestStatesOfAnotherCompilation(t *testing.T) {
	spec := Spec{Kind: Sequence, Parts: []Spec{{Kind: Free, Words: []string{"<go>"}}, {Kind: Control, Text: "<go>"}, {Kind: Schema, Text: `{"type":"array","items":{"type":"integer"}}`}}}
	compiled := func() *Grammar {
		g, err := Compile(context.Background(), spec, vocabulary("<go>"), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	one, other := compiled(), compiled()
	for _, text := range []string{"", "a<", "a\xff<go>\xfe", "\xff<go>\xfe[12", "\xff<go>\xfe[1,2]"} {
		s, n := one.Start().NextBytes([]byte(text))
		if n < len(text) {
			t.Fatalf("%q is refused behind %d bytes", text, n)
		}
		encoded, err := s.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := other.State(encoded)
		if err != nil {
			t.Fatalf("behind %q: %v", text, err)
		}
		mask, want := make([]uint32, 9), make([]uint32, 9)
		if err := errors.Join(s.Mask(want), again.Mask(mask)); err != nil {
			t.Fatal(err)
		}
		if s.Done() != again.Done() || string(words(mask)) != string(words(want)) {
			t.Errorf("behind %q the states differ", text)
		}
	}
}

func words(mask []uint32) (b []byte) {
	for _, w := range mask {
		b = append(b, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
	}
	return b
}
