package engine

import (
	"errors"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/option"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
)

// Request asks for the continuation of a prompt.
type Request struct {
	Prompt         []int32        // token ids, at least one
	MaxTokens      int            // at least 1
	MinTokens      int            // tokens of End are ruled out before so many were generated
	End            []int32        // tokens that end the sequence; the end token itself is reported
	Sampling       sample.Params  // see sample.Defaults
	LogProbs       int            // -1: none; otherwise the chosen token's and those of this many likeliest ones
	PromptLogProbs bool           // log-probabilities of the prompt's own tokens; such a prompt is not taken from the cache
	Budget         *sample.Budget // bounds thoughts; nil: nothing does. It does not change while the request runs
	Grammar        Grammar        // that the answer keeps to, at its beginning; nil: any answer will do
	CacheSalt      string         // requests share cached prefixes only with requests of the same salt
}

// What a request may ask for at most.
const (
	MaxLogProbs = 128  // likeliest tokens
	MaxBiases   = 1024 // tokens with a bias
	MaxEnds     = 64   // tokens that end it
	MaxBadWords = 2048 // words that are not generated
)

// Finish is why a sequence ended; empty while it goes on.
type Finish string

// Reasons to end.
const (
	FinishStop      Finish = "stop"
	FinishLength    Finish = "length"
	FinishCancelled Finish = "cancelled"
	FinishError     Finish = "error"
)

// Event is one generated token, or the end of a request that ended without one.
type Event struct {
	Request int                   // that it is about, by its place in the Submit
	Token   int32                 // -1 where Finish is cancelled or error
	LogProb *sample.TokenLogProb  // nil unless asked for
	Prompt  []sample.TokenLogProb // with the first event, if asked for: entry i is of prompt token i+1
	Cached  int                   // with the first event: prompt tokens taken from the prefix cache
	Drafts  Drafts                // so far
	Finish  Finish                // on the last event
	Err     error                 // why, where Finish is error
}

// Drafts counts the drafts of a request that steps computed.
type Drafts struct {
	Computed int // in all
	Right    int // of them, those whose tokens were drawn
}

// ErrDraining is returned by Submit once Drain or Close was called, and ends requests that waited then.
var ErrDraining = errors.New("the server is shutting down and takes no new requests")

// QueueFull is returned by Submit while too much waits already.
type QueueFull = sched.QueueFull

// TooLong is returned by Submit for a request whose prompt and new tokens can never fit.
type TooLong = sched.TooLong

// check reports the first field out of range as an *option.Error.
func (r *Request) check(vocab int32) error {
	switch {
	case len(r.Prompt) == 0:
		return option.Invalid(option.Prompt, "is empty")
	case r.MaxTokens < 1:
		return option.Invalid(option.MaxTokens, "is %d, must be at least 1", r.MaxTokens)
	case r.MinTokens < 0 || r.MinTokens > r.MaxTokens:
		return option.Invalid(option.MinTokens, "is %d, must be from 0 to the most tokens of the answer, which is %d", r.MinTokens, r.MaxTokens)
	case len(r.End) > MaxEnds:
		return option.Invalid(option.StopTokens, "has %d entries, at most %d are allowed", len(r.End), MaxEnds)
	case len(r.Sampling.LogitBias) > MaxBiases:
		return option.Invalid(option.LogitBias, "has %d entries, at most %d are allowed", len(r.Sampling.LogitBias), MaxBiases)
	case len(r.Sampling.BadWords) > MaxBadWords:
		return option.Invalid(option.BadWords, "has %d words, at most %d are allowed", len(r.Sampling.BadWords), MaxBadWords)
	case r.LogProbs < -1 || r.LogProbs > MaxLogProbs:
		return option.Invalid(option.TopLogProbs, "is %d, must be from 0 to %d", r.LogProbs, MaxLogProbs)
	}
	outside := func(token int32) bool { return token < 0 || token >= vocab }
	if i := slices.IndexFunc(r.Prompt, outside); i >= 0 {
		return option.Invalid(option.Prompt, "holds token %d, the vocabulary has %d", r.Prompt[i], vocab)
	}
	if i := slices.IndexFunc(r.End, outside); i >= 0 {
		return option.Invalid(option.StopTokens, "holds token %d, the vocabulary has %d", r.End[i], vocab)
	}
	if r.Budget != nil {
		if err := r.Budget.Validate(vocab); err != nil {
			return err
		}
	}
	return r.Sampling.Validate(vocab)
}
