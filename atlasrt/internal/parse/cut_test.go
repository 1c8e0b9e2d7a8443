package parse

import (
	"reflect"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
)

// read gives the events of an answer that comes in pieces of a size, those that go on with one another joined.
func read(c Config, text string, size int) []chat.Event {
	p := New(c)
	defer p.Close()
	var joined []chat.Event
	add := func(events []chat.Event) {
		for _, e := range events {
			last := len(joined) - 1
			if last < 0 || joined[last].Kind != e.Kind || e.Call.Name != "" {
				joined = append(joined, e)
				continue
			}
			joined[last].Text += e.Text
			joined[last].Call.Arguments += e.Call.Arguments
		}
	}
	for i := 0; i < len(text); i += size {
		add(p.Push(text[i:min(i+size, len(text))]))
	}
	add(p.End())
	return joined
}

func text(s string) chat.Event    { return chat.Event{Kind: chat.EventText, Text: s} }
func thought(s string) chat.Event { return chat.Event{Kind: chat.EventReasoning, Text: s} }
func call(index int, name, arguments string) chat.Event {
	return chat.Event{Kind: chat.EventToolCall, Call: chat.ToolCallDelta{Index: index, Name: name, Arguments: arguments}}
}

func TestHermes(t *testing.T) {
	config := Config{Reasoning: FindReasoning("think"), Tools: FindTools("hermes"), Declared: []chat.Tool{{Name: "f"}}}
	cases := []struct {
		answer string
		want   []chat.Event
	}{
		{"<think>\nhmm\n</think>\n\nHello <tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": \"</tool_call>\"}}\n</tool_call>\n<tool_call>\n{\"arguments\": {\"y\":1}, \"name\": \"f\"}}\n</tool_call>\nbye",
			[]chat.Event{thought("hmm"), text("Hello"), call(0, "f", `{"x": "</tool_call>"}`), call(1, "f", `{"y":1}`), text("bye")}},
		{"<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>\n", []chat.Event{text("<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>\n")}},
		{"<tool_call>\nbla</tool_call>\n", []chat.Event{text("<tool_call>\nbla</tool_call>\n")}},
		{"  x <tool_ca", []chat.Event{text("  x <tool_ca")}},
		{`<tool_call>{"name":"f"}`, []chat.Event{call(0, "f", "{}")}},
		{`<tool_call>{"name":"f","arguments":{"a": "b`, []chat.Event{call(0, "f", `{"a": "b`)}},
	}
	for _, c := range cases {
		for size := 1; size <= len(c.answer); size++ {
			if got := read(config, c.answer, size); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%q in pieces of %d:\n got %+v\nwant %+v", c.answer, size, got, c.want)
				break
			}
		}
	}
}

// The parser's goroutine ends with it, wherever it is.
func TestCloseMidway(t *testing.T) {
	p := New(Config{Tools: FindTools("hermes")})
	p.Push(strings.Repeat("x", 100) + "<tool_call>{")
	p.Close()
	p.Close()
}
