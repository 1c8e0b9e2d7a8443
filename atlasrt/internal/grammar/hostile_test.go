package grammar

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestT078HostileForms compiles forms that are deep, large or without an end, and goes a few tokens into those that compile. Each is
// served or refused, by an *Error, and takes no more than some memory.
func TestT078HostileForms(t *testing.T) {
	many := func(n int, one string) string { return strings.Repeat(one, n) }
	nested := func(open, inside, shut string, n int) string { return many(n, open) + inside + many(n, shut) }
	choices := func(n int) (words []string) {
		for i := range n {
			words = append(words, fmt.Sprintf("choice %d", i))
		}
		return words
	}
	rules := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i, i+1)
		}
		fmt.Fprintf(&b, "r%d ::= \"x\"", n)
		return "root ::= r0\n" + b.String()
	}
	cases := map[string]Spec{
		"regex, nested counts":         {Kind: Regex, Text: "((((a{1,1000}){1,1000}){1,1000}){1,1000})b"},
		"regex, count":                 {Kind: Regex, Text: "a{1,100000}"},
		"regex, counts in a row":       {Kind: Regex, Text: many(500, "(a|b|ab){0,1000}") + "c"},
		"regex, nested stars":          {Kind: Regex, Text: nested("(", "a", ")*", 150)},
		"regex, deep":                  {Kind: Regex, Text: nested("(", "a", ")", 100_000)},
		"regex, unions":                {Kind: Regex, Text: "(" + strings.Join(choices(10_000), "|") + ")*"},
		"regex, last but n":            {Kind: Regex, Text: "[ab]*a[ab]{5000}"},
		"regex, look-ahead":            {Kind: Regex, Text: many(100, "(?!ab*c)(?=[abc]*)") + "[abc]*"},
		"regex, classes":               {Kind: Regex, Text: many(5000, `[\p{L}\d]`)},
		"choices":                      {Kind: Choice, Words: choices(90_000)},
		"long choices":                 {Kind: Choice, Words: []string{many(400_000, "a"), many(400_000, "a") + "b"}},
		"free of many words":           {Kind: Free, Words: choices(10_000)},
		"parts":                        {Kind: Either, Parts: make([]Spec, 200_000)},
		"repeats":                      {Kind: Repeat, Parts: []Spec{{Kind: Repeat, Parts: []Spec{{Kind: Repeat, Parts: []Spec{literal("ab")}, Max: 1 << 40}}, Max: 1 << 40}}, Min: 1, Max: 1 << 40},
		"gbnf, left recursion":         {Kind: GBNF, Text: rules(5000, "r%d ::= r%d \"a\" | r0\n")},
		"gbnf, right recursion":        {Kind: GBNF, Text: rules(5000, "r%d ::= \"a\" r%d | \"b\" r0\n")},
		"gbnf, empty loops":            {Kind: GBNF, Text: rules(1000, "r%d ::= r%d | r0 r0 | \"\"\n")},
		"gbnf, all refer to all":       {Kind: GBNF, Text: rules(30, "r%d ::= r%d "+many(30, "| r0 r1 r2 r3 ")+"\n")},
		"gbnf, ambiguous":              {Kind: GBNF, Text: "root ::= root root root | root root | \"a\" | \"\""},
		"gbnf, doubling":               {Kind: GBNF, Text: rules(200, "r%d ::= r%[2]d r%[2]d | root? \"b\"\n")},
		"gbnf, counts":                 {Kind: GBNF, Text: "root ::= ((((\"a\" root?){0,1000000} \"b\"){0,1000000} \"c\"){0,1000000} \"d\"){0,1000000}"},
		"gbnf, unmatched":              {Kind: GBNF, Text: "root ::= " + many(500_000, "(")},
		"gbnf, large":                  {Kind: GBNF, Text: "root ::= \"x\" root | " + many(100_000, "[a-z] \"b\" |") + "\"c\""},
		"gbnf, too large":              {Kind: GBNF, Text: "root ::= \"a\"" + many(2_000_000, " ")},
		"lark, ignored and ambiguous":  {Kind: Lark, Text: "start: (A | B | start)*\nA: /a+/\nB: /[ab]+/\n%ignore /[ ]*/\n%ignore /a?/"},
		"schema, deep":                 {Kind: Schema, Text: nested(`{"items":`, "true", "}", 10_000)},
		"schema, counts":               {Kind: Schema, Text: `{"type":"array","minItems":1000000000,"items":{"type":"string","minLength":1000000000}}`},
		"schema, alternatives":         {Kind: Schema, Text: `{"anyOf":[` + strings.TrimSuffix(many(10_000, `{"type":"object","properties":{"a":{"const":1}}},`), ",") + `]}`},
		"schema, references in cycles": {Kind: Schema, Text: `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`},
	}
	v := vocabulary("<go>")
	for name, spec := range cases {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			g, err := Compile(context.Background(), spec, v, Limits{})
			var refused *Error
			switch {
			case err != nil && !errors.As(err, &refused):
				t.Fatalf("%v, want an *Error", err)
			case err != nil:
				t.Logf("refused: %.200v", err)
			default:
				walk(t, g)
			}
			runtime.ReadMemStats(&after)
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<30 {
				t.Errorf("%d bytes were allocated", taken)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if kept := int(after.HeapAlloc) - int(before.HeapAlloc); kept > 256<<20 {
				t.Errorf("%d bytes are kept", kept)
			}
			runtime.KeepAlive(g)
		})
	}
}

// walk takes the first token that may come, again and again.
func walk(t *testing.T, g *Grammar) {
	s, mask := g.Start(), make([]uint32, 9)
	for range 10 {
		if err := s.Mask(mask); err != nil {
			t.Logf("over its limits: %v", err)
			return
		}
		id := 0
		for id < 288 && mask[id/32]&(1<<(id%32)) == 0 {
			id++
		}
		if id == 288 {
			if !s.Done() {
				t.Error("nothing may come, and the text may not end")
			}
			return
		}
		next, ok := s.Next(int32(id))
		if !ok {
			t.Fatalf("token %d may come and may not", id)
		}
		s = next
	}
}
