package server

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/store"
	"github.com/atlas-inference/atlas/internal/await"
)

const inBackground = `,"background":true`

// A response in the background is there at once, and is done later.
func TestBackground(t *testing.T) {
	var answer reply
	r := talking(t, func(string) reply { return answer }, nil)
	cases := []struct {
		reply        reply
		status, text string
	}{
		{reply{text: "done", wait: 20 * time.Millisecond}, "completed", "done"},
		{reply{text: "do", err: errors.New("/secret")}, "failed", "do"},
	}
	for _, c := range cases {
		answer = c.reply
		got := r.post("/v1/responses", ask(`"u"`, inBackground))
		d := object(t, got.body)
		if got.status != 200 || at(d, "status") != "queued" || at(d, "background") != "true" || at(d, "output") != "[]" {
			t.Fatalf("%d %s", got.status, got.body)
		}
		end := settled(t, r, at(d, "id"))
		if at(end, "status") != c.status || at(end, "output", 0, "content", 0, "text") != c.text || (at(end, "error") == "<nil>") != (c.status == "completed") || strings.Contains(fmt.Sprint(end), "secret") {
			t.Errorf("got %v, want %s with %q", end, c.status, c.text)
		}
		if next := r.post("/v1/responses", ask(`"v"`, fmt.Sprintf(`,"background":true,"previous_response_id":%q`, at(d, "id")))); next.status != 200 {
			t.Errorf("going on from it: %d %s", next.status, next.body)
		} else {
			settled(t, r, at(object(t, next.body), "id"))
		}
	}
	answer = reply{refuse: &engine.QueueFull{RequestLimit: 8, TokenLimit: 5000}}
	if got := r.post("/v1/responses", ask(`"u"`, inBackground)); got.status != 429 {
		t.Errorf("a full queue: %d %s", got.status, got.body)
	}
}

// The dump has what the client is told at once, and the answer when it is there.
func TestDumpOfBackground(t *testing.T) {
	d, path := openDump(t)
	r := talking(t, answers("later"), func(c *Config) { c.Dump = d })
	made := object(t, r.post("/v1/responses", ask(`"u"`, inBackground)).body)
	settled(t, r, at(made, "id"))
	r.server.jobs.end()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	lines := dumped(t, path)[1:]
	if len(lines) != 2 || at(lines[0], "answer", "status") != "queued" || at(lines[1], "answer", "output", 0, "content", 0, "text") != "later" || at(lines[1], "request", "input") != "u" || at(lines[0], "id") != at(lines[1], "id") {
		t.Errorf("got %v", lines)
	}
}

// A response in the background ends when it is cancelled or deleted, and nobody goes on from it before.
func TestBackgroundCancel(t *testing.T) {
	r := talking(t, func(string) reply { return reply{text: "never done", wait: time.Hour} }, nil)
	id := at(object(t, r.post("/v1/responses", ask(`"u"`, inBackground)).body), "id")
	if got := r.post("/v1/responses", ask(`"v"`, fmt.Sprintf(`,"previous_response_id":%q`, id))); got.status != 400 || !strings.Contains(got.body, "still being made") {
		t.Errorf("going on: %d %s", got.status, got.body)
	}
	for range 2 { // the second changes nothing
		got := r.do(http.MethodPost, "/v1/responses/"+id+"/cancel", "")
		if d := object(t, got.body); got.status != 200 || at(d, "status") != "cancelled" || at(d, "id") != id {
			t.Errorf("cancel: %d %s", got.status, got.body)
		}
	}
	id = at(object(t, r.post("/v1/responses", ask(`"u"`, inBackground)).body), "id")
	if got := r.do(http.MethodDelete, "/v1/responses/"+id, ""); got.status != 200 {
		t.Errorf("delete: %d %s", got.status, got.body)
	}
	if got := r.do(http.MethodGet, "/v1/responses/"+id, ""); got.status != 404 {
		t.Errorf("deleted: %d %s", got.status, got.body)
	}
	await.Until(t, "the engine works no more on what was deleted", func() bool { return r.engine.running.Load() == 0 })
}

// Nothing runs in the background once the server has shut down: the rig looks for goroutines that are left.
func TestBackgroundEndsWithTheServer(t *testing.T) {
	var server *Server
	id := ""
	t.Run("serves", func(t *testing.T) {
		r := talking(t, func(string) reply { return reply{text: "never done", wait: time.Hour} }, func(c *Config) { c.Limits.Drain = 20 * time.Millisecond })
		server, id = r.server, at(object(t, r.post("/v1/responses", ask(`"u"`, inBackground)).body), "id")
	})
	if kept, ok := server.store.Get(store.Owner{}, id, time.Now()); !ok || !kept.Done || !strings.Contains(string(kept.Body), `"status":"failed"`) {
		t.Errorf("%s is kept as %s", id, kept.Body)
	}
}

// The end of the jobs waits for those that run, and lets none begin.
func TestJobs(t *testing.T) {
	j := newJobs()
	stopped, over := make(chan error, 1), false
	work := func() {
		<-j.ctx.Done()
		over = true
	}
	if !j.start(job{id: "a"}, func(cause error) { stopped <- cause }, work) {
		t.Fatal("a job is not taken")
	}
	if j.cancel(job{id: "b"}) != nil || j.cancel(job{owner: store.Owner{1}, id: "a"}) != nil || j.cancel(job{id: "a"}) == nil || !errors.Is(<-stopped, errCancelled) {
		t.Error("a job is cancelled by another name, or not by its own")
	}
	j.stop(errShutdown)
	if j.end(); !over || j.cancel(job{id: "a"}) != nil {
		t.Error("a job goes on")
	}
	if j.start(job{id: "c"}, nil, func() {}) {
		t.Error("a job begins after the end")
	}
}
