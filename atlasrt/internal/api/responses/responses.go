// Package responses is the dialect of OpenAI's Responses API: its requests, its answers as typed events and as a whole, and the forms
// in which items are kept. Conversations are lists of items; what the assistant says in a row, its thoughts, texts and calls,
// is one message to the model.
//
// What a request refers to, an earlier answer or an item of one, is kept elsewhere: Decode reads the request, and
// Request.Converse makes the conversation once that was found.
package responses

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/option"
	"github.com/atlas-inference/atlas/atlasrt/internal/store"
)

// Dialect is the dialect of POST /v1/responses, for requests that refer to nothing that is kept.
type Dialect struct{}

// Decode implements api.Dialect.
func (Dialect) Decode(body []byte, limits api.Limits) (*api.Request, error) {
	r, err := Decode(body, limits)
	if err != nil {
		return nil, err
	}
	if r.Previous != "" {
		return nil, NoResponse("previous_response_id", r.Previous)
	}
	if err := r.Converse(nil, func(string) (store.Item, bool) { return store.Item{}, false }, limits); err != nil {
		return nil, err
	}
	return &r.Request, nil
}

// Answer implements api.Dialect.
func (Dialect) Answer(r *api.Request, h api.Head) api.Answer { return NewAnswer(r, h) }

// Field implements api.Errors.
func (Dialect) Field(o option.Name) string {
	switch o {
	case option.Prompt:
		return "input"
	case option.MaxTokens:
		return "max_output_tokens"
	}
	return string(o)
}

// Problem implements api.Errors: errors are OpenAI's.
func (Dialect) Problem(e *api.Error) (status int, code string, body []byte) {
	return openai.Chat{}.Problem(e)
}

// NoResponse says that there is no answer of an id: it is unknown, of another key, or was forgotten. Field refers to it; empty: the path.
func NoResponse(field, id string) *api.Error {
	return &api.Error{Kind: api.KindUnknownPath, Field: field, Final: true,
		Message: "There is no response " + quote(id) + " here; it was never stored, was deleted, or is too old. Send the whole conversation as input."}
}

func quote(text string) string { return string(jsontree.AppendString(nil, api.Clip(text, 100))) }
