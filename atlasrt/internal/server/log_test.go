package server

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/internal/await"
)

// logged is a rig with the lines that its server logs from a level on.
func logged(t *testing.T, level slog.Level, script func(engineRequest) reply) (*rig, func() []map[string]any) {
	t.Helper()
	var log logBuffer
	r := newRig(t, script, func(c *Config) {
		c.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: level}))
	})
	return r, func() (lines []map[string]any) {
		for line := range strings.Lines(log.String()) {
			lines = append(lines, object(t, line))
		}
		return lines
	}
}

// One line tells of each request what was asked, what came of it, and how long it took.
func TestRequestsAreLogged(t *testing.T) {
	cases := []struct {
		reply          reply
		method, path   string
		body           string
		want           map[string]string
		missing        string // a key that must not be there
		internalErrors int
	}{
		{reply{text: "abc"}, "POST", "/v1/chat/completions", hello, map[string]string{
			"level": "INFO", "msg": "request", "method": "POST", "route": "/v1/chat/completions", "status": "200", "model": "tiny", "prompt": "4", "cached": "3", "new": "4", "finish": "stop"}, "error", 0},
		{reply{text: "abc"}, "POST", "/chat/completions", streamed, map[string]string{"route": "/chat/completions", "status": "200", "prompt": "4", "new": "4", "finish": "stop"}, "error", 0},
		{reply{text: "abc", drafts: engine.Drafts{Computed: 9, Right: 6}}, "POST", "/v1/completions", `{"prompt":"ab","max_tokens":2,"n":2}`, map[string]string{
			"new": "4", "drafted": "18", "accepted": "12"}, "error", 0},
		{reply{text: "abc"}, "POST", "/v1/completions", `{"prompt":"ab","max_tokens":2}`, map[string]string{"new": "2"}, "drafted", 0},
		{reply{text: "abc"}, "POST", "/v1/completions", `{"model":"org/alias","prompt":"ab","max_tokens":2,"n":2}`, map[string]string{
			"route": "/v1/completions", "model": "org/alias", "prompt": "2", "new": "4", "finish": "length"}, "error", 0},
		{reply{text: `"a"`}, "POST", "/v1/completions", `{"prompt":"ab","max_tokens":9,"guided_json":{"type":"string","format":"phone","secret":1}}`, map[string]string{"status": "200", "not_held": "2"}, "error", 0},
		{reply{text: `"a"`}, "POST", "/v1/completions", `{"prompt":"ab","max_tokens":9,"guided_json":{"type":"string","format":"date"}}`, map[string]string{"status": "200"}, "not_held", 0},
		{reply{refuse: &engine.QueueFull{RequestLimit: 8, TokenLimit: 100}}, "POST", "/v1/chat/completions", hello, map[string]string{"status": "429", "model": "tiny", "prompt": "4", "new": "0", "error": "rate_limit_exceeded"}, "first_ms", 0},
		{reply{refuse: engine.ErrDraining}, "POST", "/v1/chat/completions", hello, map[string]string{"level": "INFO", "status": "503", "error": "model_not_ready"}, "finish", 0},
		{reply{err: engine.ErrDraining}, "POST", "/v1/chat/completions", hello, map[string]string{"level": "INFO", "status": "503", "error": "model_not_ready"}, "first_ms", 0},
		{reply{err: engine.ErrDraining}, "POST", "/v1/chat/completions", streamed, map[string]string{"level": "INFO", "error": "model_not_ready"}, "first_ms", 0},
		{reply{text: "ab", err: errors.New("broken")}, "POST", "/v1/chat/completions", hello, map[string]string{"level": "INFO", "status": "500", "new": "2", "error": "engine_error"}, "finish", 1},
		{reply{}, "POST", "/v1/chat/completions", strings.Replace(hello, "tiny", "huge", 1), map[string]string{"status": "404", "error": "model_not_found"}, "model", 0},
		{reply{}, "POST", "/v1/chat/completions", "{", map[string]string{"status": "400", "error": "invalid_request_error"}, "model", 0},
		{reply{}, "POST", "/v1/chat/completions", strings.Replace(hello, "hi", "panic", 1), map[string]string{"status": "500", "error": "panic"}, "model", 1},
		{reply{}, "POST", "/tokenize", `{"prompt":"a"}`, map[string]string{"route": "/tokenize", "status": "200"}, "error", 0},
		{reply{}, "GET", "/nowhere", "", map[string]string{"level": "INFO", "route": "none", "status": "404", "error": "not_found"}, "model", 0},
	}
	for _, c := range cases {
		r, lines := logged(t, slog.LevelInfo, func(engineRequest) reply { return c.reply })
		got := r.do(c.method, c.path, c.body)
		all := lines()
		if len(all) != 1+c.internalErrors {
			t.Fatalf("%s %s: %d lines: %v", c.path, c.body, len(all), all)
		}
		line := all[len(all)-1]
		for key, want := range c.want {
			if at(line, key) != want {
				t.Errorf("%s %s: %s is %s, want %s: %v", c.path, c.body, key, at(line, key), want, line)
			}
		}
		if at(line, "id") != got.header.Get(requestID) || at(line, "ms") == "absent" || at(line, c.missing) != "absent" {
			t.Errorf("%s %s: no id or time, or %s: %v", c.path, c.body, c.missing, line)
		}
		if c.want["finish"] != "" && (at(line, "first_ms") == "absent" || line["first_ms"].(float64) > line["ms"].(float64)) {
			t.Errorf("%s %s: the first token: %v", c.path, c.body, line)
		}
	}
}

// Who only looks is logged for debugging alone.
func TestLooksAreNotLogged(t *testing.T) {
	for level, want := range map[slog.Level]int{slog.LevelInfo: 0, slog.LevelDebug: 7} {
		r, lines := logged(t, level, answering)
		for _, path := range []string{"/", "/health", "/livez", "/metrics", "/version", "/v1/models", "/v1/models/tiny"} {
			r.do("GET", path, "")
		}
		if got := lines(); len(got) != want {
			t.Errorf("%v: %d lines, want %d: %v", level, len(got), want, got)
		}
	}
}

// A client that left is one line that says so.
func TestGoneClientsAreLogged(t *testing.T) {
	for _, body := range []string{hello, streamed} {
		r, lines := logged(t, slog.LevelInfo, func(engineRequest) reply { return reply{text: "x", wait: time.Minute} })
		conn := r.dial(asking(body))
		await.Until(t, "the request runs", func() bool { return r.engine.running.Load() == 1 })
		conn.Close()
		await.Until(t, "it is logged", func() bool { return len(lines()) == 1 })
		if line := lines()[0]; at(line, "error") != "client_gone" || at(line, "prompt") != "4" {
			t.Errorf("%s: %v", body, line)
		}
	}
}

// Nothing that a client sends is logged, whatever happens (T126).
func TestLogsHoldNothingOfClients(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, answering, func(c *Config) {
		c.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		c.Origins = []string{"https://app.example"}
	})
	r.post("/v1/chat/completions", strings.Replace(hello, "hi", "needle", 1))
	r.post("/v1/chat/completions", strings.Replace(hello, "tiny", `needle\n`, 1))
	r.do("GET", "/needle%0a", "")
	r.do("GET", "/v1/models/needle", "")
	r.do("NEEDLE", "/health", "")
	r.do("GET", "/v1/models", "", "Host", "needle", "User-Agent", "needle")
	r.do("OPTIONS", "/needle", "", "Origin", "https://needle", "Access-Control-Request-Method", "NEEDLE")
	if text := log.String(); strings.Contains(strings.ToLower(text), "needle") || strings.Count(text, "\n") != 7 {
		t.Errorf("the log:\n%s", text)
	}
}
