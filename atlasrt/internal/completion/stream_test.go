package completion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
)

// endToken ends answers; below it are a token for each byte.
const endToken = 256

func byteTokenizer(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	return tokenizerWith(t, "<|end|>")
}

// thoughtfulTokenizer is one that may have the marks of thoughts as control tokens.
func thoughtfulTokenizer(t testing.TB, control bool) *tokenizer.Tokenizer {
	t.Helper()
	if control {
		return tokenizerWith(t, "<|end|>", "<think>", "</think>")
	}
	return byteTokenizer(t)
}

// tokenizerWith has a token for each byte, and control tokens behind these.
func tokenizerWith(t testing.TB, controls ...string) *tokenizer.Tokenizer {
	t.Helper()
	var added []map[string]any
	for i, text := range controls {
		added = append(added, map[string]any{"id": 256 + i, "content": text, "special": true})
	}
	vocab := map[string]int{}
	other := rune(256)
	for b := range 256 {
		r := rune(b)
		if !(b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae) { // as byte-level tokenizers spell bytes that do not print
			r, other = other, other+1
		}
		vocab[string(r)] = b
	}
	file, err := json.Marshal(map[string]any{
		"added_tokens":  added,
		"pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
		"decoder":       map[string]any{"type": "ByteLevel"},
		"model":         map[string]any{"type": "BPE", "vocab": vocab, "merges": []string{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.FromJSON(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// scripted is an engine that takes requests and leaves what comes of them to the test.
type scripted struct {
	requests  []engine.Request
	inbox     *engine.Inbox
	cancelled []int
}

func (e *scripted) Submit(_ context.Context, requests ...engine.Request) (*engine.Inbox, error) {
	e.requests = requests
	e.inbox = engine.NewInbox(len(requests), func(request int) { e.cancelled = append(e.cancelled, request) })
	return e.inbox, nil
}

// answerTo is what an engine says of one request whose model writes text, and then ends its turn.
func answerTo(r *engine.Request, number int, text string) (events []engine.Event) {
	for i, token := range append(tokensOf(text), endToken) {
		e := engine.Event{Request: number, Token: token}
		if i == 0 {
			e.Cached = 1
			if r.PromptLogProbs {
				e.Prompt = make([]sample.TokenLogProb, len(r.Prompt)-1)
			}
		}
		if r.LogProbs >= 0 {
			e.LogProb = &sample.TokenLogProb{Token: token, LogProb: -0.5, Top: []sample.Choice{{Token: 'x', LogProb: -0.25}}}
		}
		switch {
		case token == endToken:
			e.Finish = engine.FinishStop
		case i+1 == r.MaxTokens:
			e.Finish = engine.FinishLength
		}
		if events = append(events, e); e.Finish != "" {
			break
		}
	}
	return events
}

func tokensOf(text string) (tokens []int32) {
	for _, b := range []byte(text) {
		tokens = append(tokens, int32(b))
	}
	return tokens
}

// begin starts a stream of an engine that the test plays.
func begin(t *testing.T, tok *tokenizer.Tokenizer, prompts []Prompt, o Options) (*Stream, *scripted) {
	t.Helper()
	e := &scripted{}
	g := &Generator{Engine: e, Tokenizer: tok, End: []int32{endToken}, MaxContext: 100, Vocab: 257, Defaults: sample.Greedy()}
	s, err := g.Start(t.Context(), prompts, o)
	if err != nil {
		t.Fatal(err)
	}
	return s, e
}

// gather adds the events that there are to those of each choice; those of the whole request come last.
func gather(t *testing.T, s *Stream, by [][]chat.Event) {
	t.Helper()
	for {
		events, err := s.Next()
		if err != nil {
			t.Fatal(err)
		}
		if events == nil {
			return
		}
		for _, e := range events {
			choice := e.Choice
			if e.Kind == chat.EventEnd || e.Kind == chat.EventStart {
				choice, e.Choice = len(by)-1, 0 // whichever choice begins
			}
			by[choice] = append(by[choice], e)
		}
	}
}

// The events of an answer are a function of its tokens: the same for every way in which they come in steps.
func TestEventsDoNotDependOnSteps(t *testing.T) {
	tok := byteTokenizer(t)
	cases := []struct {
		text    string
		options Options
		shown   string
		finish  chat.Finish
	}{
		{"plain text", Options{LogProbs: -1}, "plain text", chat.FinishStop},
		{"wö👩🏽‍", Options{LogProbs: -1}, "wö👩🏽‍", chat.FinishStop},
		{"a\xf0\x9fb", Options{LogProbs: 1}, "a�b", chat.FinishStop},
		{"a\xf0\x9f", Options{LogProbs: -1, MaxTokens: 3}, "a�", chat.FinishLength},
		{"one STOP two", Options{LogProbs: -1, Stop: []string{"STOP"}}, "one ", chat.FinishStop},
		{"one STO", Options{LogProbs: 0, Stop: []string{"STOP"}}, "one STO", chat.FinishStop},
		{"x\n\nUser: y", Options{LogProbs: -1, Stop: []string{"User:", "\n\nUser:"}}, "x", chat.FinishStop},
		{"prompted", Options{LogProbs: 1, PromptLogProbs: true, Echo: true}, "hiprompted", chat.FinishStop},
		{"unseen", Options{LogProbs: -1, Echo: true, Score: true, MaxTokens: 1}, "hi", chat.FinishLength},
		{"", Options{LogProbs: -1}, "", chat.FinishStop},
	}
	for _, c := range cases {
		c.options.Choices = 1
		var want [][]chat.Event
		_, e := begin(t, tok, []Prompt{{Tokens: tokensOf("hi"), Text: "hi"}}, c.options)
		events := answerTo(&e.requests[0], 0, c.text)
		for cut := range 1 << (len(events) - 1) {
			s, e := begin(t, tok, []Prompt{{Tokens: tokensOf("hi"), Text: "hi"}}, c.options)
			got := make([][]chat.Event, 2)
			for i, event := range events {
				e.inbox.Put(event)
				if i == len(events)-1 || cut>>i&1 == 1 { // a step ends here
					gather(t, s, got)
				}
			}
			if want == nil {
				want = got
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%q, cut %b:\n got %+v\nwant %+v", c.text, cut, got, want)
			}
		}
		var shown strings.Builder
		for _, e := range want[0] {
			shown.WriteString(e.Text)
		}
		last := want[0][len(want[0])-1]
		if shown.String() != c.shown || last.Kind != chat.EventFinish || last.Finish != c.finish || len(want[1]) != 2 {
			t.Errorf("%q: showed %q and ended with %+v, want %q and %q", c.text, shown.String(), last, c.shown, c.finish)
		}
	}
}

// Choices of several prompts come mixed in whatever way; the events of each are those that it has alone.
func TestChoicesDoNotDependOnEachOther(t *testing.T) {
	tok := byteTokenizer(t)
	prompts := []Prompt{{Tokens: tokensOf("p"), Text: "p"}, {Tokens: append(tokensOf("q"), endToken)}}
	texts := []string{"one END more", "two", "wörld", "E"}
	options := Options{LogProbs: -1, Choices: 2, Echo: true, Stop: []string{"END"}}
	random := rand.New(rand.NewPCG(1, 2))
	var want [][]chat.Event
	for try := range 200 {
		s, e := begin(t, tok, prompts, options)
		var left [][]engine.Event
		for i, text := range texts {
			left = append(left, answerTo(&e.requests[i], i, text))
		}
		got := make([][]chat.Event, len(texts)+1)
		echoed := map[int]bool{}
		for n := 0; n < len(texts); {
			i := random.IntN(len(texts))
			if len(left[i]) == 0 {
				continue
			}
			e.inbox.Put(left[i][0])
			if left[i] = left[i][1:]; len(left[i]) == 0 {
				n++
			}
			if random.IntN(3) == 0 {
				gather(t, s, got)
			}
		}
		gather(t, s, got)
		for i := range got { // prompts come with whichever choice begins
			kept := got[i][:0]
			for _, event := range got[i] {
				if event.Kind == chat.EventPrompt {
					echoed[event.Choice] = event.Text == []string{0: "p", 2: "q"}[event.Choice]
					continue
				}
				kept = append(kept, event)
			}
			got[i] = kept
		}
		if want == nil {
			want = got
		}
		if !reflect.DeepEqual(got, want) || !echoed[0] || !echoed[2] || len(echoed) != 2 {
			t.Fatalf("try %d: prompts %v\n got %+v\nwant %+v", try, echoed, got, want)
		}
		if fmt.Sprint(e.cancelled) != "[0]" {
			t.Fatalf("try %d: cancelled %v, want the one that met a stop string", try, e.cancelled)
		}
		if usage := (chat.Usage{Prompt: 3, Cached: 2, Output: 7 + 4 + 7 + 2}); s.Usage() != usage || got[len(texts)][1].Usage != usage {
			t.Fatalf("try %d: %+v, want %+v", try, s.Usage(), usage)
		}
	}
}

// An error of one answer ends all of them.
func TestErrorsEndTheStream(t *testing.T) {
	tok := byteTokenizer(t)
	broken := errors.New("broken")
	cases := []struct {
		event engine.Event
		want  error
	}{
		{engine.Event{Token: -1, Finish: engine.FinishError, Err: broken}, broken},
		{engine.Event{Token: -1, Finish: engine.FinishCancelled}, errCut},
	}
	for _, c := range cases {
		s, e := begin(t, tok, []Prompt{{Tokens: tokensOf("hi")}}, Options{LogProbs: -1, Choices: 2})
		e.inbox.Put(engine.Event{Token: 'a'})
		e.inbox.Put(c.event)
		e.inbox.Put(engine.Event{Request: 1, Token: 'b'})
		var text string
		var got error
		for events, err := range s.All() {
			for _, event := range events {
				text += event.Text
			}
			got = err
		}
		if text != "a" || !errors.Is(got, c.want) {
			t.Errorf("%+v: got %q and %v, want %q and %v", c.event, text, got, "a", c.want)
		}
		if events, err := s.Next(); events != nil || err != nil {
			t.Errorf("%+v: behind the error there is %+v, %v", c.event, events, err)
		}
	}
}

// What a prompt leaves of the context bounds an answer, and each choice has a seed of its own.
func TestRequestsToTheEngine(t *testing.T) {
	tok := byteTokenizer(t)
	prompts := []Prompt{{Tokens: tokensOf("hi")}, {Tokens: make([]int32, 95)}}
	_, e := begin(t, tok, prompts, Options{LogProbs: 0, Choices: 2, MaxTokens: 10, MinTokens: 7, PromptLogProbs: true, StopTokens: []int32{7}})
	var got []string
	for _, r := range e.requests {
		got = append(got, fmt.Sprint(len(r.Prompt), r.MaxTokens, r.MinTokens, r.End, r.Sampling.Seed, r.PromptLogProbs))
	}
	if want := "[2 10 7 [256 7] 0 true 2 10 7 [256 7] 1 false 95 5 5 [256 7] 2 true 95 5 5 [256 7] 3 false]"; fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	g := &Generator{Engine: e, Tokenizer: tok, MaxContext: 100}
	var long *TooLong
	if _, err := g.Start(t.Context(), append(prompts, Prompt{Tokens: make([]int32, 100)}), Options{Choices: 1}); !errors.As(err, &long) || *long != (TooLong{100, 100}) {
		t.Errorf("a prompt that fills the context: %v", err)
	}
}

// An answer to a request with tools that has no bound of its own gets one.
func TestToolTokens(t *testing.T) {
	tool := []chat.Tool{{Name: "f"}}
	cases := []struct {
		bound   int
		options Options
		want    int
	}{{0, Options{Tools: tool}, 99}, {7, Options{Tools: tool}, 7}, {7, Options{}, 99}, {7, Options{Tools: tool, MaxTokens: 20}, 20}, {200, Options{Tools: tool}, 99}}
	for _, c := range cases {
		e := &scripted{}
		g := &Generator{Engine: e, Tokenizer: byteTokenizer(t), MaxContext: 100, Vocab: 257, Defaults: sample.Greedy(), ToolTokens: c.bound}
		c.options.Choices, c.options.LogProbs = 1, -1
		s, err := g.Start(t.Context(), []Prompt{{Tokens: []int32{'p'}}}, c.options)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		if got := e.requests[0].MaxTokens; got != c.want {
			t.Errorf("%+v under %d: got %d tokens at most, want %d", c.options, c.bound, got, c.want)
		}
	}
}
