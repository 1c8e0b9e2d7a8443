package jinja

import "fmt"

// Kind says why a template failed.
type Kind int

const (
	// Syntax: the template does not parse.
	Syntax Kind = iota
	// Runtime: an operation that Python refuses too, such as adding a list to a string.
	Runtime
	// Raised: the template called raise_exception; the message is the template author's and meant for the client.
	Raised
	// Limit: the render asked for more steps, depth or text than Limits grants.
	Limit
)

// Error is the failure of a template.
type Error struct {
	Kind    Kind   // what sort of failure
	Line    int    // 1-based line of the template, 0 where unknown
	Message string // what went wrong
}

// Error names the line, where it is known.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("template line %d: %s", e.Line, e.Message)
}

// failf is a Runtime error, worded as Python words it; the statement that runs adds its line.
func failf(format string, values ...any) error {
	return &Error{Kind: Runtime, Message: fmt.Sprintf(format, values...)}
}

func depthError() error {
	return &Error{Kind: Limit, Message: "values of the template nest too deep"}
}

// atLine adds the line to an error that has none yet.
func atLine(err error, line int) error {
	if e, ok := err.(*Error); ok && e.Line == 0 {
		e.Line = line
	}
	return err
}
