package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

// respond makes a request of the Responses API that plays a script.
func (s openaiTarget) respond(script string) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: s.model, MaxOutputTokens: openai.Int(400), Instructions: openai.String("You are brief."),
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Please.\nscript: " + script)},
	}
}

func (s openaiTarget) respondTools(script string) responses.ResponseNewParams {
	q := s.respond(script)
	q.Tools = []responses.ToolUnionParam{
		{OfFunction: &responses.FunctionToolParam{Name: "get_weather", Description: openai.String("The weather of a city."), Strict: openai.Bool(false),
			Parameters: map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}, "unit": map[string]any{"type": "string"}}}}},
		{OfFunction: &responses.FunctionToolParam{Name: "get_time", Strict: openai.Bool(false), Parameters: map[string]any{"type": "object", "properties": map[string]any{}}}},
	}
	return q
}

func (s openaiTarget) response(t *testing.T, q responses.ResponseNewParams) *responses.Response {
	t.Helper()
	got, err := s.client.Responses.New(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// responseStream gives the types of a stream's events, and the response of the last one.
func (s openaiTarget) responseStream(t *testing.T, q responses.ResponseNewParams) (types []string, last responses.Response) {
	t.Helper()
	stream := s.client.Responses.NewStreaming(t.Context(), q)
	defer stream.Close()
	number := int64(-1)
	for stream.Next() {
		e := stream.Current()
		if e.SequenceNumber != number+1 {
			t.Errorf("event %s has number %d behind %d", e.Type, e.SequenceNumber, number)
		}
		number = e.SequenceNumber
		types = append(types, e.Type)
		last = e.Response
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return types, last
}

// items are those of a type.
func items(r *responses.Response, kind string) (found []responses.ResponseOutputItemUnion) {
	for _, item := range r.Output {
		if item.Type == kind {
			found = append(found, item)
		}
	}
	return found
}

func TestResponses(t *testing.T) {
	s := openOpenAI(t)
	check(t, openaiGo, "responses", "create", func(t *testing.T) {
		got := s.response(t, s.respond("hello"))
		if got.OutputText() != hello || got.Status != "completed" || !strings.HasPrefix(got.ID, "resp_") || got.Usage.OutputTokens == 0 || got.Usage.TotalTokens != got.Usage.InputTokens+got.Usage.OutputTokens {
			t.Errorf("got %s", got.RawJSON())
		}
	})
	check(t, openaiGo, "responses", "cut by the limit", func(t *testing.T) {
		q := s.respond("hello")
		q.MaxOutputTokens = openai.Int(3)
		if got := s.response(t, q); got.Status != "incomplete" || got.IncompleteDetails.Reason != "max_output_tokens" {
			t.Errorf("got %s", got.RawJSON())
		}
	})
	check(t, openaiGo, "responses", "stream", func(t *testing.T) {
		types, last := s.responseStream(t, s.respond("hello"))
		want := []string{"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added", "response.output_text.delta",
			"response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed"}
		if got := strings.Join(compact(types), " "); got != strings.Join(want, " ") || last.OutputText() != hello {
			t.Errorf("events %s; text %q", got, last.OutputText())
		}
	})
	check(t, openaiGo, "responses", "tools, round trip by items", func(t *testing.T) {
		q := s.respondTools("weather")
		got := s.response(t, q)
		calls := items(got, "function_call")
		if len(calls) != 1 || calls[0].Name != "get_weather" || calls[0].CallID == "" {
			t.Fatalf("got %s", got.RawJSON())
		}
		input := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("Please.\nscript: weather", "user")}
		for _, item := range got.Output {
			input = append(input, param.Override[responses.ResponseInputItemUnionParam](json.RawMessage(item.RawJSON())))
		}
		output := responses.ResponseInputItemParamOfFunctionCallOutput("18 degrees")
		output.OfFunctionCallOutput.CallID = openai.String(calls[0].CallID)
		q.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: append(input, output)}
		if got := s.response(t, q); got.OutputText() != "It is 18 degrees in Paris." {
			t.Errorf("got %s", got.RawJSON())
		}
	})
	check(t, openaiGo, "responses", "tools, round trip by id, streamed", func(t *testing.T) {
		q := s.respondTools("parallel")
		types, first := s.responseStream(t, q)
		calls := items(&first, "function_call")
		if len(calls) != 2 || !strings.Contains(strings.Join(types, " "), "response.function_call_arguments.done") {
			t.Fatalf("events %v, got %s", compact(types), first.RawJSON())
		}
		var arguments struct{ City string }
		if err := json.Unmarshal([]byte(calls[1].Arguments.OfString), &arguments); err != nil || arguments.City != city {
			t.Errorf("got %s, %v", calls[1].RawJSON(), err)
		}
		var input responses.ResponseInputParam
		for _, call := range calls {
			output := responses.ResponseInputItemParamOfFunctionCallOutput("warm")
			output.OfFunctionCallOutput.CallID = openai.String(call.CallID)
			input = append(input, output)
		}
		q.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: input}
		q.PreviousResponseID = openai.String(first.ID)
		if _, last := s.responseStream(t, q); last.OutputText() != "Paris has 18 degrees, São Paulo 25." {
			t.Errorf("got %s", last.RawJSON())
		}
	})
	check(t, openaiGo, "responses", "reasoning items", func(t *testing.T) {
		q := s.respond("think")
		q.Reasoning = shared.ReasoningParam{Effort: shared.ReasoningEffortMedium}
		got := s.response(t, q)
		if len(items(got, "reasoning")) != 1 || got.Usage.OutputTokensDetails.ReasoningTokens == 0 || strings.TrimSpace(got.OutputText()) != greeted || !strings.Contains(items(got, "reasoning")[0].RawJSON(), thought) {
			t.Errorf("got %s", got.RawJSON())
		}
		types, last := s.responseStream(t, q)
		if len(items(&last, "reasoning")) != 1 || !strings.Contains(strings.Join(types, " "), "response.reasoning_") {
			t.Errorf("events %v, got %s", compact(types), last.RawJSON())
		}
	})
	check(t, openaiGo, "responses", "stored: get, input items, delete", func(t *testing.T) {
		made := s.response(t, s.respond("hello"))
		got, err := s.client.Responses.Get(t.Context(), made.ID, responses.ResponseGetParams{})
		if err != nil || got.ID != made.ID || got.OutputText() != hello {
			t.Fatalf("got %v, %v", got, err)
		}
		list, err := s.client.Responses.InputItems.List(t.Context(), made.ID, responses.InputItemListParams{})
		if err != nil || len(list.Data) != 1 || list.Data[0].Role != "user" {
			t.Errorf("input items %+v, %v", list, err)
		}
		if err := s.client.Responses.Delete(t.Context(), made.ID); err != nil {
			t.Error(err)
		}
		_, err = s.client.Responses.Get(t.Context(), made.ID, responses.ResponseGetParams{})
		notFound(t, err, made.ID)
	})
	check(t, openaiGo, "responses", "conversation by id", func(t *testing.T) {
		q := s.respond("hello")
		first := s.response(t, q)
		q = s.respond("count")
		q.PreviousResponseID = openai.String(first.ID)
		second := s.response(t, q)
		if second.OutputText() != "one two three four five six seven eight nine ten" || second.PreviousResponseID != first.ID || second.Usage.InputTokens <= first.Usage.InputTokens {
			t.Errorf("got %s", second.RawJSON())
		}
	})
	check(t, openaiGo, "responses", "unknown previous response", func(t *testing.T) {
		q := s.respond("hello")
		q.PreviousResponseID = openai.String("resp_0000")
		_, err := s.client.Responses.New(t.Context(), q)
		notFound(t, err, "resp_0000")
	})
	check(t, openaiGo, "responses", "cancel of what is no background response", func(t *testing.T) {
		made := s.response(t, s.respond("hello"))
		_, err := s.client.Responses.Cancel(t.Context(), made.ID)
		if e, ok := errors.AsType[*openai.Error](err); !ok || e.StatusCode != 400 {
			t.Errorf("got %v", err)
		}
	})
	check(t, openaiGo, "responses", "cancel in the background", func(t *testing.T) {
		q := s.respond("long")
		q.Background, q.MaxOutputTokens = openai.Bool(true), openai.Int(8000)
		made := s.response(t, q)
		if got, err := s.client.Responses.Cancel(t.Context(), made.ID); err != nil || got.Status != "cancelled" {
			t.Errorf("made %s, cancelled %+v, %v", made.Status, got, err)
		}
		s.idle(t)
	})
	check(t, openaiGo, "responses", "context length", func(t *testing.T) {
		q := s.respond("hello")
		q.Input = responses.ResponseNewParamsInputUnion{OfString: openai.String(strings.Repeat("word ", 40_000))}
		_, err := s.client.Responses.New(t.Context(), q)
		if e, ok := errors.AsType[*openai.Error](err); !ok || e.StatusCode != 400 || e.Code != "context_length_exceeded" {
			t.Errorf("got %v", err)
		}
	})
	check(t, openaiGo, "cancel", "responses: the server stops when the client leaves", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		q := s.respond("long")
		q.MaxOutputTokens = openai.Int(8000)
		stream := s.client.Responses.NewStreaming(ctx, q)
		for range 6 {
			if !stream.Next() {
				t.Fatal(stream.Err())
			}
		}
		cancel()
		stream.Close()
		s.idle(t)
	})
}

func notFound(t *testing.T, err error, id string) {
	t.Helper()
	if e, ok := errors.AsType[*openai.Error](err); !ok || e.StatusCode != 404 || !strings.Contains(e.Message, id) {
		t.Errorf("got %v, want 404 for %s", err, id)
	}
}

// compact leaves out what repeats.
func compact(types []string) (short []string) {
	for i, kind := range types {
		if i == 0 || kind != types[i-1] {
			short = append(short, kind)
		}
	}
	return short
}
