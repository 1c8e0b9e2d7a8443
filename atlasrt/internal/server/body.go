package server

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
)

// body is a request's JSON, and the room that it takes until it is made into tokens.
type body struct {
	text  []byte
	ctx   context.Context // of the work on it: ends with the request, or once that took too long
	leave func()          // gives the room back; must be called, and may be called again
}

// body reads a request's JSON once there is room for it. It must be read to its end before work begins: only then does the
// server notice that a client goes away. Errors are for end.
func (s *Server) body(c *gin.Context) (*body, error) {
	r := c.Request
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != jsonType {
		return nil, &api.Error{Kind: api.KindMediaType, Message: "The Content-Type must be application/json."}
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, &api.Error{Kind: api.KindEncoding, Message: "A compressed body is not supported; leave Content-Encoding out."}
	}
	if r.ContentLength > s.limits.BodyBytes {
		c.Header("Connection", "close")
		return nil, s.bodyTooLarge()
	}
	v := &visit{admission: s.admission}
	text, err := s.read(c, v)
	if err == nil {
		err = v.begin(r.Context(), len(text))
	}
	if err != nil {
		v.leave()
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), s.limits.RequestTime, errDeadline)
	b := &body{text: text, ctx: ctx}
	b.leave = func() {
		b.text = nil // the answer may take long
		cancel()
		v.leave()
	}
	return b, nil
}

func (s *Server) bodyTooLarge() error {
	return &api.Error{Kind: api.KindLargeBody, Hit: api.LimitBody,
		Message: "The body is larger than the " + strconv.FormatInt(s.limits.BodyBytes, 10) + " bytes that this server takes."}
}

// lingerTime is how long a client that was refused may go on to send.
const lingerTime = 5 * time.Second

// linger takes in, and forgets, what a client still sends of a body that was refused unread. Many clients read no answer before
// they have sent all, and a connection that is closed on them takes the answer with it. It takes twice what a body may have: who sends
// more is cut off.
func (s *Server) linger(c *gin.Context) {
	r := c.Request
	if r.ContentLength >= 0 && r.ContentLength <= smallBody { // net/http takes that in
		return
	}
	if r.Header.Get("Expect") != "" || s.flush(c) != nil { // such a client waits for the answer
		return
	}
	_ = control(c).SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, r.Body, 2*s.limits.BodyBytes)
	_ = control(c).SetReadDeadline(time.Time{})
}

// read takes the body in. Room for a large one is reserved at once and as a whole, so that bodies never wait for each other
// half read; a length that nobody told is the largest.
func (s *Server) read(c *gin.Context, v *visit) ([]byte, error) {
	r := c.Request
	size := r.ContentLength
	reader := http.MaxBytesReader(c.Writer, r.Body, s.limits.BodyBytes)
	var text []byte
	var err error
	if size <= smallBody {
		s.setReadDeadline(c)
		text, err = readTo(reader, make([]byte, 0, max(size, 0)), smallBody+1)
		size = s.limits.BodyBytes
	}
	if err == nil {
		if err := v.reserve(r.Context(), size); err != nil {
			c.Header("Connection", "close")
			return nil, err
		}
		if r.ContentLength > 0 {
			text = slices.Grow(text, int(r.ContentLength)-len(text))
		}
		s.setReadDeadline(c)
		text, err = readTo(reader, text, int(s.limits.BodyBytes)+1)
	}
	if err == io.EOF {
		_ = control(c).SetReadDeadline(time.Time{})
		return text, nil
	}
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, s.bodyTooLarge()
	}
	c.Header("Connection", "close")
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, &api.Error{Kind: api.KindSlowBody, Hit: api.LimitTime, Message: "The body took too long to arrive."}
	}
	return nil, api.Invalid("", "The body could not be read to its end.")
}

func (s *Server) setReadDeadline(c *gin.Context) {
	_ = control(c).SetReadDeadline(time.Now().Add(s.limits.BodyTime))
}

// readTo appends to b until it has size bytes; io.EOF where r ends before.
func readTo(r io.Reader, b []byte, size int) ([]byte, error) {
	for len(b) < size {
		if len(b) == cap(b) {
			b = slices.Grow(b, min(max(len(b), 512), size-len(b)))
		}
		n, err := r.Read(b[len(b):min(cap(b), size)])
		if b = b[:len(b)+n]; err != nil {
			return b, err
		}
	}
	return b, nil
}

// freeMemory gives what the heap does not need back to the system. Pools are empty after the second collection only.
func freeMemory() {
	runtime.GC()
	debug.FreeOSMemory()
}
