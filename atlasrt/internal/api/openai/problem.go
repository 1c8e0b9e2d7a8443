package openai

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// problems writes errors as the OpenAI API does.
type problems struct{}

// Types of errors.
const (
	typeInvalid    = "invalid_request_error"
	typeAuth       = "authentication_error"
	typePermission = "permission_error"
	typeRateLimit  = "rate_limit_error"
	typeServer     = "server_error"
	typeTimeout    = "timeout_error"
)

// kinds is the status, type and code of each kind of error.
var kinds = [api.Kinds]struct {
	status     int
	kind, code string
}{
	api.KindInvalid:      {400, typeInvalid, "invalid_value"}, // without a code where no field is blamed
	api.KindUnsupported:  {400, typeInvalid, "unsupported_parameter"},
	api.KindTooLong:      {400, typeInvalid, "context_length_exceeded"},
	api.KindUnknownModel: {404, typeInvalid, "model_not_found"},
	api.KindUnknownPath:  {404, typeInvalid, "not_found"},
	api.KindMethod:       {405, typeInvalid, "method_not_allowed"},
	api.KindMediaType:    {415, typeInvalid, "unsupported_media_type"},
	api.KindEncoding:     {415, typeInvalid, "unsupported_encoding"},
	api.KindLargeBody:    {413, typeInvalid, "request_too_large"},
	api.KindSlowBody:     {408, typeTimeout, "request_timeout"},
	api.KindKey:          {401, typeAuth, "invalid_api_key"},
	api.KindHost:         {403, typePermission, "host_not_allowed"},
	api.KindQueueFull:    {429, typeRateLimit, "rate_limit_exceeded"},
	api.KindOverload:     {503, typeServer, "server_overloaded"},
	api.KindLoading:      {503, typeServer, "model_not_ready"},
	api.KindDraining:     {503, typeServer, "model_not_ready"},
	api.KindDeadline:     {504, typeTimeout, "timeout"},
	api.KindClientGone:   {499, typeInvalid, "client_gone"}, // the status that servers use for it
	api.KindEngine:       {500, typeServer, "engine_error"},
	api.KindInternal:     {500, typeServer, "internal_error"},
}

// Problem implements api.Errors. The code is the type where there is none.
func (problems) Problem(e *api.Error) (status int, code string, body []byte) {
	k := kinds[e.Kind]
	if e.Kind == api.KindInvalid && e.Field == "" {
		return k.status, k.kind, ErrorBody(e.Message, k.kind, "", "")
	}
	text := e.Message
	if e.Kind == api.KindTooLong {
		text = tooLong(e.Count)
	}
	return k.status, k.code, ErrorBody(text, k.kind, e.Field, k.code)
}

// fail appends an error as the last event of a stream.
func fail(b []byte, e *api.Error) []byte {
	_, _, body := problems{}.Problem(e)
	b = append(b, "data: "...)
	b = append(b, body...)
	return append(b, "\n\n"...)
}

// tooLong says how far a prompt is beyond the context. Clients match the words "maximum context length".
func tooLong(c api.Count) string {
	if c.AtLeast {
		return fmt.Sprintf("This model's maximum context length is %d tokens, but the request has at least %d tokens and needs room for one more. Shorten it.", c.Limit, c.Tokens)
	}
	return fmt.Sprintf("This model's maximum context length is %d tokens, but the request has %d tokens and needs room for at least one more. Shorten it.", c.Limit, c.Tokens)
}

// ErrorBody is the JSON of an error, with all four keys; an empty field or code is null.
func ErrorBody(message, kind, field, code string) []byte {
	b := append([]byte(nil), `{"error":{"message":`...)
	b = jsontree.AppendString(b, message)
	b = append(b, `,"type":`...)
	b = jsontree.AppendString(b, kind)
	b = append(b, `,"param":`...)
	b = api.AppendOptional(b, field)
	b = append(b, `,"code":`...)
	b = api.AppendOptional(b, code)
	return append(b, "}}"...)
}
