package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

// anthropicGo is what results call the client.
const anthropicGo = "anthropic (Go)"

// anthropicTarget is a server as the client sees it.
type anthropicTarget struct {
	target
	client anthropic.Client
}

func openAnthropic(t *testing.T) anthropicTarget {
	s := open(t)
	return anthropicTarget{s, anthropic.NewClient(option.WithBaseURL(s.url), option.WithAPIKey(s.key), option.WithMaxRetries(0))}
}

// ask makes a request that plays a script.
func (s anthropicTarget) ask(script string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: s.model, MaxTokens: 400, System: []anthropic.TextBlockParam{{Text: "You are brief."}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Please.\nscript: " + script))},
	}
}

func (s anthropicTarget) askTools(script string) anthropic.MessageNewParams {
	q := s.ask(script)
	weather := anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: map[string]any{"city": map[string]any{"type": "string"}, "unit": map[string]any{"type": "string"}}}, "get_weather")
	weather.OfTool.Description = anthropic.String("The weather of a city.")
	q.Tools = []anthropic.ToolUnionParam{weather, anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: map[string]any{}}, "get_time")}
	return q
}

func (s anthropicTarget) whole(t *testing.T, q anthropic.MessageNewParams) anthropic.Message {
	t.Helper()
	got, err := s.client.Messages.New(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return *got
}

// streamed asks for a stream, which the client's accumulator puts together. The client refuses events that are out of order.
func (s anthropicTarget) streamed(t *testing.T, q anthropic.MessageNewParams) (sum anthropic.Message) {
	t.Helper()
	stream := s.client.Messages.NewStreaming(t.Context(), q)
	defer stream.Close()
	for stream.Next() {
		if err := sum.Accumulate(stream.Current()); err != nil {
			t.Fatalf("%s: %v", stream.Current().RawJSON(), err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return sum
}

// said is the text of a message, and its blocks of a type.
func said(m anthropic.Message, kind string) (text string, blocks []anthropic.ContentBlockUnion) {
	for _, b := range m.Content {
		if b.Type == "text" {
			text += b.Text
		}
		if b.Type == kind {
			blocks = append(blocks, b)
		}
	}
	return strings.TrimSpace(text), blocks
}

func TestAnthropic(t *testing.T) {
	s := openAnthropic(t)
	version(t, anthropicGo, "github.com/anthropics/anthropic-sdk-go/v2")
	for _, how := range []string{"whole", "streamed"} {
		answer, feature := s.whole, "chat"
		if how == "streamed" {
			answer, feature = s.streamed, "stream"
		}
		check(t, anthropicGo, feature, "answer, "+how, func(t *testing.T) {
			got := answer(t, s.ask("hello"))
			if text, _ := said(got, ""); text != hello || got.StopReason != "end_turn" || !strings.HasPrefix(got.ID, "msg_") || got.Role != "assistant" || got.Usage.InputTokens == 0 || got.Usage.OutputTokens == 0 {
				t.Errorf("got %+v", got)
			}
		})
		check(t, anthropicGo, feature, "max_tokens, "+how, func(t *testing.T) {
			q := s.ask("hello")
			q.MaxTokens = 3
			if got := answer(t, q); got.StopReason != "max_tokens" || got.Usage.OutputTokens != 3 {
				t.Errorf("got %+v", got)
			}
		})
		check(t, anthropicGo, feature, "stop sequence, "+how, func(t *testing.T) {
			q := s.ask("count")
			q.StopSequences = []string{" four"}
			if got := answer(t, q); got.StopReason != "stop_sequence" || got.StopSequence != " four" {
				t.Errorf("got %+v", got)
			}
		})
		check(t, anthropicGo, "tools", "round trip, "+how, func(t *testing.T) {
			q := s.askTools("call")
			got := answer(t, q)
			_, calls := said(got, "tool_use")
			var input struct{ City string }
			if len(calls) != 1 || got.StopReason != "tool_use" || json.Unmarshal(calls[0].Input, &input) != nil || input.City != "Paris" || !strings.HasPrefix(calls[0].ID, "toolu_") {
				t.Fatalf("got %+v", got)
			}
			q.Messages = append(q.Messages, got.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(calls[0].ID, "18 degrees", false)))
			if text, _ := said(answer(t, q), ""); text != "It is 18 degrees in Paris." {
				t.Errorf("got %q", text)
			}
		})
		check(t, anthropicGo, "parallel calls", how, func(t *testing.T) {
			got := answer(t, s.askTools("parallel"))
			text, calls := said(got, "tool_use")
			var input struct{ City string }
			if text != "Two cities." || len(calls) != 2 || json.Unmarshal(calls[1].Input, &input) != nil || input.City != city {
				t.Errorf("got %+v", got)
			}
		})
		check(t, anthropicGo, "tools", "no arguments, "+how, func(t *testing.T) {
			if _, calls := said(answer(t, s.askTools("noargs")), "tool_use"); len(calls) != 1 || string(calls[0].Input) != "{}" {
				t.Errorf("got %+v", calls)
			}
		})
		check(t, anthropicGo, "reasoning", "thinking block comes back, "+how, func(t *testing.T) {
			q := s.askTools("weather")
			q.MaxTokens, q.Thinking = 2000, anthropic.ThinkingConfigParamOfEnabled(1024)
			got := answer(t, q)
			_, thoughts := said(got, "thinking")
			_, calls := said(got, "tool_use")
			if len(thoughts) != 1 || !strings.Contains(thoughts[0].Thinking, "weather of Paris") || thoughts[0].Signature == "" || len(calls) != 1 || got.Content[0].Type != "thinking" {
				t.Fatalf("got %+v", got)
			}
			q.Messages = append(q.Messages, got.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(calls[0].ID, "18 degrees", false)))
			if text, _ := said(answer(t, q), ""); text != "It is 18 degrees in Paris." {
				t.Errorf("got %q", text)
			}
		})
	}
	check(t, anthropicGo, "reasoning", "off", func(t *testing.T) {
		q := s.ask("think")
		q.Thinking = anthropic.ThinkingConfigParamUnion{OfDisabled: &anthropic.ThinkingConfigDisabledParam{}}
		got := s.whole(t, q)
		if text, thoughts := said(got, "thinking"); text != greeted || len(thoughts) != 0 {
			t.Errorf("got %+v", got)
		}
	})
	check(t, anthropicGo, "tools", "one call where parallel ones are off", func(t *testing.T) {
		q := s.askTools("parallel")
		q.ToolChoice = anthropic.ToolChoiceUnionParam{OfAuto: &anthropic.ToolChoiceAutoParam{DisableParallelToolUse: anthropic.Bool(true)}}
		if _, calls := said(s.whole(t, q), "tool_use"); len(calls) != 1 {
			t.Errorf("got %+v", calls)
		}
	})
	check(t, anthropicGo, "tokens", "count_tokens is what a message is charged", func(t *testing.T) {
		q := s.askTools("hello")
		count, err := s.client.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{
			Model: q.Model, Messages: q.Messages, System: anthropic.MessageCountTokensParamsSystemUnion{OfTextBlockArray: q.System},
			Tools: []anthropic.MessageCountTokensToolUnionParam{{OfTool: q.Tools[0].OfTool}, {OfTool: q.Tools[1].OfTool}},
		})
		if err != nil {
			t.Fatal(err)
		}
		u := s.whole(t, q).Usage
		if charged := u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens; count.InputTokens != charged || charged == 0 {
			t.Errorf("counted %d, charged %s", count.InputTokens, u.RawJSON())
		}
	})
	check(t, anthropicGo, "models", "list and get", func(t *testing.T) {
		list, err := s.client.Models.List(t.Context(), anthropic.ModelListParams{})
		if err != nil || len(list.Data) == 0 || list.Data[0].ID != s.model || list.Data[0].Type != "model" {
			t.Fatalf("got %+v, %v", list, err)
		}
		if m, err := s.client.Models.Get(t.Context(), s.model, anthropic.ModelGetParams{}); err != nil || m.ID != s.model || m.DisplayName == "" {
			t.Errorf("got %+v, %v", m, err)
		}
	})
	check(t, anthropicGo, "cancel", "the server stops when the client leaves", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		q := s.ask("long")
		q.MaxTokens = 8000
		stream := s.client.Messages.NewStreaming(ctx, q)
		for range 4 {
			if !stream.Next() {
				t.Fatal(stream.Err())
			}
		}
		cancel()
		stream.Close()
		s.idle(t)
	})
}

func TestAnthropicErrors(t *testing.T) {
	s := openAnthropic(t)
	long, hot, unknown := s.ask("hello"), s.ask("hello"), s.ask("hello")
	long.Messages = []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(strings.Repeat("word ", 40_000)))}
	hot.Messages = nil
	unknown.Model = "no-such-model"
	cases := []struct {
		name     string
		question anthropic.MessageNewParams
		status   int
		kind     string
		says     string
		key      string
	}{
		{"bad request", hot, 400, "invalid_request_error", "messages", s.key},
		{"context length", long, 400, "invalid_request_error", "prompt is too long", s.key},
		{"not found", unknown, 404, "not_found_error", "no-such-model", s.key},
		{"authentication", s.ask("hello"), 401, "authentication_error", "", "wrong"},
	}
	for _, c := range cases {
		check(t, anthropicGo, "errors", c.name, func(t *testing.T) {
			right := func(err error) bool {
				e, ok := errors.AsType[*anthropic.Error](err)
				return ok && e.StatusCode == c.status && string(e.Type()) == c.kind && strings.Contains(e.Message, c.says) && e.RequestID != ""
			}
			_, err := s.client.Messages.New(t.Context(), c.question, option.WithAPIKey(c.key))
			if !right(err) {
				t.Errorf("got %v, want %d %s %q", err, c.status, c.kind, c.says)
			}
			stream := s.client.Messages.NewStreaming(t.Context(), c.question, option.WithAPIKey(c.key))
			defer stream.Close()
			for stream.Next() {
			}
			if !right(stream.Err()) {
				t.Errorf("streamed: got %v, want %d %s %q", stream.Err(), c.status, c.kind, c.says)
			}
		})
	}
	check(t, anthropicGo, "errors", "full queue", func(t *testing.T) {
		_, err := s.client.Messages.New(t.Context(), s.ask("full"))
		if e, ok := errors.AsType[*anthropic.Error](err); !ok || e.StatusCode != 529 && e.StatusCode != 429 || e.Type() != "overloaded_error" && e.Type() != "rate_limit_error" {
			t.Errorf("got %v", err)
		}
	})
	check(t, anthropicGo, "errors", "engine fails in a stream", func(t *testing.T) {
		stream := s.client.Messages.NewStreaming(t.Context(), s.ask("fail"))
		defer stream.Close()
		events := 0
		for stream.Next() {
			events++
		}
		if stream.Err() == nil || events == 0 {
			t.Errorf("after %d events: %v", events, stream.Err())
		}
	})
}
