package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
)

const (
	jsonType  = "application/json"
	eventType = "text/event-stream"
)

// control reaches the writer below gin's, whose Flush keeps errors to itself.
func control(c *gin.Context) *http.ResponseController {
	if outer, ok := c.Writer.(interface{ Unwrap() http.ResponseWriter }); ok {
		return http.NewResponseController(outer.Unwrap())
	}
	return http.NewResponseController(c.Writer)
}

// setWriteDeadline bounds the next writes. Writers without deadlines, which tests may use, wait for ever.
func (s *Server) setWriteDeadline(c *gin.Context, d time.Duration) {
	_ = control(c).SetWriteDeadline(time.Now().Add(d))
}

// write sends a whole response.
func (s *Server) write(c *gin.Context, status int, contentType string, body []byte) {
	s.setWriteDeadline(c, s.limits.WriteTime)
	c.Header("Content-Length", strconv.Itoa(len(body)))
	c.Header("X-Content-Type-Options", "nosniff")
	entryOf(c).record.sent(body)
	c.Data(status, contentType, body)
}

// startEvents begins a stream, so that proxies and clients know that the request was admitted.
func (s *Server) startEvents(c *gin.Context) error {
	c.Header("Content-Type", eventType)
	c.Header("Cache-Control", "no-cache")
	c.Header("X-Accel-Buffering", "no")
	c.Status(http.StatusOK)
	c.Writer.WriteHeaderNow()
	return s.flush(c)
}

// send writes events and lets them go out at once.
func (s *Server) send(c *gin.Context, events []byte) error {
	s.setWriteDeadline(c, s.limits.WriteTime)
	entryOf(c).record.sent(events)
	if _, err := c.Writer.Write(events); err != nil {
		return err
	}
	return s.flush(c)
}

func (s *Server) flush(c *gin.Context) error {
	s.setWriteDeadline(c, s.limits.WriteTime)
	return control(c).Flush()
}
