package server

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/schema"
	"github.com/atlas-inference/atlas/atlasrt/internal/halfclose"
	"github.com/atlas-inference/atlas/atlasrt/internal/metrics"
	"github.com/atlas-inference/atlas/atlasrt/internal/option"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
)

// Why the server itself ends a request.
var (
	errDeadline = errors.New("the request took longer than this server allows")
	errShutdown = errors.New("the server is shutting down")
	errStalled  = errors.New("the client stopped reading")
)

// Seconds after which clients should try again.
const (
	retryFull  = 2
	retryLoad  = 2
	retryDrain = 5
)

// dialect is how errors of a request's route are written: that of the route, or what errorsOf says where it has none.
func (s *Server) dialect(c *gin.Context) api.Errors {
	if d, ok := s.errors[c.FullPath()]; ok {
		return d
	}
	return errorsOf(c.Request)
}

// problem is what a client is told of an error: the one place that knows the errors of all packages.
func problem(err error, of api.Errors) *api.Error {
	if e, ok := errors.AsType[*api.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*completion.TooLong](err); ok {
		return tooLong(of, api.Count{Tokens: e.Tokens, Limit: e.Limit})
	}
	if e, ok := errors.AsType[*engine.TooLong](err); ok {
		return tooLong(of, api.Count{Tokens: e.Tokens, Limit: e.Limit})
	}
	if e, ok := errors.AsType[*option.Error](err); ok {
		return api.InvalidOption(e, of)
	}
	if e := held(err); e != nil {
		return e
	}
	if e, ok := errors.AsType[*tokenizer.Intractable](err); ok {
		return intractable(of.Field(option.Prompt), e)
	}
	if e, ok := errors.AsType[*engine.QueueFull](err); ok {
		return &api.Error{Kind: api.KindQueueFull, Hit: api.LimitQueue, RetryAfter: retryFull, Message: e.Error()}
	}
	switch {
	case errors.Is(err, errFull):
		return &api.Error{Kind: api.KindOverload, Hit: api.LimitBytes, RetryAfter: retryFull, Message: "The server has too many large requests at the moment; try again later."}
	case errors.Is(err, engine.ErrDraining), errors.Is(err, errShutdown):
		return &api.Error{Kind: api.KindDraining, RetryAfter: retryDrain, Message: "The server is shutting down; try another one, or again later."}
	case errors.Is(err, errDeadline), errors.Is(err, context.DeadlineExceeded):
		return &api.Error{Kind: api.KindDeadline, Hit: api.LimitTime, Final: true,
			Message: "The request took longer than this server allows; ask for fewer tokens, or stream them."}
	}
	return &api.Error{Kind: api.KindEngine, Message: "The engine failed while it answered this request."}
}

// maxGrammarError bounds what is shown of a grammar's error.
const maxGrammarError = 600

// held is what a client is told where an answer cannot be held to what it asks; nil: the error is another one.
func held(err error) *api.Error {
	if e, ok := errors.AsType[*grammar.Error](err); ok {
		kind := api.KindInvalid
		if _, ok := errors.AsType[*schema.Unsupported](err); ok {
			kind = api.KindUnsupported
		}
		return &api.Error{Kind: kind, Field: e.Name, Message: strings.ToValidUTF8(api.Clip(e.Error(), maxGrammarError), "") + "."}
	}
	if e, ok := errors.AsType[*grammar.Fault](err); ok {
		return &api.Error{Kind: api.KindInternal, Final: true, Message: "The server failed at what the answer must be: " + e.Error() + "."}
	}
	if e, ok := errors.AsType[*engine.GrammarError](err); ok {
		if e.Fault {
			return &api.Error{Kind: api.KindInternal, Message: "The server failed at what the answer must be; other requests go on."}
		}
		return &api.Error{Kind: api.KindInvalid, Message: strings.ToValidUTF8(api.Clip("The answer cannot go on as the request asks: "+e.Error(), maxGrammarError), "") + "."}
	}
	return nil
}

// named is an error with the id of its response.
func named(c *gin.Context, e *api.Error) *api.Error {
	n := *e
	n.RequestID = c.Writer.Header().Get(requestID)
	return &n
}

// intractable says that the tokenizer cannot read a field.
func intractable(field string, e *tokenizer.Intractable) *api.Error {
	return api.Invalid(field, "This model's tokenizer cannot read it: %s.", e)
}

// tooLong says that a prompt leaves no room for an answer.
func tooLong(of api.Errors, count api.Count) *api.Error {
	return &api.Error{Kind: api.KindTooLong, Field: of.Field(option.Prompt), Hit: api.LimitContext, Count: count}
}

// fail answers with an error and counts it. After the first byte of a stream it becomes the last event.
func (s *Server) fail(c *gin.Context, err error) {
	dialect := s.dialect(c)
	e := named(c, problem(err, dialect))
	status, code, body := dialect.Problem(e)
	s.count(e)
	entryOf(c).failure = code
	if fault, ok := errors.AsType[*grammar.Fault](err); ok {
		s.log.Error("a form was not compiled", "id", c.Writer.Header().Get(requestID), "panic", fault.Value, "stack", string(fault.Stack))
	}
	if e.Kind == api.KindEngine || e.Kind == api.KindInternal {
		s.log.Error("request failed", "id", c.Writer.Header().Get(requestID), "status", status, "error", err)
	}
	if c.Writer.Written() {
		if answer := entryOf(c).answer; answer != nil { // nothing else is written in pieces
			_ = s.send(c, answer.Fail(nil, e))
		}
		return
	}
	if e.RetryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	if e.Final {
		c.Header("x-should-retry", "false")
	}
	s.write(c, status, jsonType, body)
	if e.Kind != api.KindSlowBody {
		s.linger(c)
	}
}

func (s *Server) count(e *api.Error) {
	if e.Hit != "" {
		s.metrics.LimitHit(string(e.Hit))
	}
	switch e.Kind {
	case api.KindKey, api.KindHost:
		s.metrics.Rejected(metrics.Unauthorized)
	case api.KindUnknownModel, api.KindUnknownPath, api.KindMethod:
		s.metrics.Rejected(metrics.NotFound)
	case api.KindQueueFull, api.KindOverload:
		s.metrics.Rejected(metrics.QueueFull)
	case api.KindDraining:
		s.metrics.Rejected(metrics.Draining)
	case api.KindEngine:
		s.metrics.Rejected(metrics.EngineError)
	case api.KindDeadline: // counted as cancelled
	default:
		s.metrics.Rejected(metrics.Invalid)
	}
}

// end deals with an error that came while a request ran.
func (s *Server) end(c *gin.Context, err error) {
	cause := metrics.ClientGone
	switch {
	case errors.Is(err, errStalled):
		cause = metrics.WriteStalled
	case errors.Is(err, halfclose.ErrGone), errors.Is(err, context.Canceled): // net/http alone cancels the request
	case errors.Is(err, errDeadline), errors.Is(err, context.DeadlineExceeded):
		s.metrics.Cancelled(metrics.Deadline)
		s.fail(c, err)
		return
	case errors.Is(err, errShutdown):
		s.metrics.Cancelled(metrics.Shutdown)
		s.fail(c, err)
		return
	default:
		s.fail(c, err)
		return
	}
	s.metrics.Cancelled(cause)
	entryOf(c).failure = string(cause)
	if !c.Writer.Written() { // else net/http says 200 with nothing in it
		c.Header("Connection", "close")
		status, _, body := s.dialect(c).Problem(named(c, &api.Error{Kind: api.KindClientGone, Message: "The client went away before the answer was there."}))
		s.write(c, status, jsonType, body)
	}
}
