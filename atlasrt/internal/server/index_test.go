package server

import (
	"strings"
	"testing"
)

// GET / says what this is to people and to programs, and names no model to those who need a key.
func TestIndex(t *testing.T) {
	for _, keys := range [][]string{nil, {"first"}} {
		r := newRig(t, answering, func(c *Config) { c.Keys, c.Version = keys, "v1.2.3" })
		for accept, want := range map[string]string{"": "text/plain; charset=utf-8", "*/*": "text/plain; charset=utf-8", "text/html, */*": "text/plain; charset=utf-8", "application/json": "application/json"} {
			got := r.do("GET", "/", "", "Accept", accept)
			if got.status != 200 || got.header.Get("Content-Type") != want || !strings.Contains(got.body, "/v1/chat/completions") || !strings.Contains(got.body, "/health") {
				t.Errorf("Accept %q: %d %v %s, want %s", accept, got.status, got.header, got.body, want)
			}
			if told := strings.Contains(got.body, "tiny") && strings.Contains(got.body, "v1.2.3"); told != (keys == nil) || keys != nil && strings.Contains(got.body, "tiny") {
				t.Errorf("keys %v: %s", keys, got.body)
			}
			if want == jsonType && at(object(t, got.body), "routes", 0) != "POST /v1/chat/completions" {
				t.Errorf("keys %v: %s", keys, got.body)
			}
		}
		if got := r.do("HEAD", "/", ""); got.status != 200 || got.body != "" {
			t.Errorf("HEAD: %d %q", got.status, got.body)
		}
	}
}

// A path that is nearly one says which, and never what the client wrote.
func TestNearRoutes(t *testing.T) {
	cases := []struct{ path, near string }{
		{"/v1/chat/completion", "/v1/chat/completions"}, {"/v1/chat/complétions", "/v1/chat/completions"}, {"/api/v1/chat/completions", "/v1/chat/completions"},
		{"/V1/Chat/Completions", "/v1/chat/completions"}, {"/v1/v1/models", "/v1/models"}, {"/openai/chat/completions", "/chat/completions"},
		{"/v1/completion", "/v1/completions"}, {"/v1", "/v1/chat/completions"}, {"/v1/chat", "/v1/chat/completions"}, {"/healthz", "/health"}, {"/v2/tokenize", "/tokenize"},
		{"/model", "/models"}, {"/nowhere", ""}, {"/api/tags", ""}, {"/" + strings.Repeat("x", 1000), ""}, {"/.", ""},
	}
	r := newRig(t, answering, nil)
	for _, c := range cases {
		if got := nearRoute(c.path); got != c.near {
			t.Errorf("%.40s: near %q, want %q", c.path, got, c.near)
		}
		got := at(object(t, r.do("GET", c.path, "").body), "error", "message")
		if want := "did you mean " + c.near + "?"; c.near != "" && !strings.Contains(got, want) || c.near == "" && strings.Contains(got, "did you mean") {
			t.Errorf("%.40s: %s, want %s", c.path, got, c.near)
		}
	}
}

// Routes answer the same with and without /v1, and a request may leave the model out.
func TestRoutesWithoutVersion(t *testing.T) {
	r := newRig(t, answering, nil)
	for _, body := range []string{hello, strings.Replace(hello, "tiny", "", 1)} {
		for _, path := range []string{"/v1/chat/completions", "/chat/completions"} {
			got := r.post(path, body)
			if d := object(t, got.body); got.status != 200 || at(d, "model") != "tiny" || at(d, "object") != "chat.completion" {
				t.Errorf("%s %s: %d %s", path, body, got.status, got.body)
			}
		}
	}
	for _, path := range []string{"/v1/completions", "/completions"} {
		if got := r.post(path, `{"model":"org/alias","prompt":"a"}`); got.status != 200 || at(object(t, got.body), "object") != "text_completion" {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if a, b := r.do("GET", "/v1/models", "").body, r.do("GET", "/models", "").body; a != b {
		t.Errorf("models: %s, without /v1 %s", a, b)
	}
}
