package server

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/anthropic"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
)

// plainRequestID is what the Anthropic API calls the header of requestID.
const plainRequestID = "request-id"

// speaksAnthropic tells whether a request is of the Anthropic API: by its path, or by a header that its clients send everywhere.
func speaksAnthropic(r *http.Request) bool {
	path := strings.TrimPrefix(plainPath(r.URL.Path), "/v1")
	return path == "/messages" || strings.HasPrefix(path, "/messages/") || r.Header.Get("anthropic-version") != ""
}

// errorsOf is how errors are written to who sent a request, where its route does not say.
func errorsOf(r *http.Request) api.Errors {
	if speaksAnthropic(r) {
		return anthropic.Messages{}
	}
	return openai.Chat{}
}

// nameResponse gives a response its id.
func nameResponse(h http.Header, r *http.Request) {
	id := newID("req_")
	h.Set(requestID, id)
	if speaksAnthropic(r) {
		h.Set(plainRequestID, id)
	}
}

// countTokens answers POST /v1/messages/count_tokens.
func (s *Server) countTokens(c *gin.Context) {
	if x := s.counted(c, anthropic.Count{}); x != nil {
		s.write(c, http.StatusOK, jsonType, anthropic.CountBody(x.tokens()))
	}
}

// tooMany says that a prompt has more tokens than are counted.
func tooMany(field string, e *tokenizer.TooLong) *api.Error {
	return api.TooMuch(api.LimitTokens, field, "%s has at least %d tokens; this route counts up to %d.", field, e.AtLeast, e.Limit)
}

// pageModels answers GET /v1/models as the Anthropic API does.
func (s *Server) pageModels(c *gin.Context) {
	models := make([]anthropic.Model, len(s.models))
	for i, m := range s.models {
		models[i] = anthropicModel(m)
	}
	body, err := anthropic.ModelsBody(models, anthropic.Page{After: c.Query("after_id"), Before: c.Query("before_id"), Limit: c.Query("limit")})
	if err != nil {
		s.fail(c, err)
		return
	}
	s.write(c, http.StatusOK, jsonType, body)
}

func anthropicModel(m openai.Model) anthropic.Model {
	return anthropic.NewModel(m.ID, m.Created, m.MaxContext)
}
