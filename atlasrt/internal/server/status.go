package server

import (
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
)

// listModels answers GET /v1/models.
func (s *Server) listModels(c *gin.Context) { s.write(c, 200, jsonType, api.ModelsBody(s.models)) }

// showModel answers GET /v1/models/{id}, where an id may have slashes.
func (s *Server) showModel(c *gin.Context) {
	name := strings.TrimPrefix(c.Param("id"), "/")
	for _, m := range s.models {
		if m.ID == name {
			s.write(c, 200, jsonType, m.Body())
			return
		}
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
	if s.config.Engine.Err() != nil {
		return "device_failed"
	}
	if time.Since(s.config.Engine.Heartbeat()) > s.limits.StepTime {
		return "engine_stuck"
	}
	return ""
}

// What the routes of load balancers answer.
const (
	healthy     = `{"status":"ok"}`
	unavailable = "unavailable_error" // type of errors
)

func (s *Server) report(c *gin.Context, reason string) {
	if reason == "" {
		s.write(c, 200, jsonType, []byte(healthy))
		return
	}
	e := &api.Error{Status: 503, Type: unavailable, Code: reason, Message: "The server is not available: " + reason + "."}
	s.write(c, e.Status, jsonType, e.Body())
}
