package server

import (
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
)

// listModels answers GET /v1/models, in the dialect of who asks.
func (s *Server) listModels(c *gin.Context) {
	if speaksAnthropic(c.Request) {
		s.pageModels(c)
		return
	}
	s.write(c, 200, jsonType, openai.ModelsBody(s.models))
}

// showModel answers GET /v1/models/{id}, where an id may have slashes.
func (s *Server) showModel(c *gin.Context) {
	name := strings.TrimPrefix(c.Param("id"), "/")
	for _, m := range s.models {
		if m.ID != name {
			continue
		}
		body := m.Body()
		if speaksAnthropic(c.Request) {
			body = anthropicModel(m).Body()
		}
		s.write(c, 200, jsonType, body)
		return
	}
	s.fail(c, api.UnknownModel(name))
}

// version answers GET /version.
func (s *Server) version(c *gin.Context) {
	c.JSON(200, struct {
		Version string `json:"version"`
	}{s.config.Version})
}

// scrape answers GET /metrics.
func (s *Server) scrape(c *gin.Context) { s.metrics.ServeHTTP(c.Writer, c.Request) }

// live answers whether the process should be kept.
func (s *Server) live(c *gin.Context) { s.report(c, s.sick()) }

// ready answers whether requests should be sent here.
func (s *Server) ready(c *gin.Context) {
	reason := s.sick()
	if s.draining.Load() {
		reason = "draining"
	}
	s.report(c, reason)
}

// sick is why only a restart can help, empty where none is needed.
func (s *Server) sick() string {
	if s.config.Model.Engine.Err() != nil {
		return "device_failed"
	}
	if time.Since(s.config.Model.Engine.Heartbeat()) > s.limits.StepTime {
		return "engine_stuck"
	}
	return ""
}

// healthy is what the routes of load balancers answer while all is well.
const healthy = `{"status":"ok"}`

// unavailable is what they answer otherwise, with the status 503.
func unavailable(reason, message string) []byte {
	return openai.ErrorBody(message, "unavailable_error", "", reason)
}

func (s *Server) report(c *gin.Context, reason string) {
	if reason == "" {
		s.write(c, http.StatusOK, jsonType, []byte(healthy))
		return
	}
	s.write(c, http.StatusServiceUnavailable, jsonType, unavailable(reason, "The server is not available: "+reason+"."))
}
