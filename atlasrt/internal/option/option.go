// Package option names what a request may set about its answer. The names are nobody's API: a codec maps them to its fields.
package option

import "fmt"

// Name is what the core calls an option. Terminals and logs show it as it is; clients see their API's name for it.
type Name string

// Options of a request.
const (
	Prompt      Name = "prompt"      // or the conversation that it is made from
	MaxTokens   Name = "max_tokens"  // of an answer
	MinTokens   Name = "min_tokens"  // before an answer may end
	Choices     Name = "choices"     // answers to one prompt
	Stop        Name = "stop"        // texts that end an answer
	StopTokens  Name = "stop_tokens" // tokens that do
	TopLogProbs Name = "top_logprobs"

	IgnoreEnd Name = "ignore_eos" // goes on behind the model's end tokens
	Tools     Name = "tools"      // that the model may call

	ThinkingBudget Name = "thinking_budget" // tokens of thoughts

	Temperature       Name = "temperature"
	TopP              Name = "top_p"
	TopK              Name = "top_k"
	MinP              Name = "min_p"
	RepetitionPenalty Name = "repetition_penalty"
	FrequencyPenalty  Name = "frequency_penalty"
	PresencePenalty   Name = "presence_penalty"
	LogitBias         Name = "logit_bias"

	TopNSigma        Name = "top_n_sigma"
	MinEntropy       Name = "adaptive_entropy"
	XTCProbability   Name = "xtc_probability"
	XTCThreshold     Name = "xtc_threshold"
	PenaltyWindow    Name = "repeat_last_n" // tokens that penalties look at
	DRYMultiplier    Name = "dry_multiplier"
	DRYBase          Name = "dry_base"
	DRYAllowedLength Name = "dry_allowed_length"
	DRYRange         Name = "dry_range"
	DRYBreakers      Name = "dry_sequence_breakers"
	LZPenalty        Name = "lz_penalty"
	BadWords         Name = "bad_words"
	AllowedTokens    Name = "allowed_token_ids"
)

// Error blames an option. Reason goes on from its name, such as: is 3, must be at most 2.
type Error struct {
	Option Name // the option whose value is wrong
	Reason string
}

// Error gives the name and the reason.
func (e *Error) Error() string { return string(e.Option) + " " + e.Reason }

// Invalid makes an Error.
func Invalid(option Name, format string, values ...any) *Error {
	return &Error{option, fmt.Sprintf(format, values...)}
}
