package server

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/responses"
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
