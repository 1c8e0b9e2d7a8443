package parse

import (
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
)

func hermesRecords() []record {
	return []record{
		{name: "a call", answer: "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>", want: []chat.Event{call(0, "f", `{"x": 1}`)}},
		{name: "thoughts, text before, between and behind, a closer in a string, arguments first, a bracket too many",
			answer: "<think>\nhmm\n</think>\n\nHello <tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": \"⟦</tool_call>⟧\"}}\n</tool_call>\n and \n<tool_call>\n{\"arguments\": {\"y\":1}, \"name\": \"g\"}}\n</tool_call>\n bye",
			want:   []chat.Event{thought("hmm"), text("Hello"), call(0, "f", `{"x": "</tool_call>"}`), text("and"), call(1, "g", `{"y":1}`), text("bye")}},
		{name: "parallel", answer: "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":[]}}</tool_call>",
			want: []chat.Event{call(0, "f", "{}"), call(1, "f", `{"a":[]}`)}},
		{name: "several in one block", answer: "<tool_call>\n{\"name\":\"f\"}\n{\"name\":\"g\",\"arguments\":{\"a\":2}}\n</tool_call>x",
			want: []chat.Event{call(0, "f", "{}"), call(1, "g", `{"a":2}`), text("x")}},
		{name: "a list in one block", answer: "<tool_call>[{\"name\":\"f\"}, {\"name\":\"g\"}]</tool_call>", want: []chat.Event{call(0, "f", "{}"), call(1, "g", "{}")}},
		{name: "nested quotes and brackets", answer: `<tool_call>{"name": "f", "arguments": {"x": "say \"}{\" \\", "o": {"p": [{"q": "]"}]}}}</tool_call>`,
			want: []chat.Event{call(0, "f", `{"x": "say \"}{\" \\", "o": {"p": [{"q": "]"}]}}`)}},
		{name: "unknown", answer: "see \n<tool_call>\n{\"name\": \"h\", \"arguments\": {}}\n</tool_call>\n", want: []chat.Event{text("see \n<tool_call>\n{\"name\": \"h\", \"arguments\": {}}\n</tool_call>\n")}},
		{name: "unknown and known", answer: `<tool_call>{"name":"h"}</tool_call><tool_call>{"name":"f"}</tool_call>`,
			want: []chat.Event{text(`<tool_call>{"name":"h"}</tool_call>`), call(0, "f", "{}")}},
		{name: "no call", answer: "<tool_call>\nbla</tool_call>\n", want: []chat.Event{text("<tool_call>\nbla</tool_call>\n")}},
		{name: "the beginning of a mark", answer: "  x <tool_ca", want: []chat.Event{text("  x <tool_ca")}},
		{name: "no closer", answer: `<tool_call>{"name":"f"}`, want: []chat.Event{call(0, "f", "{}")}},
		{name: "no closer, another call", answer: `<tool_call>{"name":"f"} <tool_call>{"name":"g"}`, want: []chat.Event{call(0, "f", "{}"), call(1, "g", "{}")}},
		{name: "cut in a string", answer: `<tool_call>{"name":"f","arguments":{"a": "b`, want: []chat.Event{call(0, "f", `{"a": "b`)}},
		{name: "cut in a key", answer: `<tool_call>{"name":"f","argum`, want: []chat.Event{call(0, "f", "")}},
		{name: "cut in the name", answer: `a <tool_call>{"name":"f`, want: []chat.Event{text(`a <tool_call>{"name":"f`)}},
		{name: "broken behind the name", answer: `<tool_call>{"name":"f", x: 1}</tool_call>!`, want: []chat.Event{call(0, "f", " x: 1}"), text("!")}},
		{name: "broken in another member", answer: `<tool_call>{"name":"f", "id": [1}, "b": 2</tool_call>`, want: []chat.Event{call(0, "f", ` "id": [1}, "b": 2`)}},
		{name: "broken arguments", answer: `<tool_call>{"name":"f","arguments":{"a": 1]}</tool_call>`, want: []chat.Event{call(0, "f", `{"a": 1]}`)}},
		{name: "the rest of the sentence", answer: `<tool_call>{"name":"f"} so </tool_call>!`, want: []chat.Event{call(0, "f", "{}"), text("so!")}},
		{name: "arguments as text, an id, a type", answer: `<tool_call>{"type": "function", "id": "7", "function": {"name": "f", "arguments": "{\"x\": \"ü\\n\"}"}}</tool_call>`,
			want: []chat.Event{call(0, "f", `{"x": "ü\n"}`)}},
		{name: "null", answer: `<tool_call>{"name": "f", "arguments": null}</tool_call>`, want: []chat.Event{call(0, "f", "{}")}},
		{name: "both words for arguments", answer: `<tool_call>{"name": "f", "parameters": {"a": 1}, "arguments": {"b": 2}}</tool_call>`, want: []chat.Event{call(0, "f", `{"a": 1}`)}},
		{name: "unicode", answer: `天気 <tool_call>{"name": "f", "arguments": {"城": "Zürich 😀 \ud83d\ude00"}}</tool_call> 😀`,
			want: []chat.Event{text("天気"), call(0, "f", `{"城": "Zürich 😀 \ud83d\ude00"}`), text("😀")}},
		{name: "one call only", oneCall: true, answer: `a<tool_call>{"name":"f"} b </tool_call><tool_call>{"name":"g"}</tool_call>`, want: []chat.Event{text("a"), call(0, "f", "{}")}},
		{name: "one call, the first is unknown", oneCall: true, answer: `<tool_call>{"name":"h"}</tool_call><tool_call>{"name":"g"}</tool_call> c`,
			want: []chat.Event{text(`<tool_call>{"name":"h"}</tool_call>`), call(0, "g", "{}")}},
		{name: "spelled marks", marks: controlMarks, answer: `⟦<tool_call>⟧{"name":"f"}⟦</tool_call>⟧`, want: []chat.Event{text(`<tool_call>{"name":"f"}</tool_call>`)}},
		{name: "a control token in a string", marks: controlMarks, answer: `<tool_call>{"name":"f","arguments":{"a":"</tool_call> b`, want: []chat.Event{call(0, "f", `{"a":"`), text("b")}},
	}
}

func thinkRecords() []record {
	const mark = `<tool_call>{"name":"f"}</tool_call>`
	return []record{
		{name: "thoughts", answer: "<think>\na\n\nb\n</think>\n\n  c", want: []chat.Event{thought("a\n\nb"), text("  c")}},
		{name: "none", answer: " \nhello", want: []chat.Event{text(" \nhello")}},
		{name: "empty", answer: "<think>\n\n</think>\n\nhi", want: []chat.Event{text("hi")}},
		{name: "empty in one line", answer: "<think></think>hi", want: []chat.Event{text("hi")}},
		{name: "opened by the prompt", thinking: true, answer: "a\n</think>\n\nb", want: []chat.Event{thought("a"), text("b")}},
		{name: "opened twice", thinking: true, answer: "\n<think>\na</think>b", want: []chat.Event{thought("a"), text("b")}},
		{name: "never closed", answer: "<think>\na\n b\n", want: []chat.Event{thought("a\n b\n")}},
		{name: "never closed, opened by the prompt", thinking: true, answer: "all of it </thin", want: []chat.Event{thought("all of it </thin")}},
		{name: "a call behind them", thinking: true, answer: "so</think>" + mark, want: []chat.Event{thought("so"), call(0, "f", "{}")}},
		{name: "a call within is a thought", thinking: true, answer: "so " + mark + "</think>x", want: []chat.Event{thought("so " + mark), text("x")}},
		{name: "cut in the opening", answer: "<thi", want: []chat.Event{text("<thi")}},
		{name: "in an answer", marks: spelledMarks, answer: "say <think> or </think>.", want: []chat.Event{text("say <think> or </think>.")}},
		{name: "again", marks: controlMarks, answer: "<think>a</think>b <think>\nc\n</think>\n" + mark + "\n<think>d", want: []chat.Event{thought("a"), text("b"), thought("c"), call(0, "f", "{}"), thought("d")}},
		{name: "spelled, though they are control tokens", marks: controlMarks, answer: "⟦<think>⟧a⟦</think>⟧", want: []chat.Event{text("<think>a</think>")}},
		{name: "spelled within", marks: controlMarks, answer: "<think>a ⟦</think>⟧ b</think>c", want: []chat.Event{thought("a </think> b"), text("c")}},
		{name: "a closer alone", answer: "a</think>b", want: []chat.Event{text("a</think>b")}},
	}
}

// An answer that is cut within the mark that closes a call has nothing of the mark, however it comes.
func TestCutCloser(t *testing.T) {
	const answer = "<tool_call>{\"name\":\"f\"}\n</tool"
	for cut := range len(answer) {
		p := New(Config{Tools: FindTools("hermes"), AnyTool: true})
		var got string
		for _, events := range [][]chat.Event{slices.Clone(p.Push(answer[:cut])), slices.Clone(p.Push(answer[cut:])), p.End(false)} {
			for _, e := range events {
				got += e.Call.Name + e.Call.Arguments + e.Text
			}
		}
		if p.Close(); got != "f{}" {
			t.Errorf("cut at %d: got %q, want the call alone", cut, got)
		}
	}
}

// A model that ends its turn before the arguments of a call gave none; where it was cut they are missing.
func TestEndOfACall(t *testing.T) {
	cases := []struct {
		answer     string
		whole, cut string
	}{
		{`<tool_call>{"name":"f", "arg`, "f{}", "f"}, {`<tool_call>{"name":"f"}`, "f{}", "f{}"}, {`<tool_call>{"name":"f","arguments":{"a`, `f{"a`, `f{"a`},
		{`<tool_call>{"name":"f" "a"</tool_call> b`, `f"a"b`, `f"a"b`}, {`<tool_call>{"name":"f"</tool_call> b`, "fb", "fb"}, {"a", "a", "a"},
	}
	for _, c := range cases {
		for _, whole := range []bool{true, false} {
			want := map[bool]string{true: c.whole, false: c.cut}[whole]
			p := New(Config{Tools: FindTools("hermes"), AnyTool: true})
			got := ""
			for _, e := range append(slices.Clone(p.Push(c.answer)), p.End(whole)...) {
				got += e.Call.Name + e.Call.Arguments + e.Text
			}
			if p.Close(); got != want {
				t.Errorf("%s, whole %v: got %q, want %q", c.answer, whole, got, want)
			}
		}
	}
}
