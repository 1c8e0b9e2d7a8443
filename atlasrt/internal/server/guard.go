package server

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/metrics"
)

const requestID = "x-request-id"

// newID is a name that nobody can guess.
func newID(prefix string) string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}

// identify gives the response its id, and bounds how long it may take to write whatever comes.
func (s *Server) identify(c *gin.Context) {
	c.Header(requestID, newID("req_"))
	s.setWriteDeadline(c, s.limits.RequestTime+s.limits.BodyTime+s.limits.WriteTime)
}

// observe logs the request when it is done. Paths are those of routes, so a client cannot write into the log.
func (s *Server) observe(c *gin.Context) {
	start := time.Now()
	c.Next()
	path, status := c.FullPath(), c.Writer.Status()
	if path == "" {
		path = "none"
	}
	if c.GetBool(gone) {
		status = statusGone
	}
	s.log.Debug("request", "id", c.Writer.Header().Get(requestID), "method", knownMethod(c.Request.Method), "route", path,
		"status", status, "seconds", time.Since(start).Seconds())
}

// gone marks, in a gin.Context, a request whose client went away.
const gone = "gone"

func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodPatch:
		return method
	}
	return "other"
}

// recover lets a panic fail its own request only.
func (s *Server) recover(c *gin.Context) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		s.log.Error("a request panicked", "id", c.Writer.Header().Get(requestID), "type", fmt.Sprintf("%T", value), "stack", string(debug.Stack()))
		s.metrics.Rejected(metrics.Panic)
		e := &api.Error{Status: 500, Type: api.TypeServer, Code: "internal_error", Message: "The server failed to answer this request."}
		if !c.Writer.Written() {
			s.write(c, e.Status, jsonType, e.Body())
		} else if c.Writer.Header().Get("Content-Type") == eventType {
			_ = s.send(c, api.AppendError(nil, e))
		}
		c.Abort()
	}()
	c.Next()
}

// allowedHosts are the names that the Host header may have. A browser that was tricked into taking a foreign name for this
// machine sends that name (DNS rebinding), so a server for this machine only refuses it. nil: all.
func allowedHosts(addr string, more []string) ([]string, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("server: address %q: %w (write host:port)", addr, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, nil
	}
	hosts := []string{"localhost", "127.0.0.1", "::1", strings.ToLower(host)}
	for _, name := range more {
		hosts = append(hosts, strings.ToLower(strings.Trim(name, "[]")))
	}
	return hosts, nil
}

func (s *Server) checkHost(c *gin.Context) {
	if s.hosts == nil {
		return
	}
	host := c.Request.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if !slices.Contains(s.hosts, strings.ToLower(strings.Trim(host, "[]"))) {
		s.fail(c, &api.Error{Status: 403, Type: api.TypePermission, Code: "host_not_allowed",
			Message: "This server answers to the names of its own machine only; the operator can allow others."})
		c.Abort()
	}
}

// authorize asks for a key on all routes but the open ones, also on those that do not exist.
func (s *Server) authorize(open map[string]bool) gin.HandlerFunc {
	return func(c *gin.Context) {
		if len(s.keys) == 0 || open[c.FullPath()] || s.authorized(c.Request.Header.Values("Authorization")) {
			return
		}
		c.Header("WWW-Authenticate", "Bearer")
		s.fail(c, &api.Error{Status: 401, Type: api.TypeAuth, Code: "invalid_api_key",
			Message: "The API key is missing or wrong; send it as Authorization: Bearer KEY."})
		c.Abort()
	}
}

// authorized compares in a time that depends on neither key.
func (s *Server) authorized(headers []string) bool {
	if len(headers) != 1 {
		return false
	}
	scheme, key, _ := strings.Cut(headers[0], " ")
	given := sha256.Sum256([]byte(strings.TrimSpace(key)))
	match := 0
	for i := range s.keys {
		match |= subtle.ConstantTimeCompare(given[:], s.keys[i][:])
	}
	return match == 1 && strings.EqualFold(scheme, "bearer")
}
