package server

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/responses"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/store"
)

// respond answers POST /v1/responses.
func (s *Server) respond(c *gin.Context) {
	entryOf(c).record = s.config.Dump.begin()
	k := s.keeper(c)
	switch x := s.exchange(c, k); {
	case x == nil:
	case k.request.Background:
		s.detach(c, x, k)
	default:
		defer func() { k.settle(c.Writer.Status() >= 500) }()
		s.serve(c, x)
	}
}

// renderResponse answers POST /v1/responses/render.
func (s *Server) renderResponse(c *gin.Context) { s.render(c, s.keeper(c)) }

// countInput answers POST /v1/responses/input_tokens.
func (s *Server) countInput(c *gin.Context) {
	if x := s.counted(c, s.keeper(c)); x != nil {
		s.write(c, 200, jsonType, responses.CountBody(x.tokens()))
	}
}

// keeper is the dialect of one request.
func (s *Server) keeper(c *gin.Context) *keeper {
	return &keeper{server: s, store: s.store, owner: ownerOf(c), name: c.Writer.Header().Get(requestID)}
}

// Decode implements api.Dialect. What the request refers to is found.
func (k *keeper) Decode(body []byte, limits api.Limits) (_ *api.Request, err error) {
	if k.request, err = responses.Decode(body, limits); err != nil {
		return nil, err
	}
	if err := k.server.converse(k); err != nil {
		return nil, err
	}
	if n := k.request.Skipped; n > 0 {
		k.request.Unknown += n
		k.server.log.Warn("tools and items of types that this server does not have were left out", "id", k.name, "count", n)
	}
	return &k.request.Request, nil
}

// converse makes the conversation of a request from what is kept and from its input.
func (s *Server) converse(k *keeper) error {
	const field = "previous_response_id"
	now, id := time.Now(), k.request.Previous
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

// keeper is the dialect of one request. It keeps the answer, where that was asked for.
type keeper struct {
	responses.Dialect
	server  *Server
	name    string // of the response in the log
	store   *store.Store
	owner   store.Owner
	request *responses.Request
	from    *store.Turn // that the request goes on from
	answer  *responses.Answer
	kept    bool // for good
}

// Answer implements api.Dialect. It is called once.
func (k *keeper) Answer(r *api.Request, h api.Head) api.Answer {
	k.answer = responses.NewAnswer(r, h)
	input, status := k.request.Release(h.ID), responses.StatusInProgress
	if k.request.Background {
		status = responses.StatusQueued
	}
	if k.kept = !k.request.Store; !k.kept {
		k.store.Begin(k.owner, k.answer.ID(), k.from, input, k.answer.Shown(status), time.Now())
	}
	return keptAnswer{k.answer, k}
}

// keep keeps the answer once it is done.
func (k *keeper) keep() {
	if !k.kept && k.answer.Done() {
		k.kept = true
		k.store.Finish(k.owner, k.answer.ID(), k.answer.Output(), k.answer.Body(), time.Now())
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

// response finds a kept answer by the id in the path.
func (s *Server) response(c *gin.Context) (id string, r store.Response, err error) {
	id = c.Param("id")
	r, ok := s.store.Get(ownerOf(c), id, time.Now())
	if !ok {
		return id, r, responses.NoResponse("", id)
	}
	return id, r, nil
}

// showResponse answers GET /v1/responses/{id}.
func (s *Server) showResponse(c *gin.Context) {
	_, r, err := s.response(c)
	if stream := c.Query("stream"); err == nil && stream != "" && stream != "false" {
		err = api.Unsupported("stream", "stream is not supported here: a kept response comes as a whole; leave it out.")
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	s.write(c, 200, jsonType, r.Body)
}

// deleteResponse answers DELETE /v1/responses/{id}.
func (s *Server) deleteResponse(c *gin.Context) {
	id, _, err := s.response(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	s.jobs.cancel(job{ownerOf(c), id})
	s.store.Delete(ownerOf(c), id, time.Now())
	s.write(c, 200, jsonType, responses.DeletedBody(id))
}

// cancelResponse answers POST /v1/responses/{id}/cancel. To cancel one of the background that is over changes nothing.
func (s *Server) cancelResponse(c *gin.Context) {
	id, r, err := s.response(c)
	if err == nil && !responses.InBackground(r.Body) {
		err = api.Invalid("", "Only a response with background set can be cancelled; close the connection of another one.")
	}
	if err == nil && !r.Done {
		if ended := s.jobs.cancel(job{ownerOf(c), id}); ended != nil {
			err = wait(c.Request.Context(), ended)
		}
		if err == nil {
			_, r, err = s.response(c)
		}
	}
	if err != nil {
		s.end(c, err)
		return
	}
	s.write(c, 200, jsonType, r.Body)
}

// wait waits until something has ended, or ctx is done.
func wait(ctx context.Context, ended <-chan struct{}) error {
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// listInput answers GET /v1/responses/{id}/input_items.
func (s *Server) listInput(c *gin.Context) {
	id := c.Param("id")
	items, ok := s.store.Input(ownerOf(c), id, time.Now())
	if !ok {
		s.fail(c, responses.NoResponse("", id))
		return
	}
	body, err := responses.PageBody(items, responses.Page{Order: c.Query("order"), After: c.Query("after"), Limit: c.Query("limit")})
	if err != nil {
		s.fail(c, err)
		return
	}
	s.write(c, 200, jsonType, body)
}
