package parse

import "github.com/atlas-inference/atlas/atlasrt/internal/chat"

// bareRecords are those of both formats without marks.
func bareRecords() []record {
	return []record{
		{name: "a call", answer: `{"name": "f", "parameters": {"x": 1}}`, want: []chat.Event{call(0, "f", `{"x": 1}`)}},
		{name: "arguments", answer: ` {"name": "f", "arguments": {"x": "}\"{ ; "}}` + "\n", want: []chat.Event{call(0, "f", `{"x": "}\"{ ; "}`)}},
		{name: "a list", answer: `[{"name": "f", "arguments": {}}, {"name": "g", "arguments": {"a": [1]}}]`, want: []chat.Event{call(0, "f", "{}"), call(1, "g", `{"a": [1]}`)}},
		{name: "several", answer: `{"name": "f", "parameters": {}}; {"name": "g", "parameters": {}};{"name":"f"}`, want: []chat.Event{call(0, "f", "{}"), call(1, "g", "{}"), call(2, "f", "{}")}},
		{name: "several lines", answer: "{\"name\": \"f\"}\n{\"name\": \"g\"}", want: []chat.Event{call(0, "f", "{}"), call(1, "g", "{}")}},
		{name: "behind thoughts", answer: "<think>\nhm {\n</think>\n\n{\"name\": \"f\"}", want: []chat.Event{thought("hm {"), call(0, "f", "{}")}},
		{name: "text behind", answer: `{"name": "f"} bye`, want: []chat.Event{call(0, "f", "{}"), text("bye")}},
		{name: "text behind a comma", answer: `{"name": "f"}, bye`, want: []chat.Event{call(0, "f", "{}"), text(", bye")}},
		{name: "text before", answer: `Call {"name": "f"}`, want: []chat.Event{text(`Call {"name": "f"}`)}},
		{name: "other JSON", answer: ` {"answer": {"name": "f"}}`, want: []chat.Event{text(` {"answer": {"name": "f"}}`)}},
		{name: "other lists", answer: "[1, 2]\n", want: []chat.Event{text("[1, 2]\n")}},
		{name: "unknown", answer: `{"name": "Alice", "parameters": {"x": 1}} `, want: []chat.Event{text(`{"name": "Alice", "parameters": {"x": 1}} `)}},
		{name: "unknown behind known", answer: `{"name": "f"}; {"name": "Alice"}`, want: []chat.Event{call(0, "f", "{}"), text(`; {"name": "Alice"}`)}},
		{name: "arguments first, a type", answer: `{"type": "function", "parameters": {"x": {"name": "g"}}, "name": "f"}`, want: []chat.Event{call(0, "f", `{"x": {"name": "g"}}`)}},
		{name: "within a function", answer: `{"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}`, want: []chat.Event{call(0, "f", `{"x": 1}`)}},
		{name: "cut in the arguments", answer: `{"name": "f", "parameters": {"x": "a`, want: []chat.Event{call(0, "f", `{"x": "a`)}},
		{name: "cut in the name", answer: `{"name": "f`, want: []chat.Event{text(`{"name": "f`)}},
		{name: "broken", answer: `{"name": "f", "parameters": {"x": 1] and`, want: []chat.Event{call(0, "f", `{"x": 1] and`)}},
		{name: "unicode", answer: `{"name": "f", "parameters": {"城": "Zürich 😀"}} 気`, want: []chat.Event{call(0, "f", `{"城": "Zürich 😀"}`), text("気")}},
		{name: "one call only", oneCall: true, answer: `{"name": "f"}; {"name": "g"}`, want: []chat.Event{call(0, "f", "{}")}},
	}
}

func jsonRecords() []record { return bareRecords() }

func llamaRecords() []record {
	return append(bareRecords(),
		record{name: "behind the mark", answer: `<|python_tag|>{"name": "f", "parameters": {"x": "⟦<|python_tag|>⟧"}}; {"name": "g", "parameters": {}}`, want: []chat.Event{call(0, "f", `{"x": "<|python_tag|>"}`), call(1, "g", "{}")}},
		record{name: "text before the mark", answer: "Look. <|python_tag|>{\"name\": \"f\"}\nbye", want: []chat.Event{text("Look."), call(0, "f", "{}"), text("bye")}},
		record{name: "code", answer: `<|python_tag|>search.call(query="{}")`, want: []chat.Event{text(`<|python_tag|>search.call(query="{}")`)}},
		record{name: "a spelled mark", marks: controlMarks, answer: `⟦<|python_tag|>⟧{"name": "f"}`, want: []chat.Event{text(`<|python_tag|>{"name": "f"}`)}},
		record{name: "a mark ends broken arguments", answer: `{"name": "f", "parameters": {"x": 1] <|python_tag|>{"name": "g"}`, want: []chat.Event{call(0, "f", `{"x": 1] `), call(1, "g", "{}")}},
	)
}
