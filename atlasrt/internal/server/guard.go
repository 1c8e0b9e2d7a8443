package server

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/metrics"
	"github.com/atlas-inference/atlas/atlasrt/internal/store"
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
	nameResponse(c.Writer.Header(), c.Request)
	s.setWriteDeadline(c, s.limits.RequestTime+s.limits.BodyTime+s.limits.WriteTime)
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
		entryOf(c).failure = string(metrics.Panic)
		e := named(c, &api.Error{Kind: api.KindInternal, Message: "The server failed to answer this request."})
		if !c.Writer.Written() {
			status, _, body := s.dialect(c).Problem(e)
			s.write(c, status, jsonType, body)
		} else if answer := entryOf(c).answer; answer != nil && c.Writer.Header().Get("Content-Type") == eventType {
			_ = s.send(c, answer.Fail(nil, e))
		}
		c.Abort()
	}()
	c.Next()
}

// authorize asks for a key on keyed routes, also on those that do not exist.
func (s *Server) authorize(to map[string]access) gin.HandlerFunc {
	return func(c *gin.Context) {
		if len(s.keys) == 0 || to[c.FullPath()] != keyed {
			return
		}
		if owner, ok := s.authorized(c.Request.Header); ok {
			c.Set(ownerKey, owner)
			return
		}
		c.Header("WWW-Authenticate", "Bearer")
		s.fail(c, &api.Error{Kind: api.KindKey,
			Message: "The API key is missing or wrong; send it as Authorization: Bearer KEY, or as x-api-key: KEY."})
		c.Abort()
	}
}

// ownerKey is where the hash of a request's key is in its gin.Context.
const ownerKey = "owner"

// ownerOf is who a request comes from: nobody where no keys are asked for.
func ownerOf(c *gin.Context) store.Owner {
	owner, _ := c.Value(ownerKey).(store.Owner)
	return owner
}

// authorized compares in a time that depends on neither key, and gives the hash of the one that was sent.
func (s *Server) authorized(h http.Header) (store.Owner, bool) {
	key, ok := givenKey(h)
	given := sha256.Sum256([]byte(key))
	match := 0
	for i := range s.keys {
		match |= subtle.ConstantTimeCompare(given[:], s.keys[i][:])
	}
	return given, match == 1 && ok
}

// givenKey finds the key of a request, which may be in two headers; two that differ are none.
func givenKey(h http.Header) (key string, ok bool) {
	bearers, keys := h.Values("Authorization"), h.Values("x-api-key")
	if len(bearers) > 1 || len(keys) > 1 {
		return "", false
	}
	given := slices.Clone(keys)
	for _, bearer := range bearers {
		scheme, key, _ := strings.Cut(bearer, " ")
		if !strings.EqualFold(scheme, "bearer") {
			return "", false
		}
		given = append(given, strings.TrimSpace(key))
	}
	if len(given) == 0 || subtle.ConstantTimeCompare([]byte(given[0]), []byte(given[len(given)-1])) == 0 {
		return "", false
	}
	return given[0], true
}
