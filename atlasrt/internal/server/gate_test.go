package server

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// logBuffer is a log that may be read while it is written.
type logBuffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

// gated puts a gate on a port in front of a rig's server, and sends the rig's requests there. stop ends it.
func gated(t testing.TB, r *rig, log *slog.Logger) (gate *Gate, stop func() error) {
	t.Helper()
	gate, err := NewGate(r.server.limits, log)
	if err != nil {
		t.Fatal(err)
	}
	listener := r.network.listen(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- gate.Serve(ctx, listener) }()
	r.url = "http://" + listener.Addr().String()
	return gate, func() error { cancel(); return <-ended }
}

// shut is a rig whose requests meet a gate that is not open.
func shut(t *testing.T, log *slog.Logger, change func(*Config)) (r *rig, gate *Gate) {
	t.Helper()
	r = newRig(t, answering, change)
	gate, stop := gated(t, r, log)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return r, gate
}

// Before there is a server every route says so at once; the process lives, and nothing is ready.
func TestGateBeforeTheServer(t *testing.T) {
	var log logBuffer
	r, gate := shut(t, slog.New(slog.NewTextHandler(&log, nil)), func(c *Config) { c.Keys = []string{"first"} })
	cases := []struct {
		method, path string
		status       int
		code         string
	}{
		{"GET", "/livez", 200, ""}, {"GET", "/live", 200, ""}, {"HEAD", "/livez", 200, ""},
		{"GET", "/health", 503, "loading"}, {"GET", "/readyz", 503, "loading"}, {"GET", "/ready/", 503, "loading"}, {"HEAD", "/health", 503, ""},
		{"POST", "/v1/chat/completions", 503, "model_not_ready"}, {"GET", "/v1/models", 503, "model_not_ready"},
		{"GET", "/nowhere", 503, "model_not_ready"}, {"GET", "/metrics", 503, "model_not_ready"}, {"GET", "/livez/../x", 503, "model_not_ready"},
	}
	for _, c := range cases {
		got := r.do(c.method, c.path, "")
		if got.status != c.status || got.header.Get(requestID) == "" || (got.header.Get("Retry-After") != "") != (c.status == 503) {
			t.Errorf("%s %s: %d %v, want %d", c.method, c.path, got.status, got.header, c.status)
		}
		if c.code != "" && at(object(t, got.body), "error", "code") != c.code {
			t.Errorf("%s %s: %s, want the code %s", c.method, c.path, got.body, c.code)
		}
	}
	for _, headers := range [][]string{{}, {"anthropic-version", "2023-06-01"}} {
		path := []string{"/v1/messages", "/v1/models"}[len(headers)/2]
		if got := r.do("GET", path, "", headers...); got.status != 503 || at(object(t, got.body), "type") != "error" || at(object(t, got.body), "request_id") != got.header.Get(plainRequestID) {
			t.Errorf("%s: %d %v %s, want an error of the Anthropic API", path, got.status, got.header, got.body)
		}
	}
	if strings.Contains(log.String(), "listening") {
		t.Errorf("listening without a server: %s", log.String())
	}
	gate.Open(r.server)
	if !strings.Contains(log.String(), "msg=listening address="+strings.TrimPrefix(r.url, "http://")+" model=tiny") {
		t.Errorf("the log of an open gate: %s", log.String())
	}
	if got := r.do("GET", "/health", ""); got.status != 200 {
		t.Errorf("health once open: %d %s", got.status, got.body)
	}
	if got := r.do("GET", "/v1/models", ""); got.status != 401 {
		t.Errorf("models without a key once open: %d %s", got.status, got.body)
	}
}

// A gate ends by itself where no server ever came.
func TestGateWithoutAServer(t *testing.T) {
	r, _ := shut(t, nil, nil)
	if got := r.do("GET", "/livez", ""); got.status != 200 {
		t.Errorf("livez: %d", got.status)
	}
}

// watched is a listener that notes whether connections are taken before anybody asks for its address.
type watched struct {
	net.Listener
	accepts, early atomic.Bool
}

func (w *watched) Accept() (net.Conn, error) {
	w.accepts.Store(true)
	return w.Listener.Accept()
}

func (w *watched) Addr() net.Addr {
	time.Sleep(time.Second) // what goes on without it has gone on
	w.early.Store(w.accepts.Load())
	return w.Listener.Addr()
}

// A gate knows where it listens before it takes a connection: a server that opens it behind the first answer is announced at once.
func TestGateKnowsItsAddressFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, err := NewGate(Limits{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		l := &watched{Listener: newNetwork().listen(t)}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- gate.Serve(ctx, l) }()
		time.Sleep(time.Minute)
		if l.early.Load() || !l.accepts.Load() {
			t.Errorf("connections are taken: %v, before the address is known: %v", l.accepts.Load(), l.early.Load())
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
