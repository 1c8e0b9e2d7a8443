package conformance

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// A developer's message counts as the system's where the model's template knows no developer: never is it lost.
func TestDeveloperMessage(t *testing.T) {
	s := open(t)
	with, without := s.question(1), s.question(1)
	with.Messages = []openai.ChatCompletionMessageParamUnion{openai.DeveloperMessage("You answer in French, whatever you are asked, and in rhymes."), openai.UserMessage("Hello.")}
	without.Messages = []openai.ChatCompletionMessageParamUnion{openai.DeveloperMessage("You."), openai.UserMessage("Hello.")}
	long, err := s.client.Chat.Completions.New(s.ctx, with)
	if err != nil {
		t.Fatal(err)
	}
	short, err := s.client.Chat.Completions.New(s.ctx, without)
	if err != nil {
		t.Fatal(err)
	}
	if long.Usage.PromptTokens < short.Usage.PromptTokens+8 {
		t.Errorf("a prompt of %d tokens, with a shorter message %d", long.Usage.PromptTokens, short.Usage.PromptTokens)
	}
}

// An answer goes on with the last message where it is asked to: greedily, the rest of an answer follows its beginning.
func TestContinuedMessage(t *testing.T) {
	s := open(t)
	question := s.question(24)
	whole, err := s.client.Chat.Completions.New(s.ctx, question)
	if err != nil {
		t.Fatal(err)
	}
	text := whole.Choices[0].Message.Content
	words := strings.SplitAfter(text, " ")
	if len(words) < 6 {
		t.Fatalf("the answer %q is too short to be cut", text)
	}
	begin := strings.TrimRight(strings.Join(words[:len(words)/2], ""), " ")
	question.Messages = append(question.Messages, openai.AssistantMessage(begin))
	rest, err := s.client.Chat.Completions.New(s.ctx, question, option.WithJSONSet("continue_final_message", true), option.WithJSONSet("add_generation_prompt", false))
	if err != nil {
		t.Fatal(err)
	}
	got := rest.Choices[0].Message.Content
	if want := strings.TrimPrefix(text, begin); got == "" || !strings.HasPrefix(got, want) && !strings.HasPrefix(want, got) {
		t.Errorf("%q goes on with %q, want %q", begin, got, want)
	}
	_, err = s.client.Chat.Completions.New(s.ctx, question, option.WithJSONSet("continue_final_message", true), option.WithJSONSet("add_generation_prompt", true))
	checkError(t, "both", err, 400, "invalid_value", "continue_final_message")
	question.Messages = append(question.Messages, openai.AssistantMessage("And."))
	_, err = s.client.Chat.Completions.New(s.ctx, question)
	checkError(t, "two at the end", err, 400, "invalid_value", "messages[3]")
}

// What other servers' clients send: no model, tools that may not be called, samplers that are off, that are served, and that are not.
func TestFieldsOfOthers(t *testing.T) {
	s := open(t)
	accepted := [][]option.RequestOption{
		{option.WithJSONDel("model")}, {option.WithJSONSet("tool_choice", "none"), option.WithJSONSet("tools", []map[string]any{{"type": "function", "function": map[string]any{"name": "f"}}})},
		{option.WithJSONSet("dry_multiplier", 0), option.WithJSONSet("xtc_probability", 0), option.WithJSONSet("mirostat", 0), option.WithJSONSet("typical_p", 1)},
		{option.WithJSONSet("dry_multiplier", 0.8), option.WithJSONSet("xtc_probability", 0.5), option.WithJSONSet("top_n_sigma", 1), option.WithJSONSet("bad_words", []string{"never"})},
		{option.WithJSONSet("top_p", 0)}, {option.WithJSONSet("repeat_penalty", 1.1)}, {option.WithJSONSet("max_tokens", 1.0)},
	}
	for i, options := range accepted {
		if got, err := s.client.Chat.Completions.New(s.ctx, s.question(1), options...); err != nil || got.Model == "" {
			t.Errorf("case %d: %v", i, err)
		}
	}
	for name, value := range map[string]any{"mirostat": 2, "typical_p": 0.9, "dynatemp_range": 0.5, "min_keep": 2, "options": map[string]any{"num_ctx": 8}} {
		_, err := s.client.Chat.Completions.New(s.ctx, s.question(1), option.WithJSONSet(name, value))
		checkError(t, name, err, 400, "unsupported_parameter", name)
	}
}

// With echo the log-probabilities are of prompt and answer, the first has none, and offsets are characters of the text.
func TestCompletionLogProbs(t *testing.T) {
	s := open(t)
	got, err := s.client.Completions.New(s.ctx, openai.CompletionNewParams{
		Model: openai.CompletionNewParamsModel(s.model), Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("Ein Käse, zwei Käse")},
		MaxTokens: openai.Int(3), Temperature: openai.Float(0), Echo: openai.Bool(true), Logprobs: openai.Int(2),
	})
	if err != nil {
		t.Fatal(err)
	}
	text := []rune(got.Choices[0].Text)
	var l struct { // the client's own type has no place for null
		Tokens        []string
		TokenLogProbs []*float64           `json:"token_logprobs"`
		Top           []map[string]float64 `json:"top_logprobs"`
		TextOffset    []int                `json:"text_offset"`
	}
	if err := json.Unmarshal([]byte(got.Choices[0].Logprobs.RawJSON()), &l); err != nil {
		t.Fatal(err)
	}
	n := len(l.Tokens)
	if n < 6 || len(l.TokenLogProbs) != n || len(l.Top) != n || len(l.TextOffset) != n || l.TokenLogProbs[0] != nil || l.Top[0] != nil {
		t.Fatalf("log-probabilities %s", got.Choices[0].Logprobs.RawJSON())
	}
	for i, token := range l.Tokens {
		at := l.TextOffset[i]
		if !strings.HasPrefix(token, "bytes:") && at < len(text) && !strings.HasPrefix(string(text[at:]), token) {
			t.Errorf("token %d is %q, but at %d of %q stands %q", i, token, at, string(text), string(text[at:]))
		}
		if i > 0 && (l.TokenLogProbs[i] == nil || *l.TokenLogProbs[i] > 0 || len(l.Top[i]) < 2 || len(l.Top[i]) > 3) {
			t.Errorf("token %d has %v among %v", i, l.TokenLogProbs[i], l.Top[i])
		}
	}
}
