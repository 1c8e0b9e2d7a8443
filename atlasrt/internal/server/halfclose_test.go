package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/internal/await"
)

// asking is a request as it goes over the wire.
func asking(body string) string {
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", rawHead, len(body), body)
}

// streamed makes hello ask for a stream.
var streamed = strings.Replace(hello, "}]", `}],"stream":true`, 1)

// A client that stops sending behind its request gets its whole answer, in every state that the request may be in.
func TestHalfClosedClients(t *testing.T) {
	cases := []struct {
		name    string
		reply   reply
		request string
		answers int
		want    string // that each answer holds
	}{
		{"whole", reply{text: "abc"}, asking(hello), 1, `"content":"abc"`},
		{"whole, slow", reply{text: "abcdefghij", step: 20 * time.Millisecond}, asking(hello), 1, `"content":"abcdefghij"`},
		{"whole, waiting", reply{text: "abc", wait: 300 * time.Millisecond}, asking(hello), 1, `"content":"abc"`},
		{"stream", reply{text: "abc"}, asking(streamed), 1, "data: [DONE]"},
		{"stream, slow", reply{text: "abcdefghij", step: 20 * time.Millisecond}, asking(streamed), 1, "data: [DONE]"},
		{"stream, waiting", reply{text: "abc", wait: 300 * time.Millisecond}, asking(streamed), 1, "data: [DONE]"},
		{"HTTP/1.0", reply{text: "abc", wait: 100 * time.Millisecond}, strings.Replace(asking(hello), "HTTP/1.1", "HTTP/1.0", 1), 1, `"content":"abc"`},
		{"two at once", reply{text: "abc", wait: 100 * time.Millisecond}, asking(hello) + asking(hello), 2, `"content":"abc"`},
		{"a refusal", reply{}, asking(strings.Replace(hello, "tiny", "huge", 1)), 1, "model_not_found"},
		{"an engine that fails", reply{text: "abc", err: io.ErrUnexpectedEOF, step: 20 * time.Millisecond}, asking(hello), 1, "engine_error"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, func(engineRequest) reply { return c.reply }, nil)
			conn := r.dial(c.request)
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(await.Patience))
			reader := bufio.NewReader(conn)
			for i := range c.answers {
				got, err := http.ReadResponse(reader, nil)
				if err != nil {
					t.Fatalf("answer %d: %v", i, err)
				}
				body, err := io.ReadAll(got.Body)
				if err != nil || !strings.Contains(string(body), c.want) {
					t.Errorf("answer %d: %d %s %v, want %s", i, got.StatusCode, body, err, c.want)
				}
			}
			if got := r.metric(`atlasrt_cancelled_total{cause="client_gone"`); got != "0" {
				t.Errorf("%s clients are counted as gone", got)
			}
		})
	}
}

// While a stream waits its client is written to, though no event is due for long.
func TestHalfClosedStreamIsProbed(t *testing.T) {
	r := newRig(t, func(engineRequest) reply { return reply{text: "abc", wait: time.Minute} }, nil)
	conn := r.dial(asking(streamed))
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(await.Patience))
	lines := bufio.NewScanner(conn)
	for pings := 0; pings < 3; {
		if !lines.Scan() {
			t.Fatalf("the stream ended after %d comments: %v", pings, lines.Err())
		}
		if strings.HasPrefix(lines.Text(), ": ") {
			pings++
		}
	}
	conn.Close()
	await.Until(t, "the request is cancelled", func() bool { return r.engine.running.Load() == 0 })
	await.Until(t, "the client is counted as gone", func() bool { return r.metric(`atlasrt_cancelled_total{cause="client_gone"`) == "1" })
}
