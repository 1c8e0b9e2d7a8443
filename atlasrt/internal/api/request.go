package api

import (
	"errors"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/option"
)

// Request asks for answers, in whatever dialect it came. To make one needs no model: what the client left out is left out here,
// and token ids may be ones that the model does not have.
type Request struct {
	Model   string             // as the client wrote it; empty: the default model
	Stream  bool               // the answer comes as it is made
	Options completion.Options // how it is answered
	Chat    *chat.Request      // what is to be answered: a conversation, or
	Prompts []Prompt           // texts to go on with; none is empty
	Special bool               // texts of Prompts get the tokens that the model begins texts with

	StreamUsage   bool // a stream ends with the usage, where the dialect lets the client choose
	FunctionCall  bool // a call is shown as clients expect that know functions and no tools
	HideReasoning bool // thoughts are left out of the answer
	SumUp         bool // thoughts are shown where the client looks for a summary of them

	Bans        string // the field that the tokens come from which Options.Sampling rules out
	IfPenalised *Error // refuses the request where tokens that were seen are penalised, which the model's defaults may do
	Unknown     int    // fields that are not known

	Echo []byte // what the answer repeats of the request, as its dialect writes it; nil: nothing
}

// Prompt is a text, or its tokens where Tokens is not nil.
type Prompt struct {
	Text   string // as the client wrote it
	Tokens []int32
}

// Choices is how many answers are asked for in all.
func (r *Request) Choices() int {
	if r.Chat != nil {
		return r.Options.Choices
	}
	return r.Options.Choices * len(r.Prompts)
}

// Limits bound what one request may ask for. See DefaultLimits.
type Limits struct {
	Messages   int // of a conversation
	Prompts    int // texts to go on with
	Choices    int // answers to each prompt
	Stops      int // stop strings
	StopBytes  int // of each
	StopTokens int // tokens that end an answer
	Biases     int // tokens whose logits get a bias, and such that are ruled out
	BadWords   int // texts that are
	Tools      int // that the model may call
	ToolBytes  int // of the description and the schema of each
}

// DefaultLimits are those of a server that nobody configured.
func DefaultLimits() Limits {
	return Limits{
		Messages: 10_000, Prompts: 128, Choices: 8, Stops: 4, StopBytes: 256, StopTokens: 64, Biases: 1024, BadWords: 256,
		Tools: 512, ToolBytes: 256 << 10}
}

// Check holds the request against the model that was found: its vocabulary, and its defaults. Errors are *Error and *option.Error.
func (r *Request) Check(g *completion.Generator) error {
	if err := g.Check(&r.Options); err != nil {
		if wrong, ok := errors.AsType[*option.Error](err); ok && wrong.Option == option.BadWords && r.Bans != "" {
			return Invalid(r.Bans, "%s %s.", r.Bans, wrong.Reason)
		}
		return err
	}
	if p := g.Params(&r.Options); r.IfPenalised != nil && p.Penalises() {
		return r.IfPenalised
	}
	for _, p := range r.Prompts {
		if err := g.Known(option.Prompt, p.Tokens); err != nil {
			return err
		}
	}
	return nil
}
