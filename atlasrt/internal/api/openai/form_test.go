package openai

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
)

// What an answer must be, in the fields of OpenAI and of other servers, on both routes.
func TestForms(t *testing.T) {
	const object = `{"type":"object"}`
	any := `{"type": "object"}`
	cases := []struct {
		fields string
		want   *grammar.Spec
	}{
		{`"response_format":{"type":"text"}`, nil}, {`"response_format":null`, nil}, {`"grammar":""`, nil}, {`"guided_json":null,"structured_outputs":null`, nil}, {`"regex":"","json_schema":""`, nil},
		{`"response_format":{"type":"json_object"}`, &grammar.Spec{Kind: grammar.Schema, Name: "response_format.type", Text: object}},
		{`"response_format":{"type":"json_object","schema":{"type":"object"}}`, &grammar.Spec{Kind: grammar.Schema, Name: "response_format.schema", Text: any}},
		{`"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}}`, &grammar.Spec{Kind: grammar.Schema, Name: "response_format.json_schema.schema", Text: any, Loose: true}},
		{`"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object"}}}`, &grammar.Spec{Kind: grammar.Schema, Name: "response_format.json_schema.schema", Text: any}},
		{`"guided_json":{"type":"object"}`, &grammar.Spec{Kind: grammar.Schema, Name: "guided_json", Text: any}}, {`"guided_json":"{\"type\":\"object\"}"`, &grammar.Spec{Kind: grammar.Schema, Name: "guided_json", Text: object}},
		{`"json_schema":{"type":"object"}`, &grammar.Spec{Kind: grammar.Schema, Name: "json_schema", Text: any}},
		{`"guided_regex":"a+"`, &grammar.Spec{Kind: grammar.Regex, Name: "guided_regex", Text: "a+"}}, {`"regex":"a+"`, &grammar.Spec{Kind: grammar.Regex, Name: "regex", Text: "a+"}},
		{`"guided_choice":["a","b"]`, &grammar.Spec{Kind: grammar.Choice, Name: "guided_choice", Words: []string{"a", "b"}}},
		{`"guided_grammar":"root ::= \"a\""`, &grammar.Spec{Kind: grammar.GBNF, Name: "guided_grammar", Text: `root ::= "a"`}}, {`"guided_grammar":"start: \"a\""`, &grammar.Spec{Kind: grammar.Lark, Name: "guided_grammar", Text: `start: "a"`}},
		{`"grammar":"root ::= \"a\""`, &grammar.Spec{Kind: grammar.GBNF, Name: "grammar", Text: `root ::= "a"`}}, {`"ebnf":"root ::= \"a\""`, &grammar.Spec{Kind: grammar.GBNF, Name: "ebnf", Text: `root ::= "a"`}},
		{`"structured_outputs":{"json":{"type":"object"},"disable_any_whitespace":true}`, &grammar.Spec{Kind: grammar.Schema, Name: "structured_outputs.json", Text: any, Notation: grammar.Compact}},
		{`"structured_outputs":{"regex":"a"}`, &grammar.Spec{Kind: grammar.Regex, Name: "structured_outputs.regex", Text: "a"}}, {`"structured_outputs":{"choice":["a"]}`, &grammar.Spec{Kind: grammar.Choice, Name: "structured_outputs.choice", Words: []string{"a"}}},
		{`"structured_outputs":{"grammar":"start: \"a\""}`, &grammar.Spec{Kind: grammar.Lark, Name: "structured_outputs.grammar", Text: `start: "a"`}}, {`"structured_outputs":{"json_object":true}`, &grammar.Spec{Kind: grammar.Schema, Name: "structured_outputs.json_object", Text: object}},
	}
	shown := func(s *grammar.Spec) string {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, route := range routes {
		for _, c := range cases {
			r := decode(route.dialect, `{`+route.least+`,`+c.fields+`}`)
			if r.err != nil || r.Unknown != 0 || shown(r.Options.Form) != shown(c.want) {
				t.Errorf("route %s, %s: got %v, %d unknown\n got %s\nwant %s", route.name, c.fields, r.err, r.Unknown, shown(r.Options.Form), shown(c.want))
			}
		}
	}
}

func TestT076FormErrors(t *testing.T) {
	cases := []struct {
		fields, field string
		kind          api.Kind
	}{
		{`"response_format":"json"`, "response_format", api.KindInvalid}, {`"response_format":{}`, "response_format.type", api.KindInvalid}, {`"response_format":{"type":"odd"}`, "response_format.type", api.KindInvalid},
		{`"response_format":{"type":"json_schema"}`, "response_format.json_schema", api.KindInvalid}, {`"response_format":{"type":"json_schema","json_schema":[]}`, "response_format.json_schema", api.KindInvalid},
		{`"response_format":{"type":"json_schema","json_schema":{"schema":{}}}`, "response_format.json_schema.name", api.KindInvalid}, {`"response_format":{"type":"json_schema","json_schema":{"name":"a b","schema":{}}}`, "response_format.json_schema.name", api.KindInvalid},
		{`"response_format":{"type":"json_schema","json_schema":{"name":"n"}}`, "response_format.json_schema.schema", api.KindInvalid}, {`"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":7}}`, "response_format.json_schema.schema", api.KindInvalid},
		{`"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{},"strict":"yes"}}`, "response_format.json_schema.strict", api.KindInvalid},
		{`"guided_json":7`, "guided_json", api.KindInvalid}, {`"guided_regex":7`, "guided_regex", api.KindInvalid}, {`"guided_choice":"a"`, "guided_choice", api.KindInvalid}, {`"guided_choice":[]`, "guided_choice", api.KindInvalid},
		{`"guided_choice":["a",7]`, "guided_choice", api.KindInvalid}, {`"grammar":{}`, "grammar", api.KindInvalid}, {`"guided_regex":"a","guided_choice":["a"]`, "guided_choice", api.KindInvalid},
		{`"response_format":{"type":"json_object"},"grammar":"root ::= \"a\""`, "grammar", api.KindInvalid},
		{`"structured_outputs":{}`, "structured_outputs", api.KindInvalid}, {`"structured_outputs":[]`, "structured_outputs", api.KindInvalid}, {`"structured_outputs":{"json":{},"regex":"a"}`, "structured_outputs.regex", api.KindInvalid},
		{`"structured_outputs":{"structural_tag":{}}`, "structured_outputs.structural_tag", api.KindUnsupported}, {`"structured_outputs":{"json":{},"whitespace_pattern":" "}`, "structured_outputs.whitespace_pattern", api.KindUnsupported},
		{`"structured_outputs":{"json":{},"disable_additional_properties":true}`, "structured_outputs.disable_additional_properties", api.KindUnsupported},
		{`"grammar_lazy":true`, "grammar_lazy", api.KindUnsupported}, {`"guided_whitespace_pattern":" "`, "guided_whitespace_pattern", api.KindUnsupported},
	}
	for _, route := range routes {
		for _, c := range cases {
			err := decode(route.dialect, `{`+route.least+`,`+c.fields+`}`).err
			if e, ok := errors.AsType[*api.Error](err); !ok || e.Field != c.field || e.Kind != c.kind {
				t.Errorf("route %s, %s: got %+v, want blame of kind %d for %s", route.name, c.fields, err, c.kind, c.field)
			}
		}
	}
}

// The language of a grammar is that of its rules, whatever its texts, patterns and comments hold.
func TestLanguageOfGrammar(t *testing.T) {
	for text, want := range map[string]grammar.Kind{
		"root ::= \"a\"":                                grammar.GBNF,
		"# a comment\n\n  root::= \"start: x\"":         grammar.GBNF,
		"/* of two\nlines */ my-root ::= [a-z]":         grammar.GBNF,
		"/* start: \"a\" */\nroot\n  ::= \"a\"":         grammar.GBNF,
		"root /* c */ ::= \"a\"":                        grammar.GBNF,
		"root # the start\n  ::= \"a\"":                 grammar.GBNF,
		"<root> ::= \"a\"":                              grammar.GBNF, // which says what is wrong with it
		"start: \"a\"":                                  grammar.Lark,
		"start: a # ::= b\na: \"a\"":                    grammar.Lark,
		"start: \"x ::= y\"":                            grammar.Lark,
		"start: A\nA: /root ::= x/":                     grammar.Lark,
		"// root ::= \"a\"\n# root ::= b\nstart: \"a\"": grammar.Lark,
		"start: name \"::=\" name\nname: /\\w+/":        grammar.Lark,
		"start: name\n  \"::=\" name\nname: /\\w+/":     grammar.Lark,
	} {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		r := decode(routes[0].dialect, `{`+routes[0].least+`,"guided_grammar":`+string(quoted)+`}`)
		if r.err != nil || r.Options.Form == nil || r.Options.Form.Kind != want {
			t.Errorf("%q: %v, %+v, want kind %s", text, r.err, r.Options.Form, want)
		}
	}
}
