package server

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
)

// dumped are the lines of a file.
func dumped(t *testing.T, path string) (lines []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(text)) {
		lines = append(lines, object(t, l))
	}
	return lines
}

// openDump opens a dump in a file that was there and that others could read.
func openDump(t *testing.T) (*Dump, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dump.jsonl")
	if err := os.WriteFile(path, []byte(`{"before":1}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDump(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d, path
}

// What is asked and answered is in the dump, as JSON where it is JSON, and nothing else is.
func TestDump(t *testing.T) {
	d, path := openDump(t)
	r := newRig(t, func(engineRequest) reply { return reply{text: "<é>"} }, func(c *Config) { c.Dump, c.Keys = d, []string{"secret-key"} })
	const ask = `{"messages":[{"role":"user","content":"hi <you>"}],` + "\n" + `"max_tokens":9`
	send := func(path, body, key string) string {
		return r.do("POST", path, body, "Authorization", "Bearer "+key).header.Get(requestID)
	}
	ids := []string{
		send("/v1/chat/completions", ask+`}`, "secret-key"), send("/v1/completions", `{"prompt":"a","stream":true}`, "secret-key"),
		send("/v1/chat/completions", "no \xff JSON", "secret-key"), send("/v1/chat/completions", ``, "secret-key"),
	}
	send("/v1/chat/completions", ask+`}`, "another-key")
	send("/v1/chat/completions/render", ask+`}`, "secret-key")
	send("/tokenize", `{"prompt":"a"}`, "secret-key")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	send("/v1/completions", `{"prompt":"late"}`, "secret-key")
	lines := dumped(t, path)
	if len(lines) != 1+len(ids) {
		t.Fatalf("%d lines: %v", len(lines), lines)
	}
	cases := []struct {
		path []any
		want []string // of each line
	}{
		{[]any{"id"}, ids},
		{[]any{"route"}, []string{"/v1/chat/completions", "/v1/completions", "/v1/chat/completions", "/v1/chat/completions"}},
		{[]any{"model"}, []string{"tiny", "tiny", "absent", "absent"}},
		{[]any{"status"}, []string{"200", "200", "400", "415"}},
		{[]any{"request", "max_tokens"}, []string{"9", "absent", "absent", "absent"}},
		{[]any{"request", "messages", 0, "content"}, []string{"hi <you>", "absent", "absent", "absent"}},
		{[]any{"answer", "choices", 0, "message", "content"}, []string{"<é>", "absent", "absent", "absent"}},
		{[]any{"answer", 0, "choices", 0, "text"}, []string{"absent", "<", "absent", "absent"}},
		{[]any{"answer", 1, "choices", 0, "text"}, []string{"absent", "é", "absent", "absent"}},
		{[]any{"answer", 4}, []string{"absent", "[DONE]", "absent", "absent"}},
		{[]any{"answer", "error", "type"}, []string{"absent", "absent", "invalid_request_error", "invalid_request_error"}},
	}
	for i, line := range lines[1:] {
		for _, c := range cases {
			if got := at(line, c.path...); got != c.want[i] {
				t.Errorf("line %d, %v: got %s, want %s\n%v", i, c.path, got, c.want[i], line)
			}
		}
		if at(line, "time") == "absent" || at(line, "ms") == "absent" || at(line, "cut") != "absent" {
			t.Errorf("line %d: %v", i, line)
		}
	}
	if got := at(lines[3], "request"); got != "no \ufffd JSON" || at(lines[4], "request") != "<nil>" {
		t.Errorf("got %q and %v", got, lines[4])
	}
	text, err := os.ReadFile(path)
	info, failed := os.Stat(path)
	if err != nil || failed != nil || info.Mode().Perm() != 0o600 || strings.Contains(string(text), "-key") || strings.Contains(string(text), "late") {
		t.Errorf("%v, %v: %v\n%s", err, failed, info.Mode(), text)
	}
}

// Long bodies and answers are cut, and the line says so.
func TestDumpCuts(t *testing.T) {
	d, path := openDump(t)
	long := fmt.Sprintf(`{"prompt":%q}`, strings.Repeat("x", dumpedBytes))
	r := d.begin()
	r.request([]byte(long))
	r.sent([]byte("data: 1\n\ndata: "))
	r.sent([]byte(strings.Repeat("2", dumpedBytes)))
	r.stream = true
	d.held.Add(r.size())
	d.write(r)
	line := dumped(t, path)[1]
	if at(line, "cut") != "true" || at(line, "answer") != "[1]" || at(line, "request") != long[:dumpedBytes] {
		t.Errorf("cut %s, answer %s, %d bytes of the request", at(line, "cut"), at(line, "answer"), len(at(line, "request")))
	}
}

// What cannot wait is dropped at once, and counted.
func TestDumpDrops(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dump")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	d := &Dump{file: file, log: slog.New(slog.DiscardHandler), queue: make(chan *record, 2), done: make(chan struct{})} // nobody writes yet
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	put := func(size int) {
		r := d.begin()
		r.request(make([]byte, size))
		d.end(c, &entry{record: r})
	}
	put(1)
	d.held.Add(dumpHeldBytes - 1) // of others
	put(1)
	d.held.Add(1 - dumpHeldBytes)
	for range 4 {
		put(1)
	}
	stopped := make(chan struct{})
	close(stopped)
	d.stop = func() {}
	d.run(stopped)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	lines := dumped(t, path)
	if len(lines) != 3 || at(lines[0], "dropped") != "4" || at(lines[1], "status") != "200" || at(lines[2], "status") != "200" || d.held.Load() != 0 {
		t.Errorf("%d bytes are held, %v", d.held.Load(), lines)
	}
}

// A file that cannot be written is said so, and harms no request.
func TestDumpFails(t *testing.T) {
	if _, err := OpenDump(t.TempDir(), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a directory is a dump")
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here")
	}
	d, err := OpenDump("/dev/full", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, answering, func(c *Config) { c.Dump = d })
	for range 2 {
		if got := r.post("/v1/completions", `{"prompt":"a"}`); got.status != 200 {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if err := d.Close(); err == nil {
		t.Error("nothing went wrong")
	}
}
