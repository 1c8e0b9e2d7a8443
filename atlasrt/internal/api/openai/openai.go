// Package openai is the dialect of the OpenAI API: its requests and answers of chats and completions, its list of models and
// its errors. Fields that vLLM and llama.cpp added to it are read, too, and their routes for tokens are here.
package openai

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/option"
)

// Chat is the dialect of POST /v1/chat/completions.
type Chat struct {
	problems
	Reasoning ReasoningField // that answers have thoughts in
}

// ReasoningField is where an answer has the thoughts of the model, on which clients do not agree.
type ReasoningField string

// Fields of a message, and of the pieces of a stream. The zero value is both.
const (
	ReasoningBoth    ReasoningField = "both"
	ReasoningContent ReasoningField = "reasoning_content" // DeepSeek's
	ReasoningShort   ReasoningField = "reasoning"         // OpenRouter's
)

// names are the fields.
func (r ReasoningField) names() []string {
	switch r {
	case ReasoningContent, ReasoningShort:
		return []string{string(r)}
	}
	return []string{string(ReasoningContent), string(ReasoningShort)}
}

// Text is the dialect of POST /v1/completions.
type Text struct{ problems }

// Field implements api.Errors.
func (Chat) Field(o option.Name) string {
	if o == option.Prompt {
		return "messages"
	}
	return field(o)
}

// Field implements api.Errors.
func (Text) Field(o option.Name) string {
	if o == option.TopLogProbs {
		return "logprobs"
	}
	return field(o)
}

// field is what both routes call an option.
func field(o option.Name) string {
	switch o {
	case option.Choices:
		return "n"
	case option.StopTokens:
		return "stop_token_ids"
	}
	return string(o)
}

// fields are api.Fields with the rules of this API's routes.
type fields struct{ *api.Fields }

func readObject(body []byte, ranges []api.Range) (fields, error) {
	f, err := api.ReadObject(body, ranges)
	return fields{f}, err
}
