package server

import (
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
)

// entry is what the log says of one request. No text of a client's is in it: routes are patterns, models those that are served,
// errors kinds.
type entry struct {
	failure string // kind of the error; empty: none
	notes   int    // on what the answer is held to: their texts are the client's

	record *record // for the dump; nil: the request is in none

	answer api.Answer // that was begun, or nil
	model  string     // empty: no answer was begun
	usage  chat.Usage
	first  time.Time // when its first token came; zero: none did
	finish string    // why its answers ended
}

// entryKey is where a request's entry is in its gin.Context.
const entryKey = "entry"

func entryOf(c *gin.Context) *entry {
	e, ok := c.MustGet(entryKey).(*entry)
	if !ok {
		panic("BUG: an entry of another type")
	}
	return e
}

// observe logs a request when it is done: one line, which is for debugging only where somebody just looks.
func (s *Server) observe(c *gin.Context) {
	start, e := time.Now(), &entry{}
	c.Set(entryKey, e)
	c.Next()
	s.config.Dump.end(c, e)
	level, route := slog.LevelInfo, c.FullPath()
	method := knownMethod(c.Request.Method)
	switch {
	case route == "" && method == http.MethodOptions && c.Writer.Status() == http.StatusNoContent:
		level, route = slog.LevelDebug, "preflight"
	case route == "":
		route = "none"
	case method == http.MethodGet || method == http.MethodHead:
		level = slog.LevelDebug
	}
	s.log.LogAttrs(c.Request.Context(), level, "request",
		append([]slog.Attr{slog.String("id", c.Writer.Header().Get(requestID)), slog.String("method", method), slog.String("route", route),
			slog.Int("status", c.Writer.Status())}, e.attributes(start)...)...)
}

func (e *entry) attributes(start time.Time) (a []slog.Attr) {
	if e.model != "" {
		a = append(a, slog.String("model", e.model), slog.Int("prompt", e.usage.Prompt), slog.Int("cached", e.usage.Cached), slog.Int("new", e.usage.Output))
		a = append(a, drafts(e.usage)...)
	}
	if !e.first.IsZero() {
		a = append(a, milliseconds("first_ms", e.first.Sub(start)))
	}
	a = append(a, milliseconds("ms", time.Since(start)))
	if e.finish != "" {
		a = append(a, slog.String("finish", e.finish))
	}
	if e.notes > 0 {
		a = append(a, slog.Int("not_held", e.notes))
	}
	if e.failure != "" {
		a = append(a, slog.String("error", e.failure))
	}
	return a
}

// drafts says what came of a request's drafts, where it had some.
func drafts(u chat.Usage) []slog.Attr {
	if u.Drafted == 0 {
		return nil
	}
	return []slog.Attr{slog.Int("drafted", u.Drafted), slog.Int("accepted", u.Accepted)}
}

func milliseconds(key string, d time.Duration) slog.Attr {
	return slog.Float64(key, math.Round(d.Seconds()*1e4)/10)
}

func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodPatch:
		return method
	}
	return "other"
}

// reasons writes why several answers ended, each reason once.
func reasons(finishes []chat.Finish) string {
	var each []string
	for _, f := range finishes {
		if f != "" && !slices.Contains(each, string(f)) {
			each = append(each, string(f))
		}
	}
	return strings.Join(each, ",")
}
