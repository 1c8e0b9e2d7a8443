// Package conformance asks a running server with OpenAI's own Go client, unmodified.
//
// It is a module of its own so that the client's dependencies stay out of the programs. The tests need
//
//	ATLAS_URL   where the server is, such as http://127.0.0.1:8000; without it they skip
//	ATLAS_KEY   a key of it, if it asks for one
//	ATLAS_MODEL the model to ask; else the first that it lists
package conformance

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/atlas-inference/atlas/conformance/gauges"
)

// target is a server and a model of it.
type target struct {
	url, model string
	client     openai.Client
	ctx        context.Context
}

func open(t *testing.T, options ...option.RequestOption) target {
	t.Helper()
	url := strings.TrimRight(os.Getenv("ATLAS_URL"), "/")
	if url == "" {
		t.Skip("set ATLAS_URL to a running server")
	}
	key := os.Getenv("ATLAS_KEY")
	if key == "" {
		key = "none"
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	options = append([]option.RequestOption{option.WithBaseURL(url + "/v1"), option.WithAPIKey(key), option.WithMaxRetries(0)}, options...)
	s := target{url: url, model: os.Getenv("ATLAS_MODEL"), client: openai.NewClient(options...), ctx: ctx}
	if s.model == "" {
		models, err := s.client.Models.List(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(models.Data) == 0 {
			t.Fatal("the server lists no model")
		}
		s.model = models.Data[0].ID
	}
	return s
}

// question is a chat whose answer takes at most so many tokens, the same each time.
func (s target) question(tokens int64) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:       s.model,
		Messages:    []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("You are brief."), openai.UserMessage("Name three colours of the rainbow.")},
		MaxTokens:   openai.Int(tokens),
		Temperature: openai.Float(0),
		Seed:        openai.Int(7),
	}
}

func TestModels(t *testing.T) {
	s := open(t)
	model, err := s.client.Models.Get(s.ctx, s.model)
	if err != nil || model.ID != s.model || model.Object != "model" || model.Created == 0 {
		t.Errorf("got %+v, %v, want %s", model, err, s.model)
	}
}

func TestChat(t *testing.T) {
	s := open(t)
	got, err := s.client.Chat.Completions.New(s.ctx, s.question(16))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Choices) != 1 || got.ID == "" || got.Model != s.model {
		t.Fatalf("got %s", got.RawJSON())
	}
	c, u := got.Choices[0], got.Usage
	if c.Message.Role != "assistant" || c.FinishReason != "stop" && c.FinishReason != "length" {
		t.Errorf("choice %s", c.RawJSON())
	}
	if u.PromptTokens == 0 || u.CompletionTokens == 0 || u.CompletionTokens > 16 || u.TotalTokens != u.PromptTokens+u.CompletionTokens {
		t.Errorf("usage %s", u.RawJSON())
	}
}

// A stream that the client's accumulator puts together is the answer as a whole.
func TestStream(t *testing.T) {
	s := open(t)
	question := s.question(32)
	whole, err := s.client.Chat.Completions.New(s.ctx, question)
	if err != nil {
		t.Fatal(err)
	}
	question.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	got := s.accumulate(t, question)
	if len(got.Choices) != 1 || got.Choices[0].Message.Content != whole.Choices[0].Message.Content || got.Choices[0].FinishReason != whole.Choices[0].FinishReason {
		t.Errorf("streamed %+v, whole %s", got.Choices, whole.RawJSON())
	}
	if got.Usage.PromptTokens != whole.Usage.PromptTokens || got.Usage.CompletionTokens != whole.Usage.CompletionTokens {
		t.Errorf("usage streamed %+v, whole %s", got.Usage, whole.Usage.RawJSON())
	}
}

func (s target) accumulate(t *testing.T, question openai.ChatCompletionNewParams) *openai.ChatCompletionAccumulator {
	t.Helper()
	stream := s.client.Chat.Completions.NewStreaming(s.ctx, question)
	defer stream.Close()
	got := &openai.ChatCompletionAccumulator{}
	for stream.Next() {
		if !got.AddChunk(stream.Current()) {
			t.Fatalf("the accumulator refuses %s", stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestChoices(t *testing.T) {
	s := open(t)
	question := s.question(8)
	question.N = openai.Int(2)
	whole, err := s.client.Chat.Completions.New(s.ctx, question)
	if err != nil {
		t.Fatal(err)
	}
	streamed := s.accumulate(t, question)
	for name, choices := range map[string][]openai.ChatCompletionChoice{"whole": whole.Choices, "streamed": streamed.Choices} {
		if len(choices) != 2 || choices[0].Message.Content != choices[1].Message.Content || choices[1].Index != 1 {
			t.Errorf("%s: two greedy answers are %+v", name, choices)
		}
	}
}

// A stop string taken from the middle of an answer ends it there.
func TestStop(t *testing.T) {
	s := open(t)
	question := s.question(24)
	whole, err := s.client.Chat.Completions.New(s.ctx, question)
	if err != nil {
		t.Fatal(err)
	}
	text := []rune(whole.Choices[0].Message.Content)
	if len(text) < 8 {
		t.Fatalf("the answer %q is too short to be cut", string(text))
	}
	stop := string(text[len(text)/2 : len(text)/2+3])
	question.Stop = openai.ChatCompletionNewParamsStopUnion{OfStringArray: []string{stop}}
	want, _, _ := strings.Cut(string(text), stop)
	got := s.accumulate(t, question).Choices[0]
	if got.Message.Content != want || got.FinishReason != "stop" {
		t.Errorf("%q stopped by %q: got %q, %s, want %q, stop", string(text), stop, got.Message.Content, got.FinishReason, want)
	}
}

func TestLogProbs(t *testing.T) {
	s := open(t)
	question := s.question(4)
	question.Logprobs, question.TopLogprobs = openai.Bool(true), openai.Int(3)
	whole, err := s.client.Chat.Completions.New(s.ctx, question)
	if err != nil {
		t.Fatal(err)
	}
	for name, choice := range map[string]openai.ChatCompletionChoice{"whole": whole.Choices[0], "streamed": s.accumulate(t, question).Choices[0]} {
		tokens := choice.Logprobs.Content
		if len(tokens) != int(whole.Usage.CompletionTokens) {
			t.Errorf("%s: %d log-probabilities for %d tokens", name, len(tokens), whole.Usage.CompletionTokens)
		}
		for _, token := range tokens {
			if len(token.TopLogprobs) != 3 || token.Logprob > 0 || token.Logprob != token.TopLogprobs[0].Logprob {
				t.Errorf("%s: greedy token %+v is not the likeliest", name, token)
			}
		}
	}
}

func TestCompletions(t *testing.T) {
	s := open(t)
	question := openai.CompletionNewParams{
		Model: openai.CompletionNewParamsModel(s.model), Prompt: openai.CompletionNewParamsPromptUnion{OfArrayOfStrings: []string{"One, two,", "A, b,"}},
		MaxTokens: openai.Int(4), Temperature: openai.Float(0), Echo: openai.Bool(true),
	}
	got, err := s.client.Completions.New(s.ctx, question)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Choices) != 2 || !strings.HasPrefix(got.Choices[0].Text, "One, two,") || !strings.HasPrefix(got.Choices[1].Text, "A, b,") {
		t.Fatalf("got %s", got.RawJSON())
	}
	question.Echo, question.Logprobs = openai.Bool(false), openai.Int(1)
	if got, err = s.client.Completions.New(s.ctx, question); err != nil {
		t.Fatal(err)
	}
	l := got.Choices[0].Logprobs
	if n := len(l.Tokens); n == 0 || len(l.TextOffset) != n || len(l.TokenLogprobs) != n || len(l.TopLogprobs) != n {
		t.Errorf("log-probabilities %s", l.RawJSON())
	}
}

// Errors arrive as the client's own type, with the fields that programs look at.
func TestErrors(t *testing.T) {
	s := open(t)
	long, hot, unknown := s.question(1), s.question(1), s.question(1)
	long.Messages = []openai.ChatCompletionMessageParamUnion{openai.UserMessage(strings.Repeat("word ", 1<<20))}
	hot.Temperature = openai.Float(3)
	unknown.Model = "no-such-model"
	cases := []struct {
		name        string
		question    openai.ChatCompletionNewParams
		status      int
		code, param string
	}{
		{"context", long, 400, "context_length_exceeded", "messages"},
		{"temperature", hot, 400, "invalid_value", "temperature"},
		{"model", unknown, 404, "model_not_found", "model"},
	}
	for _, c := range cases {
		_, err := s.client.Chat.Completions.New(s.ctx, c.question)
		checkError(t, c.name, err, c.status, c.code, c.param)
		stream := s.client.Chat.Completions.NewStreaming(s.ctx, c.question)
		for stream.Next() {
		}
		checkError(t, c.name+", streamed", stream.Err(), c.status, c.code, c.param)
		stream.Close()
	}
	if os.Getenv("ATLAS_KEY") != "" {
		wrong := open(t, option.WithAPIKey("wrong"))
		_, err := wrong.client.Models.List(wrong.ctx)
		checkError(t, "key", err, 401, "invalid_api_key", "")
	}
}

func checkError(t *testing.T, name string, err error, status int, code, param string) {
	t.Helper()
	e, ok := errors.AsType[*openai.Error](err)
	if !ok || e.StatusCode != status || e.Code != code || e.Param != param || e.Message == "" || e.Type == "" || e.Response.Header.Get("x-request-id") == "" {
		t.Errorf("%s: got %v, want %d %s for %q", name, err, status, code, param)
	}
}

// A client that leaves in the middle frees what its request held.
func TestCancel(t *testing.T) {
	s := open(t)
	server := gauges.Server{URL: s.url, Key: os.Getenv("ATLAS_KEY")}
	before, err := server.Read(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	stream := s.client.Chat.Completions.NewStreaming(ctx, s.question(2000), option.WithJSONSet("ignore_eos", true))
	for range 3 {
		if !stream.Next() {
			t.Fatal(stream.Err())
		}
	}
	cancel()
	stream.Close()
	if _, err := server.Settle(s.ctx, before, 16); err != nil { // connections that are kept
		t.Error(err)
	}
}
