package completion

import (
	"reflect"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// A replay finds what a stream does, in whatever pieces.
func TestReplayIsStream(t *testing.T) {
	tool := []chat.Tool{{Name: "f"}}
	const call = "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": \"ü\"}}</tool_call>"
	cases := []struct {
		name, text string
		prompt     Prompt
		options    Options
	}{
		{"text", "ab ü", Prompt{}, Options{Tools: tool}},
		{"nothing", "", Prompt{}, Options{Tools: tool}},
		{"half a code point", "a\xc3", Prompt{}, Options{Tools: tool}},
		{"thoughts and calls", "<think>hm</think>\n\nab" + call + call, Prompt{}, Options{Tools: tool}},
		{"within thoughts", "hm</think>ab", Prompt{Thinking: true}, Options{Tools: tool}},
		{"another tool", call, Prompt{}, Options{Tools: []chat.Tool{{Name: "g"}}}},
		{"one call", call + call, Prompt{}, Options{Tools: tool, OneCall: true}},
		{"stop string", "ab" + call, Prompt{}, Options{Tools: tool, Stop: []string{"b<"}}},
	}
	g := &Generator{Tokenizer: byteTokenizer(t), End: []int32{endToken}, MaxContext: 1000, Vocab: 257, Defaults: sample.Greedy(),
		Formats: Formats{Reasoning: parse.FindReasoning("think"), Tools: parse.FindTools("hermes")}}
	for _, c := range cases {
		c.prompt.Tokens, c.options.Chat, c.options.Choices, c.options.LogProbs = []int32{'p'}, true, 1, -1
		e := &scripted{}
		g.Engine = e
		s, err := g.Start(t.Context(), []Prompt{c.prompt}, c.options)
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range answerTo(&e.requests[0], 0, c.text) {
			e.inbox.Put(event)
		}
		var joined answer
		var want []chat.Event
		for events, err := range s.All() {
			if err != nil {
				t.Fatal(err)
			}
			for _, event := range events {
				switch event.Kind {
				case chat.EventStart, chat.EventEnd:
				default:
					joined.add([]chat.Event{event})
				}
			}
		}
		want = joined.events
		r := Replay{Generator: g, Prompt: c.prompt, Options: c.options}
		tokens := append(tokensOf(c.text), endToken)
		got, _ := r.Tokens(tokens)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", c.name, got, want)
		}
		pieces := r.Pieces(tokens)
		if got := r.Cut(pieces); !reflect.DeepEqual(got, want) {
			t.Errorf("%s in pieces: got %+v, want %+v", c.name, got, want)
		}
		whole := Piece{}
		for _, p := range pieces {
			whole.Text += p.Text
		}
		if got := r.Cut([]Piece{whole}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s in one piece: got %+v, want %+v", c.name, got, want)
		}
	}
}

// Without tools any may be called; nothing behind the end is read.
func TestReplayOfAnyTool(t *testing.T) {
	g := &Generator{Tokenizer: byteTokenizer(t), End: []int32{endToken}, Formats: Formats{Tools: parse.FindTools("hermes")}}
	r := Replay{Generator: g, Options: Options{Chat: true}}
	tokens := append(tokensOf(`<tool_call>{"name": "any"}</tool_call>`), endToken, 'x')
	events, read := r.Tokens(tokens)
	want := []chat.Event{{Kind: chat.EventToolCall, Call: chat.ToolCallDelta{Name: "any", Arguments: "{}"}}, {Kind: chat.EventFinish, Finish: chat.FinishToolCalls}}
	if !reflect.DeepEqual(events, want) || read != len(tokens)-1 {
		t.Errorf("got %+v of %d tokens, want %+v of %d", events, read, want, len(tokens)-1)
	}
}
