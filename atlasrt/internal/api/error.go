// Package api speaks the JSON of the OpenAI API: it reads and checks requests, and writes answers, streams and errors.
//
// It is a function of values: no network, no clock, no chance. Every request field is either understood, refused by name,
// or counted as unknown; none is quietly taken for something else. No body makes it panic, and what it allocates is bounded
// by the body and the limits.
package api

import (
	"encoding/json"
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// Error is a refusal or failure as clients see it. Its text never holds paths, addresses or stacks.
type Error struct {
	Status  int    // of HTTP
	Type    string // such as invalid_request_error
	Code    string // empty: null
	Param   string // the request field that is to blame; empty: null
	Message string

	Limit      string // the limit that was hit, one of the Limit constants; not shown
	RetryAfter int    // seconds; 0: says nothing
	Final      bool   // the same request would fail again, whatever the status suggests
}

func (e *Error) Error() string { return e.Message }

// Types of errors.
const (
	TypeInvalid    = "invalid_request_error"
	TypeAuth       = "authentication_error"
	TypePermission = "permission_error"
	TypeRateLimit  = "rate_limit_error"
	TypeServer     = "server_error"
	TypeTimeout    = "timeout_error"
)

// Names of limits, for Error.Limit.
const (
	LimitBody     = "body"
	LimitMessages = "messages"
	LimitPrompts  = "prompts"
	LimitChoices  = "choices"
	LimitStops    = "stops"
	LimitBiases   = "biases"
	LimitContext  = "context"
	LimitQueue    = "queue"
	LimitTime     = "time"
	LimitTokens   = "tokens"
	LimitBytes    = "bytes_in_flight"
)

// Invalid blames a request field, or the body as a whole where param is empty.
func Invalid(param, format string, values ...any) *Error {
	e := &Error{Status: 400, Type: TypeInvalid, Param: param, Message: fmt.Sprintf(format, values...)}
	if param != "" {
		e.Code = "invalid_value"
	}
	return e
}

// Unsupported refuses a field that is understood but cannot be honoured.
func Unsupported(param, format string, values ...any) *Error {
	e := Invalid(param, format, values...)
	e.Code = "unsupported_parameter"
	return e
}

// TooMuch refuses a field that goes over a limit.
func TooMuch(limit, param, format string, values ...any) *Error {
	e := Invalid(param, format, values...)
	e.Limit = limit
	return e
}

// ContextLength refuses a prompt that leaves no room for an answer. Clients match its code and the words "maximum context
// length".
func ContextLength(limit, tokens int) *Error {
	return &Error{Status: 400, Type: TypeInvalid, Code: "context_length_exceeded", Limit: LimitContext,
		Message: fmt.Sprintf("This model's maximum context length is %d tokens, but the request has %d tokens and needs room for at least one more. Shorten it.", limit, tokens)}
}

// BeyondContext is ContextLength for a prompt whose tokens were not counted to the end.
func BeyondContext(limit, atLeast int) *Error {
	e := ContextLength(limit, atLeast)
	e.Message = fmt.Sprintf("This model's maximum context length is %d tokens, but the request has at least %d tokens and needs room for one more. Shorten it.", limit, atLeast)
	return e
}

// UnknownModel says that there is no such model here.
func UnknownModel(name string) *Error {
	return &Error{Status: 404, Type: TypeInvalid, Code: "model_not_found", Param: "model",
		Message: fmt.Sprintf("The model %q does not exist here; GET /v1/models lists those that do.", clip(name, 100))}
}

// Body is the JSON of the error, with all four keys.
func (e *Error) Body() []byte {
	b := append([]byte(nil), `{"error":{"message":`...)
	b = jsontree.AppendString(b, e.Message)
	b = append(b, `,"type":`...)
	b = jsontree.AppendString(b, e.Type)
	b = append(b, `,"param":`...)
	b = appendOptional(b, e.Param)
	b = append(b, `,"code":`...)
	b = appendOptional(b, e.Code)
	return append(b, "}}"...)
}

func appendOptional(b []byte, text string) []byte {
	if text == "" {
		return append(b, "null"...)
	}
	return jsontree.AppendString(b, text)
}

// clip cuts text to at most size bytes.
func clip(text string, size int) string {
	if len(text) <= size {
		return text
	}
	return text[:size] + "…"
}

// appendJSON appends what encoding/json makes of a value of this package, which always works.
func appendJSON[T any](b []byte, v T) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return append(b, text...)
}
