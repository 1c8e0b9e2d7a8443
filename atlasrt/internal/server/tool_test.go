package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
)

// What clients see of calls and thoughts that come token by token, each a byte: the same as a whole and as a stream.
func TestToolCalls(t *testing.T) {
	var text string
	r := newRig(t, func(engineRequest) reply { return reply{text: text} }, func(c *Config) {
		c.Model.Generator.Formats.Tools, c.Model.Generator.Formats.Reasoning = parse.FindTools("hermes"), parse.FindReasoning("think")
		c.Model.Generator.MaxContext = 2000
	})
	call := func(name, arguments string) string {
		return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + arguments + "}\n</tool_call>"
	}
	const f, g, nested = `f{}`, `g{}`, `{"a": "</tool_call> \"{[\\", "b": [{"c": {}}], "é": "漢👋"}`
	tools := []string{}
	for _, name := range []string{"f", "g"} {
		tools = append(tools, `{"type":"function","function":{"name":"`+name+`","parameters":{"type":"object"}}}`)
	}
	cases := []struct {
		name, text, options    string
		content, thoughts, why string
		calls                  []string // name and arguments
	}{
		{"T053 one call", call("f", `{"a": 1}`), ``, "<nil>", "absent", "tool_calls", []string{`f{"a": 1}`}},
		{"T054 five calls", "a" + call("f", "{}") + "b" + call("g", "{}") + call("f", "{}") + call("f", "{}") + call("g", "{}") + "c", ``, "a\n\nb\n\nc", "absent", "tool_calls", []string{f, g, f, f, g}},
		{"T055 one call at most", call("f", "{}") + call("g", "{}"), `,"parallel_tool_calls":false`, "<nil>", "absent", "tool_calls", []string{f}},
		{"T055 a call is not asked for", call("f", "{}"), `,"tool_choice":"none"`, call("f", "{}"), "absent", "stop", nil},
		{"T056 a call that is cut", call("f", `{"a": "long text"}`), `,"max_tokens":50`, "<nil>", "absent", "length", []string{`f{"a": "long`}},
		{"T057 no arguments", call("f", "{}"), ``, "<nil>", "absent", "tool_calls", []string{f}},
		{"T057 nested", call("f", nested), ``, "<nil>", "absent", "tool_calls", []string{"f" + nested}},
		{"T058 an unknown tool", call("h", "{}"), ``, call("h", "{}"), "absent", "stop", nil},
		{"T059 thoughts", "<think>hm</think>a", ``, "a", "hm", "stop", nil},
		{"T059 thoughts and a call", "<think>hm</think>" + call("f", "{}"), ``, "<nil>", "hm", "tool_calls", []string{f}},
		{"T059 thoughts left out", "<think>hm</think>a", `,"reasoning":{"exclude":true}`, "a", "absent", "stop", nil},
		{"T051 a stop string in thoughts", "<think>h STOP m</think>a", `,"stop":"STOP"`, "", "h ", "stop", nil},
		{"T090 inert arguments", call("f", `{"a": "__import__('os') ${x} {{y}}"}`), ``, "<nil>", "absent", "tool_calls", []string{`f{"a": "__import__('os') ${x} {{y}}"}`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text = c.text
			request := `{"messages":[{"role":"user","content":"hi"}],"max_tokens":1000,"tools":[` + strings.Join(tools, ",") + `]` + c.options + `}`
			if strings.Contains(c.options, "max_tokens") {
				request = strings.Replace(request, `"max_tokens":1000,`, "", 1)
			}
			m, _ := find(object(t, r.post("/v1/chat/completions", request).body), "choices", 0, "message")
			why := at(object(t, r.post("/v1/chat/completions", request).body), "choices", 0, "finish_reason")
			calls := []string{}
			for i := range list(m, "tool_calls") {
				calls = append(calls, at(m, "tool_calls", i, "function", "name")+at(m, "tool_calls", i, "function", "arguments"))
			}
			if got := at(m, "content"); got != c.content || at(m, "reasoning") != c.thoughts || at(m, "reasoning_content") != c.thoughts || why != c.why || !same(calls, c.calls) {
				t.Errorf("%q%s:\n got %v, %s\nwant %q, thoughts %q, calls %q, %s", c.text, c.options, m, why, c.content, c.thoughts, c.calls, c.why)
			}
			documents, done := events(t, r.post("/v1/chat/completions", strings.TrimSuffix(request, "}")+`,"stream":true}`).body)
			content, thoughts, finish := "", "", ""
			calls = []string{}
			for _, d := range documents {
				delta, _ := find(d, "choices", 0, "delta")
				content += present(delta, "content")
				thoughts += present(delta, "reasoning")
				if v := at(d, "choices", 0, "finish_reason"); v != "<nil>" {
					finish += v
				}
				for i := range list(delta, "tool_calls") {
					if at(delta, "tool_calls", i, "id") != "absent" {
						calls = append(calls, at(delta, "tool_calls", i, "function", "name"))
					}
					if at(delta, "tool_calls", i, "index") != fmt.Sprint(len(calls)-1) {
						t.Fatalf("%q: a piece %v after %d calls", c.text, delta, len(calls))
					}
					calls[len(calls)-1] += at(delta, "tool_calls", i, "function", "arguments")
				}
			}
			if !done || content != strings.TrimPrefix(c.content, "<nil>") || thoughts != strings.TrimPrefix(c.thoughts, "absent") || finish != c.why || !same(calls, c.calls) {
				t.Errorf("%q%s streamed:\n got %q, thoughts %q, calls %q, %s\nwant %q, thoughts %q, calls %q, %s", c.text, c.options, content, thoughts, calls, finish, c.content, c.thoughts, c.calls, c.why)
			}
		})
	}
}

// present is a text of an object, empty where there is none.
func present(v any, key string) string {
	if text := at(v, key); text != "absent" {
		return text
	}
	return ""
}

// same compares calls: names as they are, arguments as JSON where they are whole.
func same(got, want []string) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		var a, b any
		if json.Unmarshal([]byte(got[i][1:]), &a) != nil || json.Unmarshal([]byte(want[i][1:]), &b) != nil {
			if got[i] != want[i] {
				return false
			}
		} else if got[i][0] != want[i][0] || fmt.Sprint(a) != fmt.Sprint(b) {
			return false
		}
	}
	return true
}

// Ids of calls are never used again, not even by the same answer asked for twice.
func TestCallIDsAreUnique(t *testing.T) {
	const text = `<tool_call>{"name": "f", "arguments": {}}</tool_call>`
	r := newRig(t, func(engineRequest) reply { return reply{text: text + text} }, func(c *Config) { c.Model.Generator.Formats.Tools = parse.FindTools("hermes") })
	seen := map[string]bool{}
	for range 3 {
		d := object(t, r.post("/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],"n":2,"tools":[{"type":"function","function":{"name":"f"}}]}`).body)
		for choice := range 2 {
			for call := range 2 {
				id := at(d, "choices", choice, "message", "tool_calls", call, "id")
				if seen[id] || !strings.HasPrefix(id, "call_") || len(id) < 20 {
					t.Errorf("choice %d, call %d has the id %q again, or it is short: %v", choice, call, id, seen)
				}
				seen[id] = true
			}
		}
	}
}
