package server

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atlas-inference/atlas/internal/await"
)

const hello = `{"model":"tiny","messages":[{"role":"user","content":"hi"}]}`

// Paths and methods (T011–T013).
func TestRouting(t *testing.T) {
	r := newRig(t, answering, nil)
	cases := []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/v1/models", 200, ""}, {"GET", "/v1//models", 200, ""}, {"GET", "//v1/models//", 200, ""}, {"GET", "/v1/models/", 200, ""}, {"GET", "/v1/models?beta=true", 200, ""},
		{"GET", "/v1/models/tiny", 200, ""}, {"GET", "/v1/models/org/alias", 200, ""}, {"GET", "/v1/models/org%2Falias", 200, ""},
		{"GET", "/v1/models/none", 404, ""}, {"GET", "/V1/Models", 404, ""}, {"GET", "/", 200, ""}, {"HEAD", "/", 200, ""}, {"POST", "/", 405, "GET, HEAD"}, {"GET", "/models", 200, ""}, {"GET", "/models/org/alias", 200, ""}, {"GET", "/models/none", 404, ""}, {"GET", "/chat/completions", 405, "POST"}, {"GET", "/completions", 405, "POST"}, {"GET", "/v1/v1/models", 404, ""}, {"GET", "/v2/models", 404, ""},
		{"GET", "/v1/models/%2e%2e/metrics", 404, ""}, {"GET", "/v1/models/..%2f..%2fmetrics", 404, ""}, {"GET", "/health%00", 404, ""},
		{"GET", "/" + strings.Repeat("x", 10_000), 404, ""},
		{"GET", "/v1/chat/completions", 405, "POST"}, {"PUT", "/v1/chat/completions", 405, "POST"}, {"HEAD", "/v1/completions", 405, "POST"}, {"OPTIONS", "/tokenize", 405, "POST"},
		{"POST", "/health", 405, "GET, HEAD"}, {"HEAD", "/health", 200, ""}, {"DELETE", "/v1/models", 405, "GET, HEAD"},
		{"GET", "/health", 200, ""}, {"GET", "/livez", 200, ""}, {"GET", "/live", 200, ""}, {"GET", "/readyz", 200, ""}, {"GET", "/ready", 200, ""}, {"GET", "/version", 200, ""}, {"GET", "/metrics", 200, ""},
	}
	for _, c := range cases {
		got := r.do(c.method, c.path, "")
		if got.status != c.status || got.header.Get("Allow") != c.allow || got.header.Get("x-request-id") == "" || got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %.50s: %d, Allow %q, want %d, %q", c.method, c.path, got.status, got.header.Get("Allow"), c.status, c.allow)
		}
		if got.status >= 400 && c.method != "HEAD" {
			e, _ := object(t, got.body)["error"].(map[string]any)
			for _, key := range []string{"message", "type", "param", "code"} {
				if _, ok := e[key]; !ok || len(e) != 4 {
					t.Errorf("%s %.50s: the error %s lacks %s", c.method, c.path, got.body, key)
				}
			}
		}
	}
	a, b := r.do("GET", "/v1/models", ""), r.do("GET", "/v1/models", "")
	if a.body != b.body || at(object(t, a.body), "data", 1, "id") != "org/alias" || at(object(t, a.body), "data", 0, "max_model_len") != fmt.Sprint(maxContext) {
		t.Errorf("models: %s, then %s", a.body, b.body)
	}
	if a.header.Get("x-request-id") == b.header.Get("x-request-id") {
		t.Error("two requests have one id")
	}
}

// Bodies that are not JSON, are compressed, or too large (T006, T009, T010, T019, T044).
func TestBodies(t *testing.T) {
	r := newRig(t, answering, func(c *Config) { c.Limits.BodyBytes = 1000 })
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(hello))
	z.Close()
	cases := []struct {
		body, kind, encoding string
		status               int
		code                 string
	}{
		{hello, "application/json", "", 200, ""},
		{hello, "application/json; charset=utf-8", "identity", 200, ""},
		{hello, "text/plain", "", 415, "unsupported_media_type"},
		{hello, "", "", 415, "unsupported_media_type"},
		{hello, "application/x-www-form-urlencoded", "", 415, "unsupported_media_type"},
		{zipped.String(), "application/json", "gzip", 415, "unsupported_encoding"},
		{hello + strings.Repeat(" ", 1001-len(hello)), "application/json", "", 413, "request_too_large"},
		{hello + strings.Repeat(" ", 1000-len(hello)), "application/json", "", 200, ""},
		{"{", "application/json", "", 400, "<nil>"},
		{strings.Replace(hello, "tiny", "huge", 1), "application/json", "", 404, "model_not_found"},
		{strings.Replace(hello, "tiny", "", 1), "application/json", "", 200, ""},
		{strings.Replace(hello, "tiny", strings.Repeat("m", 900), 1), "application/json", "", 404, "model_not_found"},
		{strings.Replace(hello, "hi", "raise", 1), "application/json", "", 400, "invalid_value"},
	}
	for _, c := range cases {
		got := r.do("POST", "/v1/chat/completions", c.body, "Content-Type", c.kind, "Content-Encoding", c.encoding)
		if code := at(object(t, got.body), "error", "code"); got.status != c.status || c.code != "" && code != c.code || len(got.body) > 700 {
			t.Errorf("%.60q as %q: %d %s, want %d %s", c.body, c.kind, got.status, got.body, c.status, c.code)
		}
	}
}

// Clients that read no answer before they have sent all of a large body still learn why it was refused.
func TestRefusalsReachWhoSendsAll(t *testing.T) {
	const limit, size = 4 << 20, 7 << 20
	r := newRig(t, answering, func(c *Config) { c.Limits.BodyBytes = limit })
	body := strings.Repeat(" ", size)
	length := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", size, body)
	cases := []struct {
		name, request string
		status        int
	}{
		{"length", rawHead + length, 413},
		{"chunked", rawHead + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", size, body), 413},
		{"compressed", rawHead + "Content-Encoding: gzip\r\n" + length, 415},
		{"no such path", strings.Replace(rawHead, "/chat/", "/chats/", 1) + length, 404},
		{"a foreign host", strings.Replace(rawHead, "localhost", "evil.example", 1) + length, 403},
	}
	for _, c := range cases {
		conn := r.dial("")
		_ = conn.(*net.TCPConn).SetWriteBuffer(16 << 10) // so that the system takes in no more than the server does
		_ = conn.SetDeadline(time.Now().Add(await.Patience))
		if _, err := io.WriteString(conn, c.request); err != nil {
			t.Errorf("%s: sending: %v", c.name, err)
		} else if got := status(t, conn); got != c.status {
			t.Errorf("%s: got %d, want %d", c.name, got, c.status)
		}
	}
}

// dial writes raw bytes and returns the connection.
func (r *rig) dial(raw string) net.Conn {
	r.t.Helper()
	conn, err := r.network.dial(r.t.Context(), strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, raw); err != nil {
		r.t.Fatal(err)
	}
	return conn
}

func status(t testing.TB, conn net.Conn) int {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(await.Patience))
	got, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	return got.StatusCode
}

const rawHead = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

// Bodies that come slowly, not whole, or in pieces (T004, T005, T008).
func TestSlowAndBrokenBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, answering, func(c *Config) { c.Limits.BodyTime = time.Second })
		if got := status(t, r.dial(rawHead+"Content-Length: 100\r\n\r\n{")); got != 408 {
			t.Errorf("a body that does not come: %d, want 408", got)
		}
	})
	r := newRig(t, answering, nil)
	conn := r.dial(rawHead + "Content-Length: 100\r\n\r\n{")
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got := status(t, conn); got != 400 {
		t.Errorf("a body that ends early: %d, want 400", got)
	}
	var chunks strings.Builder
	for _, b := range []byte(hello) {
		fmt.Fprintf(&chunks, "1;x=%s\r\n%c\r\n", strings.Repeat("y", 20), b)
	}
	if got := status(t, r.dial(rawHead+"Transfer-Encoding: chunked\r\n\r\n"+chunks.String()+"0\r\n\r\n")); got != 200 && got != 400 {
		t.Errorf("a body in chunks of one byte: %d, want 200 or 400", got)
	}
	if got := status(t, r.dial(rawHead+"Content-Length: 5\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n")); got < 400 {
		t.Errorf("two lengths: %d, want a refusal", got)
	}
}

// A client that goes away cancels its request, whatever state that is in (T065).
func TestClientsThatLeave(t *testing.T) {
	var answer reply
	r := newRig(t, nil, nil)
	cases := []struct {
		name   string
		reply  reply
		stream bool
		reset  bool
	}{
		{"waiting", reply{text: "x", wait: time.Minute}, true, false},
		{"waiting, reset", reply{text: "x", wait: time.Minute}, true, true},
		{"waiting, whole", reply{text: "x", wait: time.Minute}, false, false},
		{"waiting, whole, reset", reply{text: "x", wait: time.Minute}, false, true},
		{"decoding", reply{text: strings.Repeat("x", 150), hangs: true}, true, false},
		{"whole", reply{text: strings.Repeat("x", 150), hangs: true}, false, false},
	}
	for _, c := range cases {
		answer = c.reply
		r.engine.reply = func(engineRequest) reply { return answer }
		body := strings.Replace(hello, "}]", fmt.Sprintf(`}],"stream":%v`, c.stream), 1)
		conn := r.dial(rawHead + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
		await.Until(t, c.name+": the request runs", func() bool { return r.engine.running.Load() == 1 })
		if c.reset {
			_ = conn.(*net.TCPConn).SetLinger(0)
		}
		conn.Close()
		await.Until(t, c.name+": the request is cancelled", func() bool { return r.engine.running.Load() == 0 })
	}
	await.Until(t, "all cancelled requests are counted", func() bool { return r.metric(`atlasrt_cancelled_total{cause="client_gone"`) == fmt.Sprint(len(cases)) })
}

// A client that stops reading is given up (T064).
func TestClientsThatStopReading(t *testing.T) {
	r := newRig(t, func(engineRequest) reply { return reply{text: strings.Repeat("x", 1<<17)} }, func(c *Config) {
		c.Limits.WriteTime = 50 * time.Millisecond
		c.Model.Generator.MaxContext = 1 << 18
	})
	body := strings.Replace(hello, "}]", `}],"stream":true`, 1)
	conn := r.dial(rawHead + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
	defer conn.Close()
	await.Until(t, "the write deadline is counted", func() bool { return r.metric(`atlasrt_cancelled_total{cause="write_stalled"`) == "1" })
	await.Until(t, "the request is cancelled", func() bool { return r.engine.running.Load() == 0 })
}
