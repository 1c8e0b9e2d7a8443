package api

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/option"
)

// Dialect is how one API asks for answers on one of its routes, and how it writes them.
type Dialect interface {
	// Decode reads the body of a request. Errors are *Error.
	Decode(body []byte, limits Limits) (*Request, error)
	// Answer begins the answer to a request that Decode made.
	Answer(r *Request, h Head) Answer
	Errors
}

// Errors is how one API says that something went wrong.
type Errors interface {
	// Field is what requests call an option of the core.
	Field(option.Name) string
	// Problem is an error as a whole answer: its HTTP status, its code for the log, and its body.
	Problem(e *Error) (status int, code string, body []byte)
}

// Head is what every piece of one answer repeats.
type Head struct {
	ID      string // that nobody can guess; dialects put their prefix before it
	Created int64  // seconds since 1970
	Model   string // as the answer shows it
}

// CallID names a call of a tool: nobody can guess it, and no other call has it. A dialect puts its prefix before it.
func (h *Head) CallID(choice, call int) string {
	return fmt.Sprintf("%s%02x%02x", h.ID[:min(len(h.ID), 20)], choice, call)
}

// Answer writes the answer to one request: either as a stream, token by token, or as a whole. Use one way only.
type Answer interface {
	// Begin appends what a stream says once the request is admitted.
	Begin(b []byte) []byte
	// Append appends what a stream says of the events that one token made, as completion.Stream gives them.
	Append(b []byte, events []chat.Event) []byte
	// Ping appends what keeps the connection of a stream open and says nothing.
	Ping(b []byte) []byte
	// Fail appends an error as the end of a stream.
	Fail(b []byte, e *Error) []byte
	// Add takes the same events for the whole answer.
	Add(events []chat.Event)
	// Body is the whole answer, once EventEnd was added.
	Body() []byte
}
