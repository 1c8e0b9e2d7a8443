package server

import (
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
)

// fits tells whether a text is a whole answer of a grammar. Without one anything is.
func fits(g engine.Grammar, text string) bool {
	if g == nil {
		return true
	}
	for _, b := range []byte(text) {
		next, ok := g.Next(int32(b))
		if !ok {
			return false
		}
		g = next
	}
	return g.Done()
}

const (
	heldResponse = `{"input":"hi"`
	heldMessage  = `{"max_tokens":100,"messages":[{"role":"user","content":"hi"}]`
	heldSchema   = `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`
)

// What requests of the Responses API and of Anthropic's hold their answers to (T041, T076).
func TestHeld(t *testing.T) {
	function := func(name, more string) string {
		return `{"type":"function","name":"` + name + `","parameters":` + heldSchema + more + `}`
	}
	tool := func(name, more string) string {
		return `{"name":"` + name + `","input_schema":` + heldSchema + more + `}`
	}
	call := func(name, arguments string) string {
		return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + arguments + "}\n</tool_call>"
	}
	f, g := call("f", `{"a": 1}`), call("g", `{"a": 1}`)
	both := f + "\n" + g
	functions, strict := `,"tools":[`+function("f", "")+`,`+function("g", "")+`]`, `,"tools":[`+function("f", `,"strict":true`)+`]`
	tools, strictTool := `,"tools":[`+tool("f", "")+`,`+tool("g", "")+`]`, `,"tools":[`+tool("f", `,"strict":true`)+`]`
	format := `,"text":{"format":{"type":"json_schema","name":"n","strict":true,"schema":` + heldSchema + `}}`
	older := `,"output_format":{"type":"json_schema","schema":` + heldSchema + `}`
	config := `,"output_config":{"format":{"type":"json_schema","schema":` + heldSchema + `}}`
	cases := []struct {
		name, start, more string
		may, not          []string
	}{
		{"text", heldResponse, `,"text":{"format":{"type":"text"}}`, []string{"", "any"}, nil},
		{"any object", heldResponse, `,"text":{"format":{"type":"json_object"}}`, []string{`{}`, `{"b":[1,null]}`}, []string{"", "any", `[]`, `{"b":`}},
		{"schema", heldResponse, format, []string{`{"a":12}`}, []string{`{}`, `{"a":"x"}`, `{"a":1,"b":2}`, `{"a":1}.`}},
		{"schema that cannot be held and is not strict", heldResponse, `,"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object","unevaluatedProperties":false,"patternProperties":{"(?<=a)b":{}}}}}`, []string{`{"b":1}`}, []string{"any"}},
		{"schema or calls", heldResponse, format + functions, []string{`{"a":12}`, f, both}, []string{"any", call("h", "{}")}},
		{"required", heldResponse, functions + `,"tool_choice":"required"`, []string{f, g, both}, []string{"", "any", `{"a":12}`, call("h", `{"a": 1}`), call("f", `{"a": "x"}`)}},
		{"required, one", heldResponse, functions + `,"tool_choice":"required","parallel_tool_calls":false`, []string{f, g}, []string{"", both}},
		{"named", heldResponse, functions + `,"tool_choice":{"type":"function","name":"g"}`, []string{g}, []string{"", f, both}},
		{"allowed", heldResponse, functions + `,"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"}]}`, []string{f}, []string{"", g}},
		{"strict", heldResponse, strict, []string{"", "any", "any " + f}, []string{call("f", `{}`), call("f", `{"a": "x"}`)}},
		{"not strict", heldResponse, functions, []string{"any", call("f", `{}`)}, nil},

		{"schema", heldMessage, config, []string{`{"a":12}`}, []string{"", `{}`, `{"a":"x"}`}},
		{"schema by its older name", heldMessage, older, []string{`{"a":12}`}, []string{"", `{}`, `{"a":"x"}`}},
		{"schema or calls", heldMessage, config + tools, []string{`{"a":12}`, f}, []string{"any"}},
		{"any", heldMessage, tools + `,"tool_choice":{"type":"any"}`, []string{f, g, both}, []string{"", "any", call("h", `{"a": 1}`), call("f", `{"a": "x"}`)}},
		{"any, one", heldMessage, tools + `,"tool_choice":{"type":"any","disable_parallel_tool_use":true}`, []string{f, g}, []string{"", both}},
		{"tool", heldMessage, tools + `,"tool_choice":{"type":"tool","name":"g"}`, []string{g}, []string{"", f, both}},
		{"strict", heldMessage, strictTool, []string{"", "any", "any " + f}, []string{call("f", `{}`), call("f", `{"a": "x"}`)}},
		{"auto", heldMessage, tools + `,"tool_choice":{"type":"auto"}`, []string{"any", call("f", `{}`)}, nil},
	}
	var held engine.Grammar
	r := newRig(t, func(r engineRequest) reply { held = r.Grammar; return reply{text: "x"} }, func(c *Config) {
		c.Model.Generator.Formats.Tools, c.Model.Generator.MaxContext = parse.FindTools("hermes"), 2000
	})
	for _, c := range cases {
		path := "/v1/responses"
		if c.start == heldMessage {
			path = "/v1/messages"
		}
		t.Run(path+" "+c.name, func(t *testing.T) {
			if got := r.post(path, c.start+c.more+"}"); got.status != 200 {
				t.Fatalf("%d %s", got.status, got.body)
			}
			if (held == nil) != (c.not == nil) {
				t.Fatalf("the answer is held to %v", held)
			}
			for _, text := range c.may {
				if !fits(held, text) {
					t.Errorf("%q may not come", text)
				}
			}
			for _, text := range c.not {
				if fits(held, text) {
					t.Errorf("%q may come", text)
				}
			}
		})
	}
}

// Schemas that cannot be held are refused by the field that has them, and its keyword (T076, T077, T080).
func TestNotHeld(t *testing.T) {
	function := func(parameters string) string {
		return heldResponse + `,"tools":[{"type":"function","name":"e"},{"type":"function","name":"f","strict":true,"parameters":` + parameters + `}]}`
	}
	format := func(schema string) string {
		return heldResponse + `,"text":{"format":{"type":"json_schema","name":"n","strict":true,"schema":` + schema + `}}}`
	}
	cases := []struct{ path, body, field, word string }{
		{"/v1/responses", format(`{"type":"foo"}`), "text.format.schema", "foo"},
		{"/v1/responses", format(`{"properties":{"a":{"type":"string","pattern":"("}}}`), "text.format.schema", "pattern"},
		{"/v1/responses", format(`{"properties":{"a":{"$ref":"https://example.org/x.json"}}}`), "text.format.schema", "$ref"},
		{"/v1/responses", function(`{"type":"object","properties":{"a":{"type":"string","pattern":"("}}}`), "tools[1]", "pattern"},
		{"/v1/messages", heldMessage + `,"output_config":{"format":{"type":"json_schema","schema":{"properties":{"a":{"pattern":"(a)\\1"}}}}}}`, "output_config.format.schema", "pattern"},
		{"/v1/messages", heldMessage + `,"output_format":{"type":"json_schema","schema":{"type":"foo"}}}`, "output_format.schema", "foo"},
		{"/v1/messages", heldMessage + `,"tools":[{"name":"f","strict":true,"input_schema":{"type":"object","properties":{"a":{"pattern":"("}}}}]}`, "tools[0]", "pattern"},
	}
	r := newRig(t, answering, func(c *Config) { c.Model.Generator.Formats.Tools = parse.FindTools("hermes") })
	for _, c := range cases {
		got := r.post(c.path, c.body)
		d := object(t, got.body)
		message, field := at(d, "error", "message"), at(d, "error", "param")
		if c.path == "/v1/messages" {
			field = message[:min(len(message), len(c.field))]
		}
		if got.status != 400 || field != c.field || !strings.Contains(message, c.word) {
			t.Errorf("%s: %d %s, want 400 of %s with %s", c.body, got.status, got.body, c.field, c.word)
		}
	}
}
