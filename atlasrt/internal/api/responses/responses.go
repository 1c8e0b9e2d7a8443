// Package responses is the dialect of OpenAI's Responses API: its requests, its answers as typed events and as a whole, and the forms
// in which items are kept. Conversations are lists of items; what the assistant says in a row, its thoughts, texts and calls,
// is one message to the model.
//
// What a request refers to, an earlier answer or an item of one, is kept elsewhere: Decode reads the request, and
// Request.Converse makes the conversation once that was found. So whoever keeps answers completes the dialect.
package responses

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/option"
)

// Errors is how this API says that something went wrong.
type Errors struct{}

// Field implements api.Errors.
func (Errors) Field(o option.Name) string {
	switch o {
	case option.Prompt:
		return "input"
	case option.MaxTokens:
		return "max_output_tokens"
	}
	return string(o)
}

// Problem implements api.Errors: errors are OpenAI's.
func (Errors) Problem(e *api.Error) (status int, code string, body []byte) {
	return openai.Chat{}.Problem(e)
}

// NoResponse says that there is no answer of an id: it is unknown, of another key, or was forgotten. Field refers to it; empty: the path.
func NoResponse(field, id string) *api.Error {
	return &api.Error{Kind: api.KindUnknownPath, Field: field, Final: true,
		Message: "There is no response " + quote(id) + " here; it was never stored, was deleted, or is too old. Send the whole conversation as input."}
}

func quote(text string) string { return string(jsontree.AppendString(nil, api.Clip(text, 100))) }
