package server

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/halfclose"
	"github.com/atlas-inference/atlas/atlasrt/internal/metrics"
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

// problem is what a client is told of an error: the one place that knows both sides.
func problem(err error) *api.Error {
	if e, ok := errors.AsType[*api.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*completion.TooLong](err); ok {
		return api.ContextLength(e.Limit, e.Tokens)
	}
	if e, ok := errors.AsType[*engine.TooLong](err); ok {
		return api.ContextLength(e.Limit, e.Tokens)
	}
	if e, ok := errors.AsType[*completion.BadOption](err); ok {
		return api.Invalid(e.Field, "%s.", e)
	}
	if e, ok := errors.AsType[*engine.BadRequest](err); ok {
		return api.Invalid(e.Field, "%s.", e)
	}
	if e, ok := errors.AsType[*engine.QueueFull](err); ok {
		return &api.Error{Status: 429, Type: api.TypeRateLimit, Code: "rate_limit_exceeded", Limit: api.LimitQueue, RetryAfter: retryFull, Message: e.Error()}
	}
	switch {
	case errors.Is(err, errFull):
		return &api.Error{Status: 503, Type: api.TypeServer, Code: "server_overloaded", Limit: api.LimitBytes, RetryAfter: retryFull, Message: "The server has too many large requests at the moment; try again later."}
	case errors.Is(err, engine.ErrDraining), errors.Is(err, errShutdown):
		return &api.Error{Status: 503, Type: api.TypeServer, Code: "model_not_ready", RetryAfter: retryDrain, Message: "The server is shutting down; try another one, or again later."}
	case errors.Is(err, errDeadline), errors.Is(err, context.DeadlineExceeded):
		return &api.Error{Status: 504, Type: api.TypeTimeout, Code: "timeout", Limit: api.LimitTime, Final: true,
			Message: "The request took longer than this server allows; ask for fewer tokens, or stream them."}
	}
	return &api.Error{Status: 500, Type: api.TypeServer, Code: "engine_error", Message: "The engine failed while it answered this request."}
}

// fail answers with an error and counts it. After the first byte of a stream it becomes the last event.
func (s *Server) fail(c *gin.Context, err error) {
	e := problem(err)
	s.count(e)
	entryOf(c).failure = cmp.Or(e.Code, e.Type)
	if e.Status == 500 {
		s.log.Error("request failed", "id", c.Writer.Header().Get(requestID), "status", e.Status, "error", err)
	}
	if c.Writer.Written() {
		_ = s.send(c, api.AppendError(nil, e))
		return
	}
	if e.RetryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	if e.Final {
		c.Header("x-should-retry", "false")
	}
	s.write(c, e.Status, jsonType, e.Body())
	if e.Status != 408 {
		s.linger(c)
	}
}

func (s *Server) count(e *api.Error) {
	if e.Limit != "" {
		s.metrics.LimitHit(e.Limit)
	}
	switch {
	case e.Status == 401 || e.Status == 403:
		s.metrics.Rejected(metrics.Unauthorized)
	case e.Status == 404 || e.Status == 405:
		s.metrics.Rejected(metrics.NotFound)
	case e.Status == 429 || e.Limit == api.LimitBytes:
		s.metrics.Rejected(metrics.QueueFull)
	case e.Status == 503:
		s.metrics.Rejected(metrics.Draining)
	case e.Status == 500:
		s.metrics.Rejected(metrics.EngineError)
	case e.Status == 504: // counted as cancelled
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
		e := &api.Error{Status: statusGone, Type: api.TypeInvalid, Code: string(cause), Message: "The client went away before the answer was there."}
		s.write(c, e.Status, jsonType, e.Body())
	}
}

// statusGone is what servers use for a request whose client went away.
const statusGone = 499
