package sdk

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

// numbers is a schema, and what the script "report" writes of it.
func numbers() map[string]any {
	return map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}, "degrees": map[string]any{"type": "integer"}},
		"required": []string{"city", "degrees"}, "additionalProperties": false}
}

// isReport tells whether a text is what that script writes, and nothing beside it.
func isReport(text string) bool {
	var got struct {
		City    string
		Degrees int
	}
	return json.Unmarshal([]byte(text), &got) == nil && got.City == "Paris" && got.Degrees == 18
}

// broken tells whether an error says that the server failed: a script wrote what its request does not allow.
func broken(err error) bool {
	if e, ok := errors.AsType[*openai.Error](err); ok {
		return e.StatusCode == 500
	}
	e, ok := errors.AsType[*anthropic.Error](err)
	return ok && e.StatusCode == 500
}

func TestOpenAIStructured(t *testing.T) {
	s := openOpenAI(t)
	check(t, openaiGo, "structured", "JSON, whole and streamed", func(t *testing.T) {
		schema := shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "report", Schema: numbers(), Strict: openai.Bool(true)}
		for _, form := range []openai.ChatCompletionNewParamsResponseFormatUnion{
			{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{JSONSchema: schema}}, {OfJSONObject: &shared.ResponseFormatJSONObjectParam{}},
		} {
			q := s.ask("report")
			q.ResponseFormat = form
			streamed, _, _ := s.streamed(t, q)
			if whole := s.whole(t, q); !isReport(whole.Choices[0].Message.Content) || !isReport(streamed.Choices[0].Message.Content) {
				t.Errorf("got %s", whole.RawJSON())
			}
			q = s.ask("hello")
			q.ResponseFormat = form
			if got, err := s.client.Chat.Completions.New(t.Context(), q); !broken(err) {
				t.Errorf("got %+v, %v, want an error", got, err)
			}
		}
	})
	check(t, openaiGo, "structured", "calls that must be", func(t *testing.T) {
		for _, choice := range []openai.ChatCompletionToolChoiceOptionUnionParam{
			{OfAuto: openai.String("required")}, openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "get_weather"}),
		} {
			q := s.askTools("call")
			q.ToolChoice = choice
			if calls := s.whole(t, q).Choices[0].Message.ToolCalls; len(calls) != 1 || calls[0].Function.Name != "get_weather" {
				t.Errorf("got %+v", calls)
			}
			q = s.askTools("hello")
			q.ToolChoice = choice
			if got, err := s.client.Chat.Completions.New(t.Context(), q); !broken(err) {
				t.Errorf("got %+v, %v, want an error", got, err)
			}
		}
	})
}

func TestResponsesStructured(t *testing.T) {
	s := openOpenAI(t)
	check(t, openaiGo, "structured", "responses: JSON, whole and streamed", func(t *testing.T) {
		for _, form := range []responses.ResponseFormatTextConfigUnionParam{
			{OfJSONSchema: &responses.ResponseFormatTextJSONSchemaConfigParam{Name: "report", Schema: numbers(), Strict: openai.Bool(true)}}, {OfJSONObject: &shared.ResponseFormatJSONObjectParam{}},
		} {
			q := s.respond("report")
			q.Text.Format = form
			_, streamed := s.responseStream(t, q)
			if whole := s.response(t, q); !isReport(whole.OutputText()) || !isReport(streamed.OutputText()) || (whole.Text.Format.Type == "json_object") != (form.OfJSONObject != nil) {
				t.Errorf("got %s", whole.RawJSON())
			}
			q = s.respond("hello")
			q.Text.Format = form
			if got, err := s.client.Responses.New(t.Context(), q); !broken(err) {
				t.Errorf("got %+v, %v, want an error", got, err)
			}
		}
	})
	check(t, openaiGo, "structured", "responses: calls that must be", func(t *testing.T) {
		for _, choice := range []responses.ResponseNewParamsToolChoiceUnion{
			{OfToolChoiceMode: openai.Opt(responses.ToolChoiceOptionsRequired)}, {OfFunctionTool: &responses.ToolChoiceFunctionParam{Name: "get_weather"}},
		} {
			q := s.respondTools("call")
			q.ToolChoice = choice
			if calls := items(s.response(t, q), "function_call"); len(calls) != 1 || calls[0].Name != "get_weather" {
				t.Errorf("got %+v", calls)
			}
			q = s.respondTools("hello")
			q.ToolChoice = choice
			if got, err := s.client.Responses.New(t.Context(), q); !broken(err) {
				t.Errorf("got %+v, %v, want an error", got, err)
			}
		}
	})
}

func TestAnthropicStructured(t *testing.T) {
	s := openAnthropic(t)
	check(t, anthropicGo, "structured", "JSON of a schema, whole and streamed", func(t *testing.T) {
		form := anthropic.OutputConfigParam{Format: anthropic.JSONOutputFormatParam{Schema: numbers()}}
		q := s.ask("report")
		q.OutputConfig = form
		whole, _ := said(s.whole(t, q), "")
		if streamed, _ := said(s.streamed(t, q), ""); !isReport(whole) || !isReport(streamed) {
			t.Errorf("got %q, streamed %q", whole, streamed)
		}
		q = s.ask("hello")
		q.OutputConfig = form
		if got, err := s.client.Messages.New(t.Context(), q); !broken(err) {
			t.Errorf("got %+v, %v, want an error", got, err)
		}
	})
	check(t, anthropicGo, "structured", "calls that must be", func(t *testing.T) {
		for _, choice := range []anthropic.ToolChoiceUnionParam{{OfAny: &anthropic.ToolChoiceAnyParam{}}, anthropic.ToolChoiceParamOfTool("get_weather")} {
			q := s.askTools("call")
			q.ToolChoice = choice
			if _, calls := said(s.whole(t, q), "tool_use"); len(calls) != 1 || calls[0].Name != "get_weather" {
				t.Errorf("got %+v", calls)
			}
			q = s.askTools("hello")
			q.ToolChoice = choice
			if got, err := s.client.Messages.New(t.Context(), q); !broken(err) {
				t.Errorf("got %+v, %v, want an error", got, err)
			}
		}
	})
}
