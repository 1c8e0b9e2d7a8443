// Package engine runs a model for many requests at once: it plans steps, keeps the cache, queues launches and hands
// out tokens.
//
// One goroutine, locked to its thread, owns the device's stream. Everything that crosses the engine's boundary is
// token ids and encodable values: text, templates and stop strings live in front of it. At temperature 0 a request's
// tokens do not depend on its neighbours, on chunking, on cache hits or on preemption.
package engine

import (
	"errors"
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// Request asks for the continuation of a prompt.
type Request struct {
	ID             string
	Prompt         []int32
	MaxTokens      int           // at least 1
	MinTokens      int           // tokens of End are ruled out before so many were generated
	End            []int32       // tokens that end the sequence; the end token itself is reported
	Sampling       sample.Params // see sample.Defaults
	LogProbs       int           // -1: none; otherwise the chosen token's and those of this many likeliest ones
	PromptLogProbs bool          // log-probabilities of the prompt's own tokens; such a prompt is not taken from the cache
	CacheSalt      string        // requests share cached prefixes only with requests of the same salt
}

// MaxLogProbs is how many likeliest tokens a request may ask for.
const MaxLogProbs = 128

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
	Token   int32                 // -1 where Finish is cancelled or error
	LogProb *sample.TokenLogProb  // nil unless asked for
	Prompt  []sample.TokenLogProb // with the first event, if asked for: entry i is of prompt token i+1
	Cached  int                   // with the first event: prompt tokens taken from the prefix cache
	Finish  Finish                // on the last event
	Err     error                 // why, where Finish is error
}

// ErrDraining is returned by Submit once Drain or Close was called.
var ErrDraining = errors.New("the server is shutting down and takes no new requests")

// QueueFull is returned by Submit while too much waits already.
type QueueFull struct {
	Requests, RequestLimit int // waiting
	Tokens, TokenLimit     int // prompt tokens waiting, this request's included
}

func (e *QueueFull) Error() string {
	return fmt.Sprintf("the queue is full: %d requests with %d prompt tokens would wait, the limits are %d and %d (try again later)",
		e.Requests, e.Tokens, e.RequestLimit, e.TokenLimit)
}

// TooLong is returned by Submit for a request whose prompt and new tokens can never fit.
type TooLong struct{ Tokens, Limit int }

func (e *TooLong) Error() string {
	return fmt.Sprintf("prompt and max_tokens come to %d tokens, the limit is %d", e.Tokens, e.Limit)
}

// BadRequest is returned by Submit for a field out of range. Field is its name in the OpenAI API.
type BadRequest struct{ Field, Reason string }

func (e *BadRequest) Error() string { return e.Field + " " + e.Reason }

// Stats is a snapshot of an engine. Counters only grow.
type Stats struct {
	Running, Waiting int // requests
	WaitingTokens    int // prompt tokens of waiting requests

	BlocksFree, BlocksUsed, BlocksCached, BlocksTotal int // free + used + cached = total

	Steps, DecodeSteps, FailedSteps uint64
	PromptTokens, GeneratedTokens   uint64 // prompt tokens computed or found in the cache; tokens handed out
	PrefixQueries, PrefixHits       uint64 // prompt tokens looked up in the prefix cache, and found
	Preemptions                     uint64
	Finished, Cancelled, Failed     uint64 // requests

	// DecodeHostNanoseconds is the time, summed over DecodeHostSteps, from having read a step's tokens to having launched the
	// next step, where both were decode steps.
	DecodeHostNanoseconds, DecodeHostSteps uint64
}
