// Package anthropic is the dialect of the Anthropic API: its requests and answers of messages, its counts of tokens, its list
// of models and its errors.
//
// The blocks of a message become what package chat knows. Results of tools become messages of their own, before the other texts
// of their turn. Turns of the assistant in a row become one, and one at the end is what the answer goes on with. A system message
// that comes while calls wait for their results stands behind them. Marks for caches, and the header that a client puts into its
// system text for billing, never reach the prompt.
//
// The input of a tool_use block is an object. A stream hands on the text that the model wrote for it, piece by piece. In a whole
// answer, text that is no object, because it is broken or was cut, is the value of the one key chat.BrokenArguments.
package anthropic

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/option"
)

// Messages is the dialect of POST /v1/messages.
type Messages struct{ problems }

// Decode implements api.Dialect.
func (Messages) Decode(body []byte, limits api.Limits) (*api.Request, error) {
	return decode(body, limits, true)
}

// Count is the dialect of POST /v1/messages/count_tokens: requests have nothing that is about the answer, and get none.
type Count struct{ Messages }

// Decode implements api.Dialect.
func (Count) Decode(body []byte, limits api.Limits) (*api.Request, error) {
	return decode(body, limits, false)
}

// Field implements api.Errors.
func (problems) Field(o option.Name) string {
	switch o {
	case option.Prompt:
		return "messages"
	case option.Stop:
		return "stop_sequences"
	}
	return string(o)
}
