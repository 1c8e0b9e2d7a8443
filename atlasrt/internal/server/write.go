package server

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
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
	if _, err := c.Writer.Write(events); err != nil {
		return err
	}
	return s.flush(c)
}

func (s *Server) flush(c *gin.Context) error {
	s.setWriteDeadline(c, s.limits.WriteTime)
	return control(c).Flush()
}

// body reads a request's JSON. It must be read to its end before work begins: only then does the server notice that a
// client goes away. Errors are *api.Error.
func (s *Server) body(c *gin.Context) ([]byte, error) {
	r := c.Request
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != jsonType {
		return nil, &api.Error{Status: 415, Type: api.TypeInvalid, Code: "unsupported_media_type", Message: "The Content-Type must be application/json."}
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, &api.Error{Status: 415, Type: api.TypeInvalid, Code: "unsupported_encoding", Message: "A compressed body is not supported; leave Content-Encoding out."}
	}
	tooLarge := &api.Error{Status: 413, Type: api.TypeInvalid, Code: "request_too_large", Limit: api.LimitBody,
		Message: "The body is larger than the " + strconv.FormatInt(s.limits.BodyBytes, 10) + " bytes that this server takes."}
	if r.ContentLength > s.limits.BodyBytes {
		c.Header("Connection", "close")
		return nil, tooLarge
	}
	_ = control(c).SetReadDeadline(time.Now().Add(s.limits.BodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, r.Body, s.limits.BodyBytes))
	_, over := errors.AsType[*http.MaxBytesError](err)
	switch {
	case err == nil:
		_ = control(c).SetReadDeadline(time.Time{})
		return body, nil
	case over:
		return nil, tooLarge
	}
	c.Header("Connection", "close")
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, &api.Error{Status: 408, Type: api.TypeTimeout, Code: "request_timeout", Limit: api.LimitTime, Message: "The body took too long to arrive."}
	}
	return nil, api.Invalid("", "The body could not be read to its end.")
}
