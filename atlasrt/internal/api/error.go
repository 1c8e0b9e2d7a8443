// Package api is what all dialects of the server share: a request as the core takes it, fields read one by one and blamed by
// their paths, limits, kinds of errors, and what a dialect must do. Each dialect is a package below.
//
// It is a function of values: no network, no clock, no chance. Every request field is either understood, refused by name,
// or counted as unknown; none is quietly taken for something else. No body makes it panic, and what it allocates is bounded
// by the body and the limits.
//
// A dialect is a type that implements Dialect, with a line in the server's table of routes. Its Decode is a list of what Fields
// reads; its Answer appends chat.Events as they come, with AppendEvent and AppendJSON; its Problem is a table over Kinds. The
// server's tests of dialects have a line for it, too. Numbers, names of fields and words are the dialect's; whatever a second one
// needs belongs here, or in the package of the API that they share.
package api

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/option"
)

// Kind is what went wrong. A dialect gives each kind its status, type and code.
type Kind uint8

// Kinds of errors.
const (
	KindInvalid     Kind = iota // the body, or the field that is blamed, makes no sense
	KindUnsupported             // a field is understood but cannot be honoured
	KindTooLong                 // the prompt leaves no room for an answer; Count says by how much
	KindUnknownModel
	KindUnknownPath
	KindMethod     // the path does not take it
	KindMediaType  // of the body
	KindEncoding   // of the body
	KindLargeBody  // over the limit
	KindSlowBody   // took too long to arrive
	KindKey        // missing or wrong
	KindHost       // the Host header names another machine
	KindQueueFull  // too many requests wait
	KindOverload   // too many large bodies are worked on
	KindLoading    // the model is not there yet
	KindDraining   // the server shuts down
	KindDeadline   // the answer took too long
	KindClientGone // the client went away or stopped reading; only proxies may see this
	KindEngine     // the engine failed
	KindInternal   // the server failed

	Kinds = iota // how many there are
)

// Limit names a limit in metrics.
type Limit string

// Limits that a request may hit.
const (
	LimitBody     Limit = "body"
	LimitMessages Limit = "messages"
	LimitPrompts  Limit = "prompts"
	LimitChoices  Limit = "choices"
	LimitStops    Limit = "stops"
	LimitBiases   Limit = "biases"
	LimitContext  Limit = "context"
	LimitQueue    Limit = "queue"
	LimitTime     Limit = "time"
	LimitTokens   Limit = "tokens"
	LimitBytes    Limit = "bytes_in_flight"
	LimitTools    Limit = "tools"
)

// Error is a refusal or failure before a dialect has put it into its words. Its text never holds paths, addresses or stacks.
type Error struct {
	Kind    Kind   // from which the dialect's type and the HTTP status follow
	Field   string // of the request, as its dialect calls it: its path, such as messages[3].content; empty: none is to blame
	Message string // sentences; empty for KindTooLong, which each dialect words itself
	Count   Count  // of KindTooLong

	RequestID string // as the response names its request, for dialects that repeat it; empty: not known

	Hit        Limit // the limit that was hit; not shown
	RetryAfter int   // seconds; 0: says nothing
	Final      bool  // the same request would fail again, whatever the status suggests
}

// Count is the tokens of a prompt that leaves no room for an answer.
type Count struct {
	Tokens  int  // of the prompt
	AtLeast bool // there may be more: they were not counted to the end
	Limit   int  // of a prompt and its answer together
}

// Error is the message.
func (e *Error) Error() string {
	if e.Kind == KindTooLong {
		return fmt.Sprintf("the prompt has %d tokens, a prompt and its answer have at most %d", e.Count.Tokens, e.Count.Limit)
	}
	return e.Message
}

// Invalid blames a request field, or the body as a whole where field is empty.
func Invalid(field, format string, values ...any) *Error {
	return &Error{Kind: KindInvalid, Field: field, Message: fmt.Sprintf(format, values...)}
}

// Unsupported refuses a field that is understood but cannot be honoured.
func Unsupported(field, format string, values ...any) *Error {
	e := Invalid(field, format, values...)
	e.Kind = KindUnsupported
	return e
}

// TooMuch refuses a field that goes over a limit.
func TooMuch(limit Limit, field, format string, values ...any) *Error {
	e := Invalid(field, format, values...)
	e.Hit = limit
	return e
}

// InvalidOption blames the field that a dialect has for an option.
func InvalidOption(e *option.Error, of Errors) *Error {
	field := of.Field(e.Option)
	return Invalid(field, "%s %s.", field, e.Reason)
}

// UnknownModel says that there is no such model here.
func UnknownModel(name string) *Error {
	return &Error{Kind: KindUnknownModel, Field: "model", Message: fmt.Sprintf("The model %q does not exist here; GET /v1/models lists those that do.", Clip(name, 100))}
}

// Clip cuts a text that a client wrote to at most size bytes, to show it in an error.
func Clip(text string, size int) string {
	if len(text) <= size {
		return text
	}
	return text[:size] + "…"
}
