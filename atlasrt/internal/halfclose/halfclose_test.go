package halfclose

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/internal/await"
)

var errClosing = errors.New("the server closes")

// site is a server whose handler a test writes.
type site struct {
	t       *testing.T
	address string
	close   context.CancelCauseFunc
}

func newSite(t *testing.T, handler http.HandlerFunc) *site {
	t.Helper()
	before := runtime.NumGoroutine()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base, cancel := context.WithCancelCause(context.Background())
	h := &http.Server{Handler: Handler(handler), ConnContext: ConnContext, BaseContext: func(net.Listener) context.Context { return base }}
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(Listen(inner)) }()
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), await.Patience)
		defer stop()
		if err := h.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		<-ended
		cancel(nil)
		await.Goroutines(t, before)
	})
	return &site{t, inner.Addr().String(), cancel}
}

// send opens a connection and writes to it.
func (s *site) send(text string) *net.TCPConn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(await.Patience))
	if _, err := io.WriteString(c, text); err != nil {
		s.t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

func (s *site) halfClose(c *net.TCPConn) {
	s.t.Helper()
	if err := c.CloseWrite(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) readAll(c net.Conn) string {
	s.t.Helper()
	text, err := io.ReadAll(c)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

const (
	get  = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	old  = "GET / HTTP/1.0\r\n\r\n"
	post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"
)

// A client that stops sending gets every answer whole, as if it had not.
func TestAnswersAfterTheEnd(t *testing.T) {
	slow := func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, "cut", http.StatusBadRequest)
			return
		}
		select { // long enough for bytes to be sent ahead
		case <-r.Context().Done():
			return
		case <-time.After(120 * time.Millisecond):
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "whole")
	}
	cases := []struct {
		name, request string
		status        []int // of the answers
	}{
		{"no body", get, []int{200}},
		{"HTTP/1.0", old, []int{200}},
		{"with a body", post + "hello", []int{200}},
		{"Connection: close", strings.Replace(get, "Host", "Connection: close\r\nHost", 1), []int{200}},
		{"chunked", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", []int{200}},
		{"Expect: 100-continue", strings.Replace(post, "Host", "Expect: 100-continue\r\nHost", 1) + "hello", []int{100, 200}},
		{"two pipelined", get + post + "hello", []int{200, 200}},
		{"a body that ends early", post + "hell", []int{400}},
		{"a chunk that ends early", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", []int{400}},
		{"headers that end early", "GET / HTTP/1.1\r\nHost", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, slow)
			conn := s.send(c.request)
			s.halfClose(conn)
			r := bufio.NewReader(conn)
			for i, want := range c.status {
				got, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatalf("answer %d to %q: %v, want status %d", i, c.request, err, want)
				}
				body, err := io.ReadAll(got.Body)
				if err != nil || got.StatusCode != want || want == 200 && string(body) != "whole" {
					t.Errorf("answer %d to %q: %d %q %v, want %d", i, c.request, got.StatusCode, body, err, want)
				}
			}
			if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 && c.status != nil {
				t.Errorf("after the answers to %q: %q %v", c.request, rest, err)
			}
		})
	}
}

// No byte of an answer differs from one that a client gets which keeps its side open.
func TestAnswersAreTheSame(t *testing.T) {
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(120 * time.Millisecond)
		w.Header()["Date"] = nil
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, strings.Repeat("x", 10_000))
	})
	request := strings.Replace(get, "Host", "Connection: close\r\nHost", 1)
	open, half := s.send(request), s.send(request)
	s.halfClose(half)
	if want, got := s.readAll(open), s.readAll(half); got != want || !strings.HasPrefix(got, "HTTP/1.1 418 ") {
		t.Errorf("got  %.200q\nwant %.200q", got, want)
	}
}

// A stream goes on to its end, with what the handler sends when it is asked to.
func TestStreamAfterTheEnd(t *testing.T) {
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_, _ = io.WriteString(w, "begin\n")
		_ = control.Flush()
		for range 3 {
			select {
			case <-r.Context().Done():
				return
			case <-Probes(r.Context()):
				_, _ = io.WriteString(w, "probe\n")
				_ = control.Flush()
			}
		}
		_, _ = io.WriteString(w, "end\n")
	})
	conn := s.send(old)
	s.halfClose(conn)
	_, body, _ := strings.Cut(s.readAll(conn), "\r\n\r\n")
	if want := "begin\nprobe\nprobe\nprobe\nend\n"; body != want {
		t.Errorf("got %q, want %q", body, want)
	}
}

// A client that is gone ends the request, however it went.
func TestGone(t *testing.T) {
	leave := map[string]func(*site, *net.TCPConn){
		"closes": func(_ *site, c *net.TCPConn) { c.Close() },
		"resets": func(_ *site, c *net.TCPConn) { _ = c.SetLinger(0); c.Close() },
		"stops sending, then closes": func(s *site, c *net.TCPConn) {
			s.halfClose(c)
			time.Sleep(100 * time.Millisecond)
			c.Close()
		},
		"stops sending, then resets": func(s *site, c *net.TCPConn) {
			s.halfClose(c)
			time.Sleep(100 * time.Millisecond)
			_ = c.SetLinger(0)
			c.Close()
		},
	}
	for name, leave := range leave {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %v", name, stream), func(t *testing.T) {
				running, cause := make(chan bool, 1), make(chan error, 1)
				s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.ReadAll(r.Body)
					running <- true
					if stream {
						_ = http.NewResponseController(w).Flush()
					}
					for {
						select {
						case <-r.Context().Done():
							cause <- context.Cause(r.Context())
							return
						case <-Probes(r.Context()):
							if stream {
								_, _ = io.WriteString(w, ": \n\n")
								_ = http.NewResponseController(w).Flush()
							}
						case <-time.After(await.Patience):
							cause <- errors.New("nobody noticed")
							return
						}
					}
				})
				conn := s.send(post + "hello")
				<-running
				leave(s, conn)
				if err := <-cause; !errors.Is(err, ErrGone) {
					t.Errorf("the cause is %v, want %v", err, ErrGone)
				}
			})
		}
	}
}

// The end of the server ends requests as before, with its own cause, whether their clients still send or not.
func TestServerEnds(t *testing.T) {
	for _, half := range []bool{false, true} {
		running, cause := make(chan bool, 1), make(chan error, 1)
		s := newSite(t, func(_ http.ResponseWriter, r *http.Request) {
			if half {
				<-Probes(r.Context())
			}
			running <- true
			<-r.Context().Done()
			cause <- context.Cause(r.Context())
		})
		conn := s.send(get)
		if half {
			s.halfClose(conn)
		}
		<-running
		s.close(errClosing)
		if err := <-cause; !errors.Is(err, errClosing) {
			t.Errorf("half closed %v: the cause is %v, want %v", half, err, errClosing)
		}
	}
}

// Without Listen the context stays as it was.
func TestOtherConnections(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "kept")
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Context() != ctx || Probes(r.Context()) != nil {
			t.Error("the context changed")
		}
	})).ServeHTTP(nil, r)
}
