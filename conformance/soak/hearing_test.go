package soak

import (
	"errors"
	"strings"
	"sync"
	"testing"
)

// Streams that say what they should.
var streams = map[string]string{
	"chat": `data: {"id":"a","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}

data: {"id":"a","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"reasoning_content":"Hm."},"finish_reason":null}],"usage":null}

: ping

data: {"id":"a","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Yes"},"finish_reason":null}],"usage":null}

data: {"id":"a","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"."},"finish_reason":null}],"usage":null}

data: {"id":"a","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_0123456789abcdef","type":"function","function":{"name":"note","arguments":""}}]},"finish_reason":null}],"usage":null}

data: {"id":"a","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]},"finish_reason":null}],"usage":null}

data: {"id":"a","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}

data: {"id":"a","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}

data: [DONE]

`,
	"messages": `event: message_start
data: {"type":"message_start","message":{"id":"a","role":"assistant","content":[],"stop_reason":null}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Yes."}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_0123456789abcdef","name":"note","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"input_tokens":1,"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

`,
	"responses": `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"a","status":"in_progress","output":[]}}

event: response.in_progress
data: {"type":"response.in_progress","sequence_number":1,"response":{"id":"a","status":"in_progress","output":[]}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"m","type":"message","content":[],"status":"in_progress"}}

event: response.content_part.added
data: {"type":"response.content_part.added","sequence_number":3,"item_id":"m","output_index":0,"part":{"type":"output_text","text":""}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":4,"item_id":"m","output_index":0,"delta":"Yes."}

event: response.output_text.done
data: {"type":"response.output_text.done","sequence_number":5,"item_id":"m","output_index":0,"text":"Yes."}

event: response.content_part.done
data: {"type":"response.content_part.done","sequence_number":6,"item_id":"m","output_index":0,"part":{"type":"output_text","text":"Yes."}}

event: response.output_item.done
data: {"type":"response.output_item.done","sequence_number":7,"output_index":0,"item":{"id":"m","type":"message","content":[{"text":"Yes."}],"status":"completed"}}

event: response.completed
data: {"type":"response.completed","sequence_number":8,"response":{"id":"a","status":"completed","output":[{"id":"m","type":"message","content":[{"text":"Yes."}],"status":"completed"}],"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}}

`,
	"completions": `data: {"id":"a","object":"text_completion","choices":[{"index":0,"text":"Yes.","finish_reason":"stop"}],"usage":null}

data: {"id":"a","object":"text_completion","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}

data: [DONE]

`,
}

// What is not as it should be is seen.
func TestHearing(t *testing.T) {
	cases := []struct{ dialect, old, new, want string }{
		{"chat", "", "", ""},
		{"chat", `"content":"Yes"`, `"content":"No"`, `the piece "No"`},
		{"chat", `"Hm."`, `"Yes"`, `the piece "Yes"`},
		{"chat", `"arguments":"{}"`, `"arguments":"[]"`, `the piece "[]"`},
		{"chat", `"id":"a","object":"chat.completion.chunk","choices":[]`, `"id":"b","object":"chat.completion.chunk","choices":[]`, `the id is "b"`},
		{"chat", `"id":"a"`, `"id":"taken"`, "of another answer"},
		{"chat", `"call_0123456789abcdef"`, `"call_taken_already_"`, "is another's"},
		{"chat", `"tool_calls"}`, `"stop"}`, "ends with"},
		{"chat", `"role":"assistant","content":""`, `"content":"Yes"`, "first of a choice"},
		{"chat", `{"content":"."}`, `{"content":""}`, "the answer ends as"},
		{"chat", `{"content":"."}`, `{"content":".","reasoning":"Hm."}`, "a delta"},
		{"chat", `"index":0,"delta":{}`, `"index":1,"delta":{}`, "choice 1"},
		{"chat", "data: [DONE]\n\n", "", "within a stream"},
		{"chat", "data: [DONE]\n\n", "data: [DONE]\n", "breaks off"},
		{"chat", ": ping\n\n", "ping\n\n", "the line"},
		{"completions", "", "", ""},
		{"completions", "Yes.", "Yes. No.", "the piece"},
		{"completions", `"stop"`, "null", "has no end"},
		{"completions", `"total_tokens":3`, `"total_tokens":4`, "usage"},
		{"messages", "", "", ""},
		{"messages", `"text":"Yes."`, `"text":"No."`, "the piece"},
		{"messages", `"index":1,"content_block":`, `"index":2,"content_block":`, "the event"},
		{"messages", `"signature":"s"`, `"signature":""`, "the delta"},
		{"messages", `"text_delta"`, `"thinking_delta"`, "the delta"},
		{"messages", "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", "", "within a stream"},
		{"messages", "event: message_stop", "event: ping", "type is"},
		{"responses", "", "", ""},
		{"responses", `"delta":"Yes."`, `"delta":"No."`, "the piece"},
		{"responses", `"sequence_number":6`, `"sequence_number":7`, "sequence_number"},
		{"responses", `"text":"Yes."}` + "\n", `"text":"Yes"}` + "\n", "text is"},
		{"responses", `"item_id":"m","output_index":0,"delta"`, `"item_id":"n","output_index":0,"delta"`, "item_id"},
		{"responses", `"output":[{"id":"m"`, `"output":[{"id":"n"`, "the output is"},
		{"responses", "response.output_text.done", "response.reasoning_text.done", "type is"},
	}
	for _, c := range cases {
		want := wanted{said: said{text: "Yes."}, raw: []string{""}}
		if c.dialect == "chat" || c.dialect == "messages" {
			want = wanted{said: said{thoughts: "Hm.", text: "Yes.", calls: []string{"{}"}}, raw: []string{"", ""}}
		}
		var ids sync.Map
		ids.Store("taken", true)
		ids.Store("call_taken_already_", true)
		d := dialects[c.dialect]
		err := d.listen(newHearing([]wanted{want}, moment{}, &ids), &question{stream: true}, strings.NewReader(strings.Replace(streams[c.dialect], c.old, c.new, 1)))
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %q for %q: got %v, want %q", c.dialect, c.new, c.old, err, c.want)
		}
	}
	h := newHearing([]wanted{{said: said{text: "Yes."}, raw: []string{""}}}, moment{part: text, pieces: 2}, new(sync.Map))
	if err := first(h.hear(0, text, "Y"), h.hear(0, text, "e")); !errors.Is(err, errLeft) {
		t.Errorf("at the second piece of a text: got %v, want %v", err, errLeft)
	}
}
