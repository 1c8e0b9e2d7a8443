package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// openaiGo is what results call the client.
const openaiGo = "openai (Go)"

// openaiTarget is a server as the client sees it.
type openaiTarget struct {
	target
	client openai.Client
}

func openOpenAI(t *testing.T, options ...option.RequestOption) openaiTarget {
	s := open(t)
	options = append([]option.RequestOption{option.WithBaseURL(s.url + "/v1"), option.WithAPIKey(s.key), option.WithMaxRetries(0)}, options...)
	return openaiTarget{s, openai.NewClient(options...)}
}

// ask makes a request that plays a script.
func (s openaiTarget) ask(script string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: s.model, MaxTokens: openai.Int(400),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("You are brief."), openai.UserMessage("Please.\nscript: " + script)},
	}
}

// askTools is ask with tools.
func (s openaiTarget) askTools(script string) openai.ChatCompletionNewParams {
	q := s.ask(script)
	q.Tools = []openai.ChatCompletionToolUnionParam{
		openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: "get_weather", Description: openai.String("The weather of a city."),
			Parameters: openai.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}, "unit": map[string]any{"type": "string"}}, "required": []string{"city"}},
		}),
		openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "get_time"}),
	}
	return q
}

// whole asks for an answer in one piece.
func (s openaiTarget) whole(t *testing.T, q openai.ChatCompletionNewParams) openai.ChatCompletion {
	t.Helper()
	got, err := s.client.Chat.Completions.New(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Choices) == 0 {
		t.Fatalf("no choices: %s", got.RawJSON())
	}
	return *got
}

// streamed asks for a stream, which the client's accumulator puts together, and gives what its deltas say of thoughts.
func (s openaiTarget) streamed(t *testing.T, q openai.ChatCompletionNewParams) (got openai.ChatCompletion, reasoning, reasoningContent string) {
	t.Helper()
	q.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	stream := s.client.Chat.Completions.NewStreaming(t.Context(), q)
	defer stream.Close()
	sum := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		chunk := stream.Current()
		if !sum.AddChunk(chunk) {
			t.Fatalf("the accumulator refuses %s", chunk.RawJSON())
		}
		for _, c := range chunk.Choices {
			reasoning += text(c.Delta.JSON.ExtraFields["reasoning"].Raw())
			reasoningContent += text(c.Delta.JSON.ExtraFields["reasoning_content"].Raw())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if len(sum.Choices) == 0 {
		t.Fatal("a stream without choices")
	}
	return sum.ChatCompletion, reasoning, reasoningContent
}

// text is a JSON string's text, "" where there is none.
func text(raw string) (s string) {
	if raw != "" {
		_ = json.Unmarshal([]byte(raw), &s) // null and others are no text
	}
	return s
}

func TestOpenAIChat(t *testing.T) {
	s := openOpenAI(t)
	version(t, openaiGo, "github.com/openai/openai-go/v3")
	check(t, openaiGo, "chat", "whole answer", func(t *testing.T) {
		got := s.whole(t, s.ask("hello"))
		if c := got.Choices[0]; c.Message.Content != hello || c.FinishReason != "stop" || string(c.Message.Role) != "assistant" || got.ID == "" || got.Model != s.model {
			t.Errorf("got %s", got.RawJSON())
		}
	})
	check(t, openaiGo, "chat", "finish reason length", func(t *testing.T) {
		q := s.ask("hello")
		q.MaxTokens = openai.Int(3)
		if got := s.whole(t, q); got.Choices[0].FinishReason != "length" || got.Usage.CompletionTokens != 3 {
			t.Errorf("got %s", got.RawJSON())
		}
	})
	check(t, openaiGo, "chat", "stop string", func(t *testing.T) {
		q := s.ask("count")
		q.Stop = openai.ChatCompletionNewParamsStopUnion{OfString: openai.String(" four")}
		if c := s.whole(t, q).Choices[0]; c.Message.Content != "one two three" || c.FinishReason != "stop" {
			t.Errorf("got %s", c.RawJSON())
		}
	})
	check(t, openaiGo, "chat", "empty answer", func(t *testing.T) {
		if c := s.whole(t, s.ask("empty")).Choices[0]; c.Message.Content != "" || c.FinishReason != "stop" {
			t.Errorf("got %s", c.RawJSON())
		}
	})
	check(t, openaiGo, "chat", "three choices", func(t *testing.T) {
		q := s.ask("hello")
		q.N = openai.Int(3)
		if got := s.whole(t, q); len(got.Choices) != 3 || got.Choices[2].Index != 2 || got.Choices[2].Message.Content != hello {
			t.Errorf("got %s", got.RawJSON())
		}
	})
	check(t, openaiGo, "chat", "log-probabilities", func(t *testing.T) {
		q := s.ask("hello")
		q.Logprobs, q.TopLogprobs = openai.Bool(true), openai.Int(2)
		got := s.whole(t, q)
		if l := got.Choices[0].Logprobs.Content; int64(len(l)) != got.Usage.CompletionTokens || len(l[0].TopLogprobs) != 2 {
			t.Errorf("got %s", got.RawJSON())
		}
	})
	check(t, openaiGo, "models", "list and get", func(t *testing.T) {
		list, err := s.client.Models.List(t.Context())
		if err != nil || len(list.Data) == 0 || list.Data[0].ID != s.model {
			t.Fatalf("got %+v, %v", list, err)
		}
		if m, err := s.client.Models.Get(t.Context(), s.model); err != nil || m.ID != s.model {
			t.Errorf("got %+v, %v", m, err)
		}
	})
}

func TestOpenAIStream(t *testing.T) {
	s := openOpenAI(t)
	check(t, openaiGo, "stream", "deltas are the whole answer", func(t *testing.T) {
		got, _, _ := s.streamed(t, s.ask("hello"))
		if c := got.Choices[0]; c.Message.Content != hello || c.FinishReason != "stop" {
			t.Errorf("got %+v", got)
		}
	})
	check(t, openaiGo, "stream", "three choices", func(t *testing.T) {
		q := s.ask("hello")
		q.N = openai.Int(3)
		got, _, _ := s.streamed(t, q)
		if len(got.Choices) != 3 || got.Choices[1].Message.Content != hello || got.Choices[2].FinishReason != "stop" {
			t.Errorf("got %+v", got)
		}
	})
	check(t, openaiGo, "tokens", "usage, streamed as whole", func(t *testing.T) {
		whole := s.whole(t, s.ask("count")).Usage
		got, _, _ := s.streamed(t, s.ask("count"))
		if u := got.Usage; u.PromptTokens == 0 || u.CompletionTokens == 0 || u.TotalTokens != u.PromptTokens+u.CompletionTokens || u.CompletionTokens != whole.CompletionTokens || u.PromptTokens != whole.PromptTokens {
			t.Errorf("got %+v, whole %s", u, whole.RawJSON())
		}
	})
	check(t, openaiGo, "cancel", "the server stops when the client leaves", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		q := s.ask("long")
		q.MaxTokens = openai.Int(8000)
		stream := s.client.Chat.Completions.NewStreaming(ctx, q)
		for range 3 {
			if !stream.Next() {
				t.Fatal(stream.Err())
			}
		}
		if n := s.running(t); n == "0" {
			t.Error("no request runs while its answer comes")
		}
		cancel()
		stream.Close()
		s.idle(t)
	})
}

func TestOpenAITools(t *testing.T) {
	s := openOpenAI(t)
	for _, streamed := range []bool{false, true} {
		how := "whole"
		answer := s.whole
		if streamed {
			how = "streamed"
			answer = func(t *testing.T, q openai.ChatCompletionNewParams) openai.ChatCompletion {
				got, _, _ := s.streamed(t, q)
				return got
			}
		}
		check(t, openaiGo, "tools", "round trip, "+how, func(t *testing.T) {
			q := s.askTools("weather")
			got := answer(t, q)
			m := got.Choices[0].Message
			if got.Choices[0].FinishReason != "tool_calls" || len(m.ToolCalls) != 1 || strings.TrimSpace(m.Content) != "Let me look." {
				t.Fatalf("got %+v", got.Choices)
			}
			call := m.ToolCalls[0]
			var arguments struct{ City, Unit string }
			if err := json.Unmarshal([]byte(call.Function.Arguments), &arguments); err != nil || arguments.City != "Paris" || arguments.Unit != "celsius" || call.ID == "" || call.Type != "function" || call.Function.Name != "get_weather" {
				t.Fatalf("got %+v, %v", call, err)
			}
			if !streamed { // an accumulated message has no JSON to make parameters of
				q.Messages = append(q.Messages, m.ToParam())
			} else {
				q.Messages = append(q.Messages, openai.ChatCompletionMessageParamUnion{OfAssistant: &openai.ChatCompletionAssistantMessageParam{ToolCalls: []openai.ChatCompletionMessageToolCallUnionParam{
					{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{ID: call.ID, Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: call.Function.Name, Arguments: call.Function.Arguments}}}}}})
			}
			q.Messages = append(q.Messages, openai.ToolMessage("18 degrees", call.ID))
			if c := answer(t, q).Choices[0]; c.Message.Content != "It is 18 degrees in Paris." || c.FinishReason != "stop" {
				t.Errorf("got %+v", c)
			}
		})
		check(t, openaiGo, "parallel calls", how, func(t *testing.T) {
			m := answer(t, s.askTools("parallel")).Choices[0].Message
			if len(m.ToolCalls) != 2 || m.ToolCalls[0].ID == m.ToolCalls[1].ID {
				t.Fatalf("got %+v", m.ToolCalls)
			}
			var arguments struct{ City string }
			if err := json.Unmarshal([]byte(m.ToolCalls[1].Function.Arguments), &arguments); err != nil || arguments.City != city {
				t.Errorf("got %+v, %v", m.ToolCalls[1], err)
			}
		})
		check(t, openaiGo, "tools", "no arguments, "+how, func(t *testing.T) {
			m := answer(t, s.askTools("noargs")).Choices[0].Message
			if len(m.ToolCalls) != 1 || m.ToolCalls[0].Function.Arguments != "{}" || m.ToolCalls[0].Function.Name != "get_time" {
				t.Errorf("got %+v", m)
			}
		})
		check(t, openaiGo, "tools", "unknown tool is text, "+how, func(t *testing.T) {
			c := answer(t, s.askTools("unknown")).Choices[0]
			if len(c.Message.ToolCalls) != 0 || !strings.Contains(c.Message.Content, "no_such_tool") || c.FinishReason != "stop" {
				t.Errorf("got %+v", c)
			}
		})
		check(t, openaiGo, "tools", "call cut by the limit, "+how, func(t *testing.T) {
			c := answer(t, s.askTools("cutcall")).Choices[0]
			if c.FinishReason != "length" || len(c.Message.ToolCalls) != 1 || c.Message.ToolCalls[0].Function.Arguments != `{"city": "Par` {
				t.Errorf("got %+v", c)
			}
		})
	}
	check(t, openaiGo, "tools", "one call where parallel ones are off", func(t *testing.T) {
		q := s.askTools("parallel")
		q.ParallelToolCalls = openai.Bool(false)
		if c := s.whole(t, q).Choices[0]; len(c.Message.ToolCalls) != 1 || c.FinishReason != "tool_calls" {
			t.Errorf("got %s", c.RawJSON())
		}
	})
}

func TestOpenAIReasoning(t *testing.T) {
	s := openOpenAI(t)
	check(t, openaiGo, "reasoning", "both fields, whole", func(t *testing.T) {
		got := s.whole(t, s.ask("think"))
		m := got.Choices[0].Message
		for _, field := range []string{"reasoning", "reasoning_content"} {
			if thoughts := strings.TrimSpace(text(m.JSON.ExtraFields[field].Raw())); thoughts != thought {
				t.Errorf("%s is %q", field, thoughts)
			}
		}
		if strings.TrimSpace(m.Content) != greeted || got.Usage.CompletionTokensDetails.ReasoningTokens == 0 {
			t.Errorf("got %s", got.RawJSON())
		}
	})
	check(t, openaiGo, "reasoning", "both fields, streamed", func(t *testing.T) {
		got, a, b := s.streamed(t, s.ask("think"))
		if strings.TrimSpace(a) != thought || a != b || strings.TrimSpace(got.Choices[0].Message.Content) != greeted || got.Usage.CompletionTokensDetails.ReasoningTokens == 0 {
			t.Errorf("got %q, %q, %+v", a, b, got)
		}
	})
	check(t, openaiGo, "reasoning", "off", func(t *testing.T) {
		q := s.ask("think")
		q.ReasoningEffort = openai.ReasoningEffortNone
		if got := s.whole(t, q); got.Choices[0].Message.Content != greeted || got.Usage.CompletionTokensDetails.ReasoningTokens != 0 {
			t.Errorf("got %s", got.RawJSON())
		}
	})
}

func TestOpenAIErrors(t *testing.T) {
	s := openOpenAI(t)
	long, hot, unknown := s.ask("hello"), s.ask("hello"), s.ask("hello")
	long.Messages = []openai.ChatCompletionMessageParamUnion{openai.UserMessage(strings.Repeat("word ", 40_000))}
	hot.Temperature = openai.Float(3)
	unknown.Model = "no-such-model"
	cases := []struct {
		name     string
		question openai.ChatCompletionNewParams
		status   int
		kind     string
		code     string
		key      string
	}{
		{"bad request", hot, 400, "invalid_request_error", "invalid_value", s.key},
		{"context length", long, 400, "invalid_request_error", "context_length_exceeded", s.key},
		{"not found", unknown, 404, "invalid_request_error", "model_not_found", s.key},
		{"authentication", s.ask("hello"), 401, "authentication_error", "invalid_api_key", "wrong"},
	}
	for _, c := range cases {
		check(t, openaiGo, "errors", c.name, func(t *testing.T) {
			_, err := s.client.Chat.Completions.New(t.Context(), c.question, option.WithAPIKey(c.key))
			e, ok := errors.AsType[*openai.Error](err)
			if !ok || e.StatusCode != c.status || e.Type != c.kind || e.Code != c.code || e.Message == "" || e.Response.Header.Get("x-request-id") == "" {
				t.Errorf("got %v, want %d %s %s", err, c.status, c.kind, c.code)
			}
			stream := s.client.Chat.Completions.NewStreaming(t.Context(), c.question, option.WithAPIKey(c.key))
			defer stream.Close()
			for stream.Next() {
			}
			if e, ok := errors.AsType[*openai.Error](stream.Err()); !ok || e.StatusCode != c.status || e.Code != c.code {
				t.Errorf("streamed: got %v, want %d %s", stream.Err(), c.status, c.code)
			}
		})
	}
	check(t, openaiGo, "errors", "full queue", func(t *testing.T) {
		_, err := s.client.Chat.Completions.New(t.Context(), s.ask("full"))
		if e, ok := errors.AsType[*openai.Error](err); !ok || e.StatusCode != 429 && e.StatusCode != 503 || e.Response.Header.Get("Retry-After") == "" {
			t.Errorf("got %v", err)
		}
	})
	check(t, openaiGo, "errors", "engine fails in a stream", func(t *testing.T) {
		stream := s.client.Chat.Completions.NewStreaming(t.Context(), s.ask("fail"))
		defer stream.Close()
		chunks := 0
		for stream.Next() {
			chunks++
		}
		if stream.Err() == nil || chunks == 0 {
			t.Errorf("after %d chunks: %v", chunks, stream.Err())
		}
	})
}
