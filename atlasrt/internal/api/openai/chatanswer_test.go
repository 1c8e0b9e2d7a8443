package openai

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
)

var head = api.Head{ID: "0123456789abcdef01234567", Created: 7, Model: "m"}

func thought(choice int, text string) chat.Event {
	return chat.Event{Kind: chat.EventReasoning, Choice: choice, Text: text}
}

func spoken(choice int, text string) chat.Event {
	return chat.Event{Kind: chat.EventText, Choice: choice, Text: text}
}

func called(choice, index int, name, arguments string) chat.Event {
	return chat.Event{Kind: chat.EventToolCall, Choice: choice, Call: chat.ToolCallDelta{Index: index, Name: name, Arguments: arguments}}
}

func finished(choice int, f chat.Finish) chat.Event {
	return chat.Event{Kind: chat.EventFinish, Choice: choice, Finish: f}
}

// with gives an event the log-probability of a token.
func with(e chat.Event, text string) chat.Event {
	e.Tokens = []chat.Token{{Bytes: []byte(text), LogProb: -0.5}}
	return e
}

var ended = chat.Event{Kind: chat.EventEnd, Usage: chat.Usage{Prompt: 5, Cached: 2, Output: 9, Reasoning: 3}}

// Streams, byte by byte: the choices of each event stand between what all events share, which is left out here.
func TestT054Streams(t *testing.T) {
	const id = "call_0123456789abcdef0123"
	role := func(choice int) string {
		return fmt.Sprintf(`{"index":%d,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`, choice)
	}
	delta := func(choice int, delta string) string {
		return fmt.Sprintf(`{"index":%d,"delta":{%s},"logprobs":null,"finish_reason":null}`, choice, delta)
	}
	end := func(choice int, finish string) string {
		return fmt.Sprintf(`{"index":%d,"delta":{},"logprobs":null,"finish_reason":"%s"}`, choice, finish)
	}
	cases := []struct {
		name    string
		dialect Chat
		request api.Request
		events  []chat.Event
		want    []string
	}{
		{"one call", Chat{}, api.Request{}, []chat.Event{called(0, 0, "f", ""), called(0, 0, "", `{"a":`), called(0, 0, "", `"<b>"}`), finished(0, chat.FinishToolCalls)}, []string{
			role(0), delta(0, `"tool_calls":[{"index":0,"id":"`+id+`0000","type":"function","function":{"name":"f","arguments":""}}]`),
			delta(0, `"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]`), delta(0, `"tool_calls":[{"index":0,"function":{"arguments":"\"<b>\"}"}}]`), end(0, "tool_calls"),
		}},
		{"text, calls, text", Chat{}, api.Request{}, []chat.Event{spoken(0, "a"), called(0, 0, "f", "{}"), spoken(0, "b"), called(0, 1, "g", "{}"), finished(0, chat.FinishLength)}, []string{
			role(0), delta(0, `"content":"a"`),
			delta(0, `"tool_calls":[{"index":0,"id":"`+id+`0000","type":"function","function":{"name":"f","arguments":""}}]`), delta(0, `"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]`), delta(0, `"content":"\n\nb"`),
			delta(0, `"tool_calls":[{"index":1,"id":"`+id+`0001","type":"function","function":{"name":"g","arguments":""}}]`), delta(0, `"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]`), end(0, "length"),
		}},
		{"T059 thoughts", Chat{}, api.Request{}, []chat.Event{thought(0, "hm"), spoken(0, "a"), finished(0, chat.FinishStop)}, []string{
			role(0), delta(0, `"reasoning_content":"hm","reasoning":"hm"`), delta(0, `"content":"a"`), end(0, "stop"),
		}},
		{"T059 the older field", Chat{Reasoning: ReasoningContent}, api.Request{}, []chat.Event{thought(0, "hm"), finished(0, chat.FinishStop)}, []string{role(0), delta(0, `"reasoning_content":"hm"`), end(0, "stop")}},
		{"T059 the short field", Chat{Reasoning: ReasoningShort}, api.Request{}, []chat.Event{thought(0, "hm"), finished(0, chat.FinishStop)}, []string{role(0), delta(0, `"reasoning":"hm"`), end(0, "stop")}},
		{"T059 thoughts left out", Chat{}, api.Request{HideReasoning: true}, []chat.Event{thought(0, "hm"), with(thought(0, "m"), "m"), finished(0, chat.FinishStop)}, []string{
			role(0), `{"index":0,"delta":{},"logprobs":{"content":[{"token":"m","logprob":-0.5,"bytes":[109],"top_logprobs":[]}],"refusal":null},"finish_reason":null}`, end(0, "stop"),
		}},
		{"a function", Chat{}, api.Request{FunctionCall: true}, []chat.Event{called(0, 0, "f", "{}"), finished(0, chat.FinishToolCalls)}, []string{
			role(0), delta(0, `"function_call":{"name":"f","arguments":""}`), delta(0, `"function_call":{"arguments":"{}"}`), end(0, "function_call"),
		}},
		{"T048 two choices", Chat{}, api.Request{Options: completion.Options{Choices: 2}}, []chat.Event{called(1, 0, "f", ""), spoken(0, "a"), called(1, 0, "", "{}"), finished(0, chat.FinishStop), finished(1, chat.FinishToolCalls)}, []string{
			role(1), delta(1, `"tool_calls":[{"index":0,"id":"`+id+`0100","type":"function","function":{"name":"f","arguments":""}}]`), role(0), delta(0, `"content":"a"`),
			delta(1, `"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]`), end(0, "stop"), end(1, "tool_calls"),
		}},
		{"T052 nothing", Chat{}, api.Request{}, []chat.Event{finished(0, chat.FinishStop)}, []string{role(0), end(0, "stop")}},
		{"T056 a call that is cut", Chat{}, api.Request{}, []chat.Event{called(0, 0, "f", `{"a": "`), finished(0, chat.FinishLength)}, []string{
			role(0), delta(0, `"tool_calls":[{"index":0,"id":"`+id+`0000","type":"function","function":{"name":"f","arguments":""}}]`), delta(0, `"tool_calls":[{"index":0,"function":{"arguments":"{\"a\": \""}}]`), end(0, "length"),
		}},
	}
	for _, c := range cases {
		for _, usage := range []bool{false, true} {
			c.request.Chat, c.request.StreamUsage, c.request.Options.Choices = &chat.Request{}, usage, max(c.request.Options.Choices, 1)
			open, shut := `data: {"id":"chatcmpl-0123456789abcdef01234567","object":"chat.completion.chunk","created":7,"model":"m","choices":[`, "]}\n\n"
			last := "data: [DONE]\n\n"
			if usage { // T047
				shut = "],\"usage\":null}\n\n"
				last = open + `],"usage":{"prompt_tokens":5,"completion_tokens":9,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":2},` +
					`"completion_tokens_details":{"reasoning_tokens":3,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}` + "\n\n" + last
			}
			want := ""
			for _, choice := range c.want {
				want += open + choice + shut
			}
			a := c.dialect.Answer(&c.request, head)
			got := a.Append(a.Begin(nil), []chat.Event{{Kind: chat.EventStart}})
			for _, e := range c.events {
				got = a.Append(got, []chat.Event{e})
			}
			if got = a.Append(got, []chat.Event{ended}); string(got) != want+last {
				t.Errorf("%s, usage %v:\n got %s\nwant %s", c.name, usage, got, want+last)
			}
		}
	}
}

// Whole answers, byte by byte.
func TestT053WholeAnswers(t *testing.T) {
	const id = "call_0123456789abcdef0123"
	cases := []struct {
		name    string
		request api.Request
		events  []chat.Event
		message string
		rest    string
	}{
		{"T053 a call alone", api.Request{}, []chat.Event{called(0, 0, "f", ""), called(0, 0, "", `{"a":1}`), finished(0, chat.FinishToolCalls)},
			`"content":null,"refusal":null,"tool_calls":[{"id":"` + id + `0000","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]`, `"logprobs":null,"finish_reason":"tool_calls"`},
		{"text and calls", api.Request{}, []chat.Event{spoken(0, "a"), called(0, 0, "f", "{}"), spoken(0, "b"), called(0, 1, "f", "{}"), finished(0, chat.FinishToolCalls)},
			`"content":"a\n\nb","refusal":null,"tool_calls":[{"id":"` + id + `0000","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"` + id + `0001","type":"function","function":{"name":"f","arguments":"{}"}}]`,
			`"logprobs":null,"finish_reason":"tool_calls"`},
		{"thoughts twice", api.Request{}, []chat.Event{thought(0, "h"), spoken(0, "a"), with(spoken(0, ""), "b"), spoken(0, "c"), thought(0, "m"), spoken(0, "d"), finished(0, chat.FinishStop)},
			`"content":"ac\n\nd","refusal":null,"reasoning_content":"h\n\nm","reasoning":"h\n\nm"`, `"logprobs":{"content":[{"token":"b","logprob":-0.5,"bytes":[98],"top_logprobs":[]}],"refusal":null},"finish_reason":"stop"`},
		{"thoughts", api.Request{}, []chat.Event{thought(0, "h"), thought(0, "m"), spoken(0, "a"), finished(0, chat.FinishStop)}, `"content":"a","refusal":null,"reasoning_content":"hm","reasoning":"hm"`, `"logprobs":null,"finish_reason":"stop"`},
		{"thoughts left out", api.Request{HideReasoning: true}, []chat.Event{thought(0, "h"), finished(0, chat.FinishLength)}, `"content":"","refusal":null`, `"logprobs":null,"finish_reason":"length"`},
		{"a function", api.Request{FunctionCall: true}, []chat.Event{called(0, 0, "f", "{}"), finished(0, chat.FinishToolCalls)}, `"content":null,"refusal":null,"function_call":{"name":"f","arguments":"{}"}`, `"logprobs":null,"finish_reason":"function_call"`},
		{"tokens", api.Request{}, []chat.Event{with(thought(0, ""), "h"), with(called(0, 0, "f", "{}"), "c"), with(spoken(0, ""), "a"), finished(0, chat.FinishStop)},
			`"content":null,"refusal":null,"tool_calls":[{"id":"` + id + `0000","type":"function","function":{"name":"f","arguments":"{}"}}]`,
			`"logprobs":{"content":[{"token":"h","logprob":-0.5,"bytes":[104],"top_logprobs":[]},{"token":"c","logprob":-0.5,"bytes":[99],"top_logprobs":[]},{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[]}],"refusal":null},"finish_reason":"stop"`},
	}
	for _, c := range cases {
		c.request.Chat, c.request.Options.Choices = &chat.Request{}, 1
		a := Chat{}.Answer(&c.request, head)
		a.Add(append(c.events, ended))
		want := `{"id":"chatcmpl-0123456789abcdef01234567","object":"chat.completion","created":7,"model":"m","choices":[{"index":0,"message":{"role":"assistant",` + c.message + `},` + c.rest + `}],` +
			`"usage":{"prompt_tokens":5,"completion_tokens":9,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":3,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}`
		if got := string(a.Body()); got != want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, want)
		}
	}
}

// joined is what a client makes of a stream: the message of each choice, as a whole answer has it.
func joined(t *testing.T, stream string, choices int) []map[string]any {
	t.Helper()
	messages := make([]map[string]any, choices)
	for i := range messages {
		messages[i] = map[string]any{"calls": []any(nil), "tokens": []any(nil)}
	}
	for event := range strings.SplitSeq(strings.TrimSuffix(stream, "data: [DONE]\n\n"), "\n\n") {
		if event == "" {
			continue
		}
		var d struct {
			Choices []struct {
				Index int
				Delta struct {
					Content, Reasoning *string
					Older              *string `json:"reasoning_content"`
					Calls              []struct {
						Index    int
						ID       string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				LogProbs *struct{ Content []any }
				Finish   string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &d); err != nil {
			t.Fatalf("%q: %v", event, err)
		}
		for _, c := range d.Choices {
			m := messages[c.Index]
			for name, piece := range map[string]*string{"content": c.Delta.Content, "reasoning": c.Delta.Reasoning, "reasoning_content": c.Delta.Older} {
				if piece != nil {
					m[name] = fmt.Sprint(or(m[name], ""), *piece)
				}
			}
			calls := m["calls"].([]any)
			for _, call := range c.Delta.Calls {
				if call.ID != "" {
					calls = append(calls, map[string]any{"id": call.ID, "name": call.Function.Name, "arguments": ""})
				}
				if call.Index != len(calls)-1 {
					t.Fatalf("a piece of call %d where %d have begun", call.Index, len(calls))
				}
				last := calls[call.Index].(map[string]any)
				last["arguments"] = fmt.Sprint(last["arguments"], call.Function.Arguments)
			}
			m["calls"] = calls
			if c.LogProbs != nil {
				m["tokens"] = append(m["tokens"].([]any), c.LogProbs.Content...)
			}
			if c.Finish != "" {
				m["finish"] = fmt.Sprint(or(m["finish"], ""), c.Finish)
			}
		}
	}
	return messages
}

func or(v, other any) any {
	if v == nil {
		return other
	}
	return v
}

// What a client joins of a stream is the whole answer, whatever comes in it and however it is cut (T046, T053, T054).
func TestT046DeltasJoinToTheBody(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		choices := 1 + random.IntN(3)
		r := &api.Request{Chat: &chat.Request{}, Options: completion.Options{Choices: choices}, HideReasoning: random.IntN(4) == 0, StreamUsage: random.IntN(2) == 0}
		steps := randomSteps(random, choices)
		streamed, whole := Chat{}.Answer(r, head), Chat{}.Answer(r, head)
		var stream []byte
		for _, events := range steps {
			stream = streamed.Append(stream, events)
			whole.Add(events)
		}
		var body struct {
			Choices []struct {
				Message struct {
					Content, Reasoning *string
					Older              *string `json:"reasoning_content"`
					Calls              []struct {
						ID       string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				LogProbs *struct{ Content []any }
				Finish   string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal(whole.Body(), &body); err != nil {
			t.Fatal(err)
		}
		for i, got := range joined(t, string(stream), choices) {
			m := body.Choices[i].Message
			text := func(s *string) string {
				if s == nil {
					return ""
				}
				return *s
			}
			calls, tokens := []any(nil), []any(nil)
			for _, call := range m.Calls {
				calls = append(calls, map[string]any{"id": call.ID, "name": call.Function.Name, "arguments": call.Function.Arguments})
			}
			if body.Choices[i].LogProbs != nil {
				tokens = body.Choices[i].LogProbs.Content
			}
			a := fmt.Sprint(or(got["content"], ""), "|", or(got["reasoning"], ""), "|", or(got["reasoning_content"], ""), "|", got["calls"], "|", got["tokens"], "|", got["finish"])
			b := fmt.Sprint(text(m.Content), "|", text(m.Reasoning), "|", text(m.Older), "|", calls, "|", tokens, "|", body.Choices[i].Finish)
			if a != b {
				t.Fatalf("choice %d of %v:\nstreamed %s\n   whole %s", i, steps, a, b)
			}
		}
	}
}

// randomSteps are the events of an answer, as tokens may make them.
func randomSteps(random *rand.Rand, choices int) (steps [][]chat.Event) {
	calls, open, over := make([]int, choices), make([]bool, choices), make([]bool, choices)
	for left := choices; left > 0; {
		choice := random.IntN(choices)
		if over[choice] {
			continue
		}
		var events []chat.Event
		for range 1 + random.IntN(3) {
			var e chat.Event
			switch text := fmt.Sprintf("é\"<%d>", random.IntN(100)); random.IntN(5) {
			case 0:
				e, open[choice] = spoken(choice, text), false
			case 1:
				e, open[choice] = thought(choice, text), false
			case 2:
				e, open[choice] = called(choice, calls[choice], "f", strings.Repeat(text, random.IntN(2))), true
				calls[choice]++
			default:
				if !open[choice] {
					continue
				}
				e = called(choice, calls[choice]-1, "", text)
			}
			if len(events) == 0 && random.IntN(2) == 0 {
				e = with(e, "t")
			}
			events = append(events, e)
		}
		if over[choice] = random.IntN(6) == 0; over[choice] {
			left--
			events = append(events, finished(choice, chat.FinishStop))
		}
		steps = append(steps, events)
	}
	return append(steps, []chat.Event{ended})
}
