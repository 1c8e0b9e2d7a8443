package parse

import "github.com/atlas-inference/atlas/atlasrt/internal/chat"

func mistralRecords() []record {
	return []record{
		{name: "a call", answer: `[TOOL_CALLS]f[ARGS]{"x": 1}`, want: []chat.Event{call(0, "f", `{"x": 1}`)}},
		{name: "text, thoughts, parallel", answer: `[THINK]hm[/THINK]Look. [TOOL_CALLS]f[ARGS]{"x": "[TOOL_CALLS]"}[TOOL_CALLS]g[ARGS]{}`, marks: spelledMarks,
			want: []chat.Event{thought("hm"), text("Look."), call(0, "f", `{"x": "[TOOL_CALLS]"}`), call(1, "g", "{}")}},
		{name: "ids", answer: `[TOOL_CALLS]f[CALL_ID]abc123456[ARGS]{"x": 1}[TOOL_CALLS]g[CALL_ID]1[ARGS]{}`, want: []chat.Event{call(0, "f", `{"x": 1}`), call(1, "g", "{}")}},
		{name: "a list", answer: `[TOOL_CALLS] [{"name": "f", "arguments": {"x": "]"}, "id": "123456789"}, {"name": "g", "arguments": {}}] bye`, want: []chat.Event{call(0, "f", `{"x": "]"}`), call(1, "g", "{}"), text("bye")}},
		{name: "text behind", answer: `a [TOOL_CALLS]f[ARGS]{} b [TOOL_CALLS]g[ARGS]{}
c`, want: []chat.Event{text("a"), call(0, "f", "{}"), text("b"), call(1, "g", "{}"), text("c")}},
		{name: "nested quotes and brackets", answer: `[TOOL_CALLS]f[ARGS]{"x": "\"}\\", "l": [[{"a": "⟦[ARGS]⟧{"}]]}`, want: []chat.Event{call(0, "f", `{"x": "\"}\\", "l": [[{"a": "[ARGS]{"}]]}`)}},
		{name: "no mark before the arguments", answer: `[TOOL_CALLS]f{"x": 1}`, want: []chat.Event{call(0, "f", `{"x": 1}`)}},
		{name: "white space", answer: "[TOOL_CALLS] f [ARGS] {\"x\": 1} \n", want: []chat.Event{call(0, "f", `{"x": 1}`)}},
		{name: "no arguments", answer: `[TOOL_CALLS]f[ARGS][TOOL_CALLS]g[ARGS]{}`, want: []chat.Event{call(0, "f", "{}"), call(1, "g", "{}")}},
		{name: "unknown", answer: ` [TOOL_CALLS]h[CALL_ID]1[ARGS]{"x": [1]} b`, want: []chat.Event{text(` [TOOL_CALLS]h[CALL_ID]1[ARGS]{"x": [1]} b`)}},
		{name: "unknown in a list", answer: `[TOOL_CALLS][{"name": "h"}, {"name": "i"}] c`, want: []chat.Event{text(`[TOOL_CALLS][{"name": "h"}, {"name": "i"}] c`)}},
		{name: "unknown beside known in a list", answer: `[TOOL_CALLS][{"name": "h"}, {"name": "f"}, {"name": "i"}]`, want: []chat.Event{text(`[TOOL_CALLS][{"name": "h"}`), call(0, "f", "{}"), text(`, {"name": "i"}]`)}},
		{name: "no call", answer: "[TOOL_CALLS]are marks", want: []chat.Event{text("[TOOL_CALLS]are marks")}},
		{name: "no name", answer: "[TOOL_CALLS][ARGS]{}", want: []chat.Event{text("[TOOL_CALLS][ARGS]{}")}},
		{name: "cut in the arguments", answer: `[TOOL_CALLS]f[ARGS]{"x": "a`, want: []chat.Event{call(0, "f", `{"x": "a`)}},
		{name: "cut before the arguments", answer: `[TOOL_CALLS]f[ARGS]`, want: []chat.Event{call(0, "f", "")}},
		{name: "cut in the name", answer: `x [TOOL_CALLS]f`, want: []chat.Event{text(`x [TOOL_CALLS]f`)}},
		{name: "cut in a list", answer: `[TOOL_CALLS][{"name": "f", "arguments": {"a`, want: []chat.Event{call(0, "f", `{"a`)}},
		{name: "broken", answer: `[TOOL_CALLS]f[ARGS]x=1, y`, want: []chat.Event{call(0, "f", `x=1, y`)}},
		{name: "broken, then another", answer: `[TOOL_CALLS]f[ARGS]{"x": 1][TOOL_CALLS]g[ARGS]{}`, want: []chat.Event{call(0, "f", `{"x": 1]`), call(1, "g", "{}")}},
		{name: "arguments as text", answer: `[TOOL_CALLS]f[ARGS]"{\"x\": 1}"`, want: []chat.Event{call(0, "f", `{"x": 1}`)}},
		{name: "unicode", answer: `天[TOOL_CALLS]f[ARGS]{"城": "Zürich 😀"}気`, want: []chat.Event{text("天"), call(0, "f", `{"城": "Zürich 😀"}`), text("気")}},
		{name: "one call only", oneCall: true, answer: `[TOOL_CALLS]f[ARGS]{}[TOOL_CALLS]g[ARGS]{}`, want: []chat.Event{call(0, "f", "{}")}},
		{name: "one call of a list", oneCall: true, answer: `[TOOL_CALLS][{"name": "f"}, {"name": "g"}]`, want: []chat.Event{call(0, "f", "{}")}},
		{name: "spelled marks", marks: controlMarks, answer: `⟦[TOOL_CALLS]⟧f[ARGS]{}`, want: []chat.Event{text(`[TOOL_CALLS]f[ARGS]{}`)}},
		{name: "a control token in a string", marks: controlMarks, answer: `[TOOL_CALLS]f[ARGS]{"x": "[TOOL_CALLS]g[ARGS]{}`, want: []chat.Event{call(0, "f", `{"x": "`), call(1, "g", "{}")}},
	}
}

func mistralThoughtRecords() []record {
	return []record{
		{name: "thoughts", answer: "[THINK]a [b] c\n[/THINK]\nd", want: []chat.Event{thought("a [b] c"), text("d")}},
		{name: "none", answer: "hi", want: []chat.Event{text("hi")}},
		{name: "empty", answer: "[THINK][/THINK]hi", want: []chat.Event{text("hi")}},
		{name: "opened by the prompt", thinking: true, answer: "a[/THINK]b", want: []chat.Event{thought("a"), text("b")}},
		{name: "never closed", answer: "[THINK]a [/THI", want: []chat.Event{thought("a [/THI")}},
		{name: "a call behind them", answer: "[THINK]a[/THINK][TOOL_CALLS]f[ARGS]{}", want: []chat.Event{thought("a"), call(0, "f", "{}")}},
		{name: "again", marks: controlMarks, answer: "a [THINK]b[/THINK] c", want: []chat.Event{text("a"), thought("b"), text(" c")}},
		{name: "in an answer", marks: spelledMarks, answer: "a [THINK]b[/THINK] c", want: []chat.Event{text("a [THINK]b[/THINK] c")}},
	}
}
