package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
	"github.com/atlas-inference/atlas/internal/await"
)

func limited(t *testing.T, change func(*Limits)) *admission {
	t.Helper()
	l := Limits{BodyBytes: 1 << 20}
	if change != nil {
		change(&l)
	}
	l, err := l.complete()
	if err != nil {
		t.Fatal(err)
	}
	a := newAdmission(l)
	a.spare.free = func() {}
	return a
}

// However many bodies come and go, those in flight never have more bytes than may be, and work is done on few.
func TestBytesInFlightAreBounded(t *testing.T) {
	a := limited(t, func(l *Limits) { l.InFlightBytes = 3 << 20; l.WaitTime = time.Minute })
	var inside, working atomic.Int64
	var group sync.WaitGroup
	for i := range 40 {
		random := rand.New(rand.NewPCG(uint64(i), 4))
		group.Go(func() {
			for range 20 {
				v := &visit{admission: a}
				size := smallBody + 1 + random.Int64N(1<<20-smallBody)
				if err := v.reserve(context.Background(), size); err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(size); n > 3<<20 {
					t.Errorf("%d bytes in flight, want at most %d", n, 3<<20)
				}
				if random.IntN(4) > 0 { // else it leaves half read
					if err := v.begin(context.Background(), int(size)); err != nil {
						t.Error(err)
					}
					if n, most := working.Add(1), int64(workers()); n > most {
						t.Errorf("%d large bodies are worked on, want at most %d", n, most)
					}
					working.Add(-1)
				}
				inside.Add(-size)
				v.leave()
				v.leave()
			}
		})
	}
	group.Wait()
	if !a.large.TryAcquire(3<<20) || !a.work.TryAcquire(int64(workers())) {
		t.Error("not everything was given back")
	}
}

// Small bodies go on while large ones fill all there is; waiting ends with the request, or after a while.
func TestWaitingForRoom(t *testing.T) {
	a := limited(t, func(l *Limits) { l.WaitTime = 20 * time.Millisecond })
	full := &visit{admission: a}
	if err := full.reserve(context.Background(), 1<<20); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		v := &visit{admission: a}
		if err := v.begin(context.Background(), smallBody); err != nil {
			t.Fatalf("a small body beside large ones: %v", err)
		}
		v.leave()
	}
	v := &visit{admission: a}
	if err := v.reserve(context.Background(), smallBody+1); !errors.Is(err, errFull) {
		t.Errorf("no room for a while: %v, want %v", err, errFull)
	}
	cause := errors.New("the client left")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	if err := v.reserve(ctx, smallBody+1); !errors.Is(err, cause) {
		t.Errorf("a request that ends while it waits: %v, want %v", err, cause)
	}
	full.leave()
	if err := v.reserve(context.Background(), 1<<20); err != nil {
		t.Errorf("once there is room: %v", err)
	}
	v.leave()
	if e := problem(errFull, openai.Chat{}); e.Kind != api.KindOverload || e.RetryAfter == 0 || e.Hit != api.LimitBytes {
		t.Errorf("clients are told %+v", e)
	}
}

// Memory is given back after large bodies, once all have left, and not after small ones.
func TestMemoryIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		freed := make(chan struct{}, 10)
		s := &spare{pause: time.Millisecond, free: func() { freed <- struct{}{} }}
		s.enter()
		s.leave(spareBytes - 1)
		s.enter()
		s.enter()
		s.leave(1) // now it is enough, but one is inside
		select {
		case <-freed:
			t.Error("memory was given back while a large body was in flight, or for few bytes")
		case <-time.After(20 * s.pause):
		}
		s.leave(1)
		<-freed
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.left != 0 || s.armed || s.inside != 0 {
			t.Errorf("after that: %d bytes left, armed %v, %d inside, want nothing", s.left, s.armed, s.inside)
		}
	})
}

// Large bodies get the answers that small ones get, with and without a length.
func TestLargeBodies(t *testing.T) {
	r := newRig(t, answering, func(c *Config) { c.Limits.BodyBytes = 1 << 20 })
	blank := func(size int) string { return hello + strings.Repeat(" ", size-len(hello)) }
	cases := []struct {
		name   string
		size   int
		status int
	}{
		{"small", smallBody - 1, 200}, {"the last small one", smallBody, 200}, {"the first large one", smallBody + 1, 200},
		{"large", 700_000, 200}, {"the largest", 1 << 20, 200}, {"too large", 1<<20 + 1, 413},
	}
	for _, c := range cases {
		for _, chunked := range []bool{false, true} {
			var body io.Reader = strings.NewReader(blank(c.size))
			if chunked {
				body = struct{ io.Reader }{body} // whose length nobody knows
			}
			got, err := r.client.Post(r.url+"/v1/chat/completions", "application/json", body)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(got.Body)
			got.Body.Close()
			if got.StatusCode != c.status {
				t.Errorf("%s, chunked %v: %d %s, want %d", c.name, chunked, got.StatusCode, text, c.status)
			}
		}
	}
	nothingInside(t, r)
}

// nothingInside waits until every body has left.
func nothingInside(t *testing.T, r *rig) {
	t.Helper()
	a := r.server.admission
	ctx, cancel := context.WithTimeout(context.Background(), await.Patience)
	defer cancel()
	for _, h := range []hold{{a.large, r.server.limits.InFlightBytes}, {a.small, smallShare}, {a.work, int64(workers())}} {
		if h.share.Acquire(ctx, h.n) != nil {
			t.Fatal("the room of a body was never given back")
		}
		h.share.Release(h.n)
	}
}

// Senders that leave give their room back, whether the body is read, waits for room, or is half there.
func TestSendersThatLeave(t *testing.T) {
	r := newRig(t, answering, func(c *Config) { c.Limits.BodyBytes = 1 << 20; c.Limits.WaitTime = time.Minute })
	address := strings.TrimPrefix(r.url, "http://")
	for i := range 20 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		size := []int{900_000, 30_000}[i%2]
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", size)
		_, _ = c.Write(bytes.Repeat([]byte(" "), size*(i%3)/2))
		c.Close()
	}
	nothingInside(t, r)
}

// A server whose room is taken says so.
func TestNoRoom(t *testing.T) {
	r := newRig(t, answering, func(c *Config) { c.Limits.BodyBytes = 1 << 20; c.Limits.WaitTime = time.Millisecond })
	full := &visit{admission: r.server.admission}
	if err := full.reserve(context.Background(), 1<<20); err != nil {
		t.Fatal(err)
	}
	if got := r.post("/v1/chat/completions", hello); got.status != 200 {
		t.Errorf("a small body: %d %s, want 200", got.status, got.body)
	}
	got := r.post("/v1/chat/completions", hello+strings.Repeat(" ", smallBody))
	if got.status != 503 || got.header.Get("Retry-After") != "2" || at(object(t, got.body), "error", "code") != "server_overloaded" {
		t.Errorf("a large body: %d, Retry-After %q, %s, want 503", got.status, got.header.Get("Retry-After"), got.body)
	}
	full.leave()
	if got := r.post("/v1/chat/completions", hello+strings.Repeat(" ", smallBody)); got.status != 200 {
		t.Errorf("once there is room: %d %s, want 200", got.status, got.body)
	}
	if got := r.metric(`atlasrt_limits_hit_total{engine="0",limit="bytes_in_flight"`); got != "1" {
		t.Errorf("limits hit: %s, want 1", got)
	}
}

// Prompts that cannot fit are refused on every route, in the OpenAI form; counting goes further than the context.
func TestTooManyTokens(t *testing.T) {
	r := newRig(t, answering, func(c *Config) { c.Limits.CountTokens = 3000 })
	text := func(n int) string { return strings.Repeat("x", n) }
	chat := `{"model":"tiny","messages":[{"role":"user","content":"%s"}]}`
	cases := []struct {
		path, body    string
		status        int
		code, message string
	}{
		{"/v1/completions", fmt.Sprintf(`{"model":"tiny","prompt":"%s"}`, text(maxContext-1)), 200, "", ""},
		{"/v1/completions", fmt.Sprintf(`{"model":"tiny","prompt":"%s"}`, text(maxContext+1)), 400, "context_length_exceeded", "has 201 tokens"},
		{"/v1/completions", fmt.Sprintf(`{"model":"tiny","prompt":"%s"}`, text(1_000_000)), 400, "context_length_exceeded", "maximum context length is 200 tokens"},
		{"/v1/completions", fmt.Sprintf(`{"model":"tiny","prompt":["a","%s","b"]}`, text(1_000_000)), 400, "context_length_exceeded", "at least"},
		{"/v1/chat/completions", fmt.Sprintf(chat, text(1_000_000)), 400, "context_length_exceeded", "at least"},
		{"/tokenize", fmt.Sprintf(`{"prompt":"%s"}`, text(3000)), 200, "", ""},
		{"/tokenize", fmt.Sprintf(`{"prompt":"%s"}`, text(3001)), 400, "invalid_value", "counts up to 3000"},
		{"/tokenize", fmt.Sprintf(`{"prompt":"%s"}`, text(1_000_000)), 400, "invalid_value", "counts up to 3000"},
		{"/tokenize", fmt.Sprintf(chat, text(2998)), 200, "", ""},
		{"/tokenize", fmt.Sprintf(chat, text(1_000_000)), 400, "invalid_value", "messages has at least"},
		{"/detokenize", `{"tokens":[1` + strings.Repeat(",1", 2999) + `]}`, 200, "", ""},
		{"/detokenize", `{"tokens":[1` + strings.Repeat(",1", 3000) + `]}`, 400, "invalid_value", "3001 entries"},
	}
	for _, c := range cases {
		got := r.post(c.path, c.body)
		if got.status != c.status || c.status == 400 && (at(object(t, got.body), "error", "code") != c.code || !strings.Contains(got.body, c.message) || at(object(t, got.body), "error", "param") == "<nil>") {
			t.Errorf("%s %.60s (%d bytes): %d %.300s, want %d, %s, %q", c.path, c.body, len(c.body), got.status, got.body, c.status, c.code, c.message)
		}
	}
	nothingInside(t, r)
}
