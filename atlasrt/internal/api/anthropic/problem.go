package anthropic

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// problems writes errors as the Anthropic API does.
type problems struct{}

// Types of errors.
const (
	typeInvalid    = "invalid_request_error"
	typeAuth       = "authentication_error"
	typePermission = "permission_error"
	typeNotFound   = "not_found_error"
	typeLarge      = "request_too_large"
	typeServer     = "api_error"
	typeTimeout    = "timeout_error"
	typeOverloaded = "overloaded_error"
)

// kinds is the status and type of each kind of error.
var kinds = [api.Kinds]struct {
	status int
	kind   string
}{
	api.KindInvalid:      {400, typeInvalid},
	api.KindUnsupported:  {400, typeInvalid},
	api.KindTooLong:      {400, typeInvalid},
	api.KindUnknownModel: {404, typeNotFound},
	api.KindUnknownPath:  {404, typeNotFound},
	api.KindMethod:       {405, typeInvalid},
	api.KindMediaType:    {415, typeInvalid},
	api.KindEncoding:     {415, typeInvalid},
	api.KindLargeBody:    {413, typeLarge},
	api.KindSlowBody:     {408, typeTimeout},
	api.KindKey:          {401, typeAuth},
	api.KindHost:         {403, typePermission},
	api.KindQueueFull:    {529, typeOverloaded}, // the status of this API for it
	api.KindOverload:     {529, typeOverloaded},
	api.KindLoading:      {503, typeServer},
	api.KindDraining:     {503, typeServer},
	api.KindDeadline:     {504, typeTimeout},
	api.KindClientGone:   {499, typeInvalid}, // the status that servers use for it
	api.KindEngine:       {500, typeServer},
	api.KindInternal:     {500, typeServer},
}

// Problem implements api.Errors. The code is the type.
func (problems) Problem(e *api.Error) (status int, code string, body []byte) {
	k := kinds[e.Kind]
	return k.status, k.kind, append(appendError([]byte(`{"type":"error"`), e), '}')
}

// appendError appends the JSON of an error behind its type, without the bracket that ends it.
func appendError(b []byte, e *api.Error) []byte {
	text := e.Message
	if e.Kind == api.KindTooLong {
		text = tooLong(e.Count)
	}
	b = append(b, `,"error":{"type":`...)
	b = jsontree.AppendString(b, kinds[e.Kind].kind)
	b = append(b, `,"message":`...)
	b = jsontree.AppendString(b, text)
	b = append(b, `},"request_id":`...)
	return api.AppendOptional(b, e.RequestID)
}

// tooLong says how far a prompt is beyond what leaves room for an answer. Clients match the words, and read both numbers.
func tooLong(c api.Count) string {
	text := fmt.Sprintf("prompt is too long: %d tokens > %d maximum", c.Tokens, c.Limit-1)
	if c.AtLeast {
		text += " (it has at least as many: they were not counted to the end)"
	}
	return text
}
