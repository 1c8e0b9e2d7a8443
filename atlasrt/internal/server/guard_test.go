package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/internal/await"
)

// Which routes need a key, and what counts as one (T111, T112).
func TestKeys(t *testing.T) {
	r := newRig(t, answering, func(c *Config) { c.Keys = []string{"first", "second"} })
	for _, route := range table(&Config{}) {
		path := strings.Replace(route.path, "*id", "tiny", 1)
		for _, c := range []struct {
			authorization string
			ok            bool
		}{{"", false}, {"Bearer third", false}, {"Bearer ", false}, {"Basic first", false}, {"first", false}, {"Bearer first", true}, {"bearer second", true}} {
			got := r.do(route.method, path, "", "Authorization", c.authorization)
			if refused := got.status == 401; refused != (!c.ok && route.access == keyed) {
				t.Errorf("%s %s with %q: %d", route.method, path, c.authorization, got.status)
			} else if refused && (at(object(t, got.body), "error", "type") != "authentication_error" || got.header.Get("WWW-Authenticate") != "Bearer") {
				t.Errorf("%s %s: %v %s", route.method, path, got.header, got.body)
			}
		}
	}
	if got := r.do("GET", "/nowhere", ""); got.status != 401 {
		t.Errorf("unknown path without a key: %d", got.status)
	}
	request, _ := http.NewRequest("GET", r.url+"/v1/models?api_key=first", nil)
	request.Header["Authorization"] = []string{"Bearer first", "Bearer second"}
	got, err := r.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	if got.StatusCode != 401 {
		t.Errorf("two keys at once: %d, want 401", got.StatusCode)
	}
}

// A server for this machine only answers to its own names (T117, T118).
func TestHosts(t *testing.T) {
	cases := []struct {
		addr, host string
		status     int
	}{
		{"127.0.0.1:0", "localhost", 200}, {"127.0.0.1:0", "127.0.0.1:8000", 200}, {"127.0.0.1:0", "[::1]:80", 200}, {"[::1]:0", "LOCALHOST", 200},
		{"127.0.0.1:0", "localhost.", 200}, {"127.0.0.1:0", "localhost.:8000", 200}, {"127.0.0.1:0", "app.localhost:80", 200}, {"127.0.0.1:0", "[::1]", 200},
		{"127.0.0.1:0", "[::1%25lo]:80", 200}, {"127.0.0.1:0", "127.3.2.1", 200}, {"127.0.0.1:0", "[0:0:0:0:0:0:0:1]", 200}, {"127.0.0.1:0", "[::ffff:127.0.0.1]", 200},
		{"127.0.0.1:0", "evil.com", 403}, {"127.0.0.1:0", "localhost.evil.com", 403}, {"localhost:0", "evil.com:8000", 403}, {"[::1]:0", "evil.com", 403}, {"localhost.:0", "evil.com", 403},
		{"127.0.0.1:0", "127.0.0.1.evil.com", 403}, {"127.0.0.1:0", "notlocalhost", 403}, {"127.0.0.1:0", "10.0.0.1", 403}, {"127.0.0.1:0", "evil.com.", 403},
		{"127.0.0.1:0", "proxy.lan", 200}, {"127.0.0.1:0", "Proxy.LAN.:8000", 200}, {"127.0.0.1:0", "port.lan:9", 200}, {"127.0.0.1:0", "10.0.0.7:8000", 200},
		{"0.0.0.0:0", "evil.com", 200}, {":0", "evil.com", 200}, {"[::]:0", "evil.com", 200}, {"[fe80::1%eth0]:0", "evil.com", 200},
	}
	for _, c := range cases {
		r := newRig(t, answering, func(config *Config) {
			config.Addr, config.Hosts = c.addr, []string{"proxy.lan", "port.lan:8000", "10.0.0.7"}
		})
		got := r.do("GET", "/v1/models", "", "Host", c.host, "Origin", "https://evil.com")
		if got.status != c.status || got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s asked as %s: %d, want %d", c.addr, c.host, got.status, c.status)
		}
		if got.status == 403 && (!strings.Contains(got.body, "--hosts") || strings.Contains(got.body, "evil")) {
			t.Errorf("%s asked as %s: %s, want what to do", c.addr, c.host, got.body)
		}
	}
}

// A star allows all names.
func TestAllHosts(t *testing.T) {
	r := newRig(t, answering, func(c *Config) { c.Hosts = []string{"*"} })
	if got := r.do("GET", "/v1/models", "", "Host", "evil.com"); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// Load balancers ask under any name or none; a request without one comes from no browser.
func TestHostsOfLoadBalancers(t *testing.T) {
	r := newRig(t, answering, func(c *Config) { c.Keys = []string{"first"} })
	for _, path := range []string{"/health", "/livez", "/live", "/readyz", "/ready"} {
		if got := r.do("GET", path, "", "Host", "10.1.2.3:8000"); got.status != 200 {
			t.Errorf("%s under an address: %d %s", path, got.status, got.body)
		}
		for _, request := range []string{"GET " + path + " HTTP/1.0\r\n\r\n", "GET " + path + " HTTP/1.1\r\nHost:\r\n\r\n", "HEAD " + path + " HTTP/1.0\r\n\r\n"} {
			if got := status(t, r.dial(request)); got != 200 {
				t.Errorf("%q: %d, want 200", request, got)
			}
		}
	}
	for request, want := range map[string]int{
		"GET /v1/models HTTP/1.0\r\nAuthorization: Bearer first\r\n\r\n":                   200,
		"GET /v1/models HTTP/1.0\r\nHost: evil.com\r\nAuthorization: Bearer first\r\n\r\n": 403,
		"GET / HTTP/1.0\r\nHost: evil.com\r\n\r\n":                                         403,
	} {
		if got := status(t, r.dial(request)); got != want {
			t.Errorf("%q: %d, want %d", request, got, want)
		}
	}
}

func TestHealth(t *testing.T) {
	r := newRig(t, answering, nil)
	check := func(what string, live, ready int) {
		t.Helper()
		if got := r.do("GET", "/livez", "").status; got != live {
			t.Errorf("%s: livez %d, want %d", what, got, live)
		}
		if got := r.do("GET", "/readyz", ""); got.status != ready || strings.Contains(got.body, "secret") {
			t.Errorf("%s: readyz %d, want %d: %s", what, got.status, ready, got.body)
		}
	}
	check("usual", 200, 200)
	r.server.draining.Store(true)
	check("draining", 200, 503)
	r.server.draining.Store(false)
	old := time.Now().Add(-time.Hour)
	r.engine.beat.Store(&old)
	check("stuck", 503, 503)
	r.engine.beat.Store(nil)
	err := errors.New("secret")
	r.engine.broken.Store(&err)
	check("broken", 503, 503)
}

// A shutdown lets running answers end, refuses new ones, and gives up what takes too long.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, patient := range []bool{true, false} {
			r := newRig(t, func(engineRequest) reply { return reply{text: "abcdefghij", step: 20 * time.Millisecond} }, func(c *Config) {
				if !patient {
					c.Limits.Drain = 30 * time.Millisecond
				}
			})
			listener := r.network.listen(t)
			ctx, stop := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- r.server.Serve(ctx, listener) }()
			r.url = "http://" + listener.Addr().String()
			answered := make(chan response, 1)
			go func() {
				answered <- r.post("/v1/chat/completions", strings.Replace(hello, "}]", `}],"stream":true`, 1))
			}()
			await.Until(t, "the request runs", func() bool { return r.engine.running.Load() == 1 })
			stop()
			await.Until(t, "the server drains", func() bool { return r.engine.draining.Load() })
			if patient {
				if got := r.do("GET", "/health", ""); got.status != 503 {
					t.Errorf("health while draining: %d", got.status)
				}
				if got := r.post("/v1/chat/completions", hello); got.status != 503 || got.header.Get("Retry-After") == "" {
					t.Errorf("a new request while draining: %d %s", got.status, got.body)
				}
			}
			got := <-answered
			if _, done := events(t, got.body); done != patient {
				t.Errorf("patient %v: the stream ended: %v: %s", patient, done, got.body)
			}
			if err := <-ended; err != nil {
				t.Errorf("patient %v: %v", patient, err)
			}
		}
	})
}

// A request that a drain turns away before it began is told when to come again, in a stream that is open as its last event.
func TestTurnedAwayRequests(t *testing.T) {
	r := newRig(t, func(engineRequest) reply { return reply{err: engine.ErrDraining, wait: 20 * time.Millisecond} }, nil)
	got := r.post("/v1/chat/completions", hello)
	if got.status != 503 || got.header.Get("Retry-After") != "5" || at(object(t, got.body), "error", "code") != "model_not_ready" {
		t.Errorf("whole: %d %v %s", got.status, got.header, got.body)
	}
	got = r.post("/v1/chat/completions", streamed)
	documents, done := events(t, got.body)
	if done || len(documents) == 0 || at(documents[len(documents)-1], "error", "code") != "model_not_ready" {
		t.Errorf("stream: %s", got.body)
	}
	if n := r.metric(`atlasrt_rejected_total{cause="draining"`); n != "2" {
		t.Errorf("%s are counted, want 2", n)
	}
}

func TestNewRefuses(t *testing.T) {
	r := newRig(t, answering, nil)
	good := r.server.config
	cases := map[string]func(*Config){
		"no model":       func(c *Config) { c.Model.Name = "" },
		"no generator":   func(c *Config) { c.Model.Generator = nil },
		"no engine":      func(c *Config) { c.Model.Engine = nil },
		"no defaults":    func(c *Config) { c.Model.Generator = &completion.Generator{Vocab: vocabulary} },
		"empty key":      func(c *Config) { c.Keys = []string{""} },
		"address":        func(c *Config) { c.Addr = "here" },
		"no host":        func(c *Config) { c.Hosts = []string{"[]:80"} },
		"path in origin": func(c *Config) { c.Origins = []string{"https://app.example/"} },
		"no scheme":      func(c *Config) { c.Origins = []string{"app.example"} },
		"negative limit": func(c *Config) { c.Limits.BodyTime = -1 },
	}
	for name, change := range cases {
		c := good
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
