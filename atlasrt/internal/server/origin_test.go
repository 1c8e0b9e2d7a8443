package server

import (
	"strings"
	"testing"
)

// Browsers ask before they send what pages of other origins want sent; that needs no key.
func TestPreflight(t *testing.T) {
	cases := []struct {
		origins []string
		origin  string
		allowed string // Access-Control-Allow-Origin
	}{
		{[]string{"https://app.example"}, "https://app.example", "https://app.example"},
		{[]string{"https://app.example", "http://localhost:3000"}, "http://localhost:3000", "http://localhost:3000"},
		{[]string{"*"}, "https://any.example", "*"},
		{[]string{"null"}, "null", "null"},
		{[]string{"https://app.example"}, "https://evil.example", ""},
		{[]string{"https://app.example"}, "http://app.example", ""},
		{[]string{"https://app.example"}, "https://app.example.evil.com", ""},
		{[]string{"https://app.example"}, "https://app.example:444", ""},
	}
	const asked = "authorization,content-type,x-stainless-os,anthropic-version,anthropic-dangerous-direct-browser-access"
	for _, c := range cases {
		r := newRig(t, answering, func(config *Config) { config.Origins, config.Keys = c.origins, []string{"first"} })
		for _, path := range []string{"/v1/chat/completions", "/v1/models", "/nowhere"} {
			got := r.do("OPTIONS", path, "", "Origin", c.origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", asked,
				"Access-Control-Request-Private-Network", "true")
			if got.status != 204 || got.header.Get("Access-Control-Allow-Origin") != c.allowed || !strings.Contains(strings.Join(got.header.Values("Vary"), ","), "Access-Control-Request-Method") {
				t.Errorf("%v asked by %s on %s: %d %v, want %q", c.origins, c.origin, path, got.status, got.header, c.allowed)
			}
			if c.allowed != "" && (got.header.Get("Access-Control-Allow-Headers") != asked || got.header.Get("Access-Control-Allow-Methods") != "POST" ||
				got.header.Get("Access-Control-Max-Age") != "600" || got.header.Get("Access-Control-Allow-Private-Network") != "true" || got.header.Get(requestID) == "") {
				t.Errorf("%v asked by %s on %s: %v", c.origins, c.origin, path, got.header)
			}
		}
		got := r.do("POST", "/v1/chat/completions", hello, "Origin", c.origin, "Authorization", "Bearer first")
		exposed := strings.ToLower(got.header.Get("Access-Control-Expose-Headers"))
		if got.status != 200 || got.header.Get("Access-Control-Allow-Origin") != c.allowed || strings.Contains(exposed, requestID) != (c.allowed != "") {
			t.Errorf("%v used by %s: %d %v, want %q", c.origins, c.origin, got.status, got.header, c.allowed)
		}
		if got := r.do("GET", "/v1/models", "", "Origin", c.origin); got.status != 401 || got.header.Get("Access-Control-Allow-Origin") != c.allowed {
			t.Errorf("%v used by %s without a key: %d %v", c.origins, c.origin, got.status, got.header)
		}
	}
}

// Without origins a browser hears nothing, and OPTIONS is a method like others.
func TestNoOrigins(t *testing.T) {
	for _, origins := range [][]string{nil, {"https://app.example"}} {
		r := newRig(t, answering, func(c *Config) { c.Origins = origins })
		headers := []string{"Origin", "https://evil.example"}
		if origins == nil {
			headers = append(headers, "Access-Control-Request-Method", "POST")
		}
		got := r.do("OPTIONS", "/v1/chat/completions", "", headers...)
		if got.status != 405 || got.header.Get("Allow") != "POST" || got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%v: %d %v", origins, got.status, got.header)
		}
	}
}
