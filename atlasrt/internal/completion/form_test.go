package completion

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/option"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
)

// formed is a generator whose model thinks and calls, over an engine of which the test sees the requests.
func formed(t *testing.T, tok *tokenizer.Tokenizer) (*Generator, *scripted) {
	t.Helper()
	e := &scripted{}
	g := &Generator{Engine: e, Tokenizer: tok, End: []int32{endToken}, MaxContext: 1000, Vocab: int32(tok.VocabSize()), Defaults: sample.Defaults()}
	g.Formats = Formats{Reasoning: parse.FindReasoning("think"), Tools: parse.FindTools("hermes")}
	return g, e
}

// accepts tells whether an answer may be a text, whose marks of thoughts are control tokens where the tokenizer has them.
func accepts(t *testing.T, tok *tokenizer.Tokenizer, held engine.Grammar, text string) bool {
	t.Helper()
	for _, id := range tok.Encode(text, true) {
		var ok bool
		if held, ok = held.Next(id); !ok {
			return false
		}
	}
	return held.Done()
}

func tool(name string, strict bool, schema string) chat.Tool {
	parameters, err := jsontree.Decode([]byte(schema), jsontree.Limits{})
	if err != nil {
		panic(err)
	}
	return chat.Tool{Name: name, Parameters: parameters, Strict: strict, Field: "tools[0]"}
}

// What answers are held to: thoughts stay free, the text has its form, and calls are in the model's own format.
func TestForms(t *testing.T) {
	const number = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`
	call := func(name, arguments string) string {
		return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + arguments + "}\n</tool_call>"
	}
	form := &grammar.Spec{Kind: grammar.Schema, Name: "form", Text: number}
	off := chat.Thinking{On: new(bool)}
	loose, strict := tool("f", false, number), tool("g", true, number)
	cases := []struct {
		name    string
		options Options
		begun   bool // the prompt ends within thoughts
		in, out []string
	}{
		{"nothing is asked", Options{Chat: true, Tools: []chat.Tool{loose}}, false, nil, nil},
		{"a form of a text", Options{Form: form}, false, []string{`{"n":1}`}, []string{`{"n": 1}`, `x`, `<think></think>{"n":1}`}},
		{"a form of an answer", Options{Chat: true, Form: form}, false, []string{`{"n":1}`, `<think>a {</think>{"n":1}`, "<think>a {</think>\n\n{\"n\":1}"}, []string{`x`, `<think>a`, `<think>a</think>x`, `<think>a</think>`}},
		{"a form behind thoughts that are begun", Options{Chat: true, Form: form}, true, []string{"a</think>\n\n{\"n\":1}"}, []string{`{"n":1}`, `a</think>x`}},
		{"a form without thoughts", Options{Chat: true, Form: form, Thinking: off}, false, []string{`{"n":1}`}, []string{`<think>a</think>{"n":1}`}},
		{"a call that must be", Options{Chat: true, Tools: []chat.Tool{loose, strict}, Calls: parse.Choice{Required: true}}, false,
			[]string{call("f", `{"n": 1}`), "<think>a</think>" + call("g", `{"n": 1}`), call("f", `{"n": 1}`) + "\n" + call("g", `{"n": 2}`)}, []string{"", "a", call("h", `{"n": 1}`), call("f", `{"n": ""}`)}},
		{"one call", Options{Chat: true, Tools: []chat.Tool{loose, strict}, Calls: parse.Choice{Required: true, Single: true}}, false, []string{call("f", `{"n": 1}`)}, []string{call("f", `{"n": 1}`) + "\n" + call("g", `{"n": 2}`)}},
		{"one call, as clients of functions want it", Options{Chat: true, Tools: []chat.Tool{loose}, OneCall: true, Calls: parse.Choice{Required: true}}, false, []string{call("f", `{"n": 1}`)}, []string{call("f", `{"n": 1}`) + "\n" + call("f", `{"n": 2}`)}},
		{"a call of one tool", Options{Chat: true, Tools: []chat.Tool{loose, strict}, Calls: parse.Choice{Name: "g"}}, false, []string{call("g", `{"n": 1}`)}, []string{call("f", `{"n": 1}`), "a"}},
		{"a strict tool", Options{Chat: true, Tools: []chat.Tool{loose, strict}}, false, []string{"a", "a" + call("g", `{"n": 1}`) + "b", call("f", `{"n": "x"}`)}, []string{call("g", `{"n": "x"}`)}},
		{"a form or calls", Options{Chat: true, Form: form, Tools: []chat.Tool{loose}}, false, []string{`{"n":1}`, call("f", `{"n": 1}`)}, []string{"a", "a" + call("f", `{"n": 1}`), `{"n":1}` + call("f", `{"n": 1}`)}},
		{"a call that must be, and a form", Options{Chat: true, Form: form, Tools: []chat.Tool{loose}, Calls: parse.Choice{Required: true}}, false, []string{call("f", `{"n": 1}`)}, []string{`{"n":1}`}},
		{"nothing is drawn", Options{Form: form, Score: true}, false, nil, nil},
		{"other end tokens", Options{Form: form, IgnoreEnd: true, StopTokens: []int32{'.'}}, false, []string{`{"n":1}`}, []string{"x"}},
	}
	for _, c := range cases {
		for _, control := range []bool{false, true} {
			tok := thoughtfulTokenizer(t, control)
			g, e := formed(t, tok)
			c.options.Choices, c.options.LogProbs = 2, -1
			prompt := Prompt{Tokens: tokensOf("u"), Thinking: c.begun}
			if _, err := g.Hold(t.Context(), []Prompt{prompt}, &c.options); err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			s, err := g.Start(t.Context(), []Prompt{prompt}, c.options)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			s.Close()
			for _, r := range e.requests {
				if (r.Grammar != nil) != (c.in != nil) {
					t.Fatalf("%s: held %v, want %v", c.name, r.Grammar != nil, c.in != nil)
				}
				for _, text := range c.in {
					if !accepts(t, tok, r.Grammar, text) {
						t.Errorf("%s, control tokens %v: refuses %q", c.name, control, text)
					}
				}
				for _, text := range c.out {
					if accepts(t, tok, r.Grammar, text) {
						t.Errorf("%s, control tokens %v: accepts %q", c.name, control, text)
					}
				}
			}
		}
	}
}

// How JSON is written is the server's to say, where a request does not.
func TestFormNotation(t *testing.T) {
	tok := byteTokenizer(t)
	for _, c := range []struct {
		server, asked grammar.Notation
		in, out       string
	}{{"", "", `[1,2]`, `[1, 2]`}, {grammar.Spaced, "", `[1, 2]`, `[1,2]`}, {grammar.Spaced, grammar.Compact, `[1,2]`, `[1, 2]`}} {
		g, _ := formed(t, tok)
		g.Notation = c.server
		held, err := g.hold(t.Context(), &Prompt{}, &Options{Form: &grammar.Spec{Kind: grammar.Schema, Text: `{"const":[1,2]}`, Notation: c.asked}})
		if err != nil {
			t.Fatal(err)
		}
		if !accepts(t, tok, held, c.in) || accepts(t, tok, held, c.out) {
			t.Errorf("%+v: refuses the first or accepts the second", c)
		}
	}
}

// No token is allowed that the model has no logits for.
func TestFormsKeepToTheModelsTokens(t *testing.T) {
	g, _ := formed(t, byteTokenizer(t))
	g.Vocab = 128
	held, err := g.hold(t.Context(), &Prompt{}, &Options{Form: &grammar.Spec{Kind: grammar.Schema, Text: `{"type":"string"}`}})
	if err != nil {
		t.Fatal(err)
	}
	next, ok := held.Next('"')
	mask := make([]uint32, 4)
	if err := next.Mask(mask); err != nil || !ok || mask[3] == 0 {
		t.Errorf("%v, %v, %x: the string cannot go on", ok, err, mask)
	}
}

func TestFormErrors(t *testing.T) {
	bad := &grammar.Spec{Kind: grammar.Schema, Name: "form", Text: `{"type":"foo"}`}
	good := &grammar.Spec{Kind: grammar.Literal, Text: "x"}
	cases := []struct {
		name    string
		options Options
		tools   *parse.Tools
		want    string
	}{
		{"a bad schema", Options{Form: bad}, nil, "form (schema): "},
		{"a bad schema that need not be held", Options{Form: &grammar.Spec{Kind: grammar.Schema, Name: "form", Text: `{"type":"foo"}`, Loose: true}}, nil, "form (schema): "},
		{"a bad strict tool", Options{Chat: true, Tools: []chat.Tool{tool("f", true, `{"$ref":"http://x"}`)}}, parse.FindTools("hermes"), "tools[0] (schema): "},
		{"an end that is ignored", Options{Form: good, IgnoreEnd: true}, nil, "ignore_eos is true"},
		{"calls that nobody knows", Options{Chat: true, Tools: []chat.Tool{tool("f", true, `{}`)}}, nil, "tools cannot be held to"},
		{"calls that must be and nobody knows", Options{Chat: true, Form: good, Tools: []chat.Tool{tool("f", false, `{}`)}, Calls: parse.Choice{Required: true}}, nil, "tools cannot be held to"},
	}
	for _, c := range cases {
		g, e := formed(t, byteTokenizer(t))
		g.Formats.Tools = c.tools
		c.options.Choices, c.options.LogProbs = 1, -1
		prompts := []Prompt{{Tokens: tokensOf("u")}}
		_, err := g.Hold(t.Context(), prompts, &c.options)
		_, started := g.Start(t.Context(), prompts, c.options)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || started == nil || started.Error() != err.Error() || e.requests != nil {
			t.Errorf("%s: got %v, and %v when it starts, want %s", c.name, err, started, c.want)
		}
		_, isOption := errors.AsType[*option.Error](err)
		_, isGrammar := errors.AsType[*grammar.Error](err)
		if !isOption && !isGrammar {
			t.Errorf("%s: %T", c.name, err)
		}
	}
	g, _ := formed(t, byteTokenizer(t))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Hold(ended, []Prompt{{}}, &Options{Form: good}); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that ended: %v", err)
	}
}
