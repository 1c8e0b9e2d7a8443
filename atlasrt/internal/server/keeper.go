package server

import (
	"time"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/responses"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/store"
)

// keeper is the Responses API as the dialect of one request. It finds what the request refers to, and keeps the answer where that
// was asked for.
type keeper struct {
	responses.Errors
	server  *Server
	name    string // of the response in the log
	owner   store.Owner
	request *responses.Request
	from    *store.Turn // that the request goes on from
	answer  *responses.Answer
	kept    bool // for good
}

func (s *Server) keeper(c *gin.Context) *keeper {
	return &keeper{server: s, owner: ownerOf(c), name: c.Writer.Header().Get(requestID)}
}

// Decode implements api.Dialect. What the request refers to is found.
func (k *keeper) Decode(body []byte, limits api.Limits) (_ *api.Request, err error) {
	if k.request, err = responses.Decode(body, limits); err != nil {
		return nil, err
	}
	if err := k.converse(); err != nil {
		return nil, err
	}
	if n := k.request.Skipped; n > 0 {
		k.request.Unknown += n
		k.server.log.Warn("tools and items of types that this server does not have were left out", "id", k.name, "count", n)
	}
	return &k.request.Request, nil
}

// converse makes the conversation of a request from what is kept and from its input.
func (k *keeper) converse() error {
	const field = "previous_response_id"
	s, now, id := k.server, time.Now(), k.request.Previous
	if id != "" {
		if k.from = s.store.Turn(k.owner, id, now); k.from == nil {
			if _, there := s.store.Get(k.owner, id, now); there {
				return api.Invalid(field, "The response that %s names is still being made; wait until it is done.", field)
			}
			return responses.NoResponse(field, id)
		}
		if _, bytes := k.from.Size(); bytes > s.limits.BodyBytes {
			return api.TooMuch(api.LimitBody, field, "The conversation that %s names has %d bytes, at most %d are allowed.", field, bytes, s.limits.BodyBytes)
		}
	}
	return k.request.Converse(k.from.Items(), func(id string) (store.Item, bool) { return s.store.Item(k.owner, id, now) }, s.request)
}

// Answer implements api.Dialect. It is called once.
func (k *keeper) Answer(r *api.Request, h api.Head) api.Answer {
	k.answer = responses.NewAnswer(r, h)
	input, status := k.request.Release(h.ID), responses.StatusInProgress
	if k.request.Background {
		status = responses.StatusQueued
	}
	if k.kept = !k.request.Store; !k.kept {
		k.server.store.Begin(k.owner, k.answer.ID(), k.from, input, k.answer.Shown(status), time.Now())
	}
	return keptAnswer{k.answer, k}
}

// keep keeps the answer once it is done.
func (k *keeper) keep() {
	if !k.kept && k.answer.Done() {
		k.kept = true
		k.server.store.Finish(k.owner, k.answer.ID(), k.answer.Output(), k.answer.Body(), time.Now())
	}
}

// settle ends an answer that nobody will go on with.
func (k *keeper) settle(failed bool) {
	switch {
	case k.answer == nil || k.answer.Done():
		return
	case failed:
		k.answer.Fail(nil, &api.Error{Kind: api.KindInternal, Message: "The answer could not be completed."})
	default:
		k.answer.Cancel()
	}
	k.keep()
}

// keptAnswer is an answer that is kept before its end is told.
type keptAnswer struct {
	*responses.Answer
	keeper *keeper
}

// Append implements api.Answer.
func (a keptAnswer) Append(b []byte, events []chat.Event) []byte {
	defer a.keeper.keep()
	return a.Answer.Append(b, events)
}

// Add implements api.Answer.
func (a keptAnswer) Add(events []chat.Event) {
	a.Answer.Add(events)
	a.keeper.keep()
}

// Fail implements api.Answer.
func (a keptAnswer) Fail(b []byte, e *api.Error) []byte {
	defer a.keeper.keep()
	return a.Answer.Fail(b, e)
}
