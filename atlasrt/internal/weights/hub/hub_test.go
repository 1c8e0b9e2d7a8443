package hub

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
)

var checkpointFiles = []string{"config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", safetensors.IndexName, "1.safetensors", "2.safetensors"}

func TestFreshDownload(t *testing.T) {
	h := newHub(t)
	cache := t.TempDir()
	seen := map[string]int64{}
	path, err := h.get(cache, model, func(p Progress) {
		if p.Done > p.Total || p.Done < seen[p.File] || p.Model != model {
			t.Errorf("progress %+v after %d", p, seen[p.File])
		}
		seen[p.File] = p.Done
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(cache, "models--acme--tiny", "snapshots", commit); path != want {
		t.Errorf("got %s, want %s", path, want)
	}
	h.checkSnapshot(t, path, checkpointFiles...)
	if seen["1.safetensors"] != int64(len(h.files["1.safetensors"])) {
		t.Errorf("progress ended at %v", seen)
	}
	if h.leaked {
		t.Error("the token was sent to another host")
	}
	ref, err := os.ReadFile(filepath.Join(cache, "models--acme--tiny", "refs", "main"))
	if err != nil || string(ref) != commit {
		t.Errorf("refs/main is %q, %v", ref, err)
	}
	if link, err := os.Readlink(filepath.Join(path, "config.json")); err != nil || !strings.HasPrefix(link, "../../blobs/") {
		t.Errorf("config.json links to %q, %v", link, err)
	}
	if parts, _ := filepath.Glob(filepath.Join(cache, "models--acme--tiny", "*", "*.part")); len(parts) > 0 {
		t.Errorf("left behind: %v", parts)
	}

	// What is complete is used without asking the hub.
	before := len(h.requests)
	if again, err := h.get(cache, model, nil); err != nil || again != path || len(h.requests) != before {
		t.Errorf("again: %s, %v, %d requests more", again, err, len(h.requests)-before)
	}
	// A shard that is gone is fetched alone.
	if err := os.Remove(filepath.Join(path, "2.safetensors")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.get(cache, model, nil); err != nil {
		t.Error(err)
	}
	h.checkSnapshot(t, path, checkpointFiles...)
}

func TestRevisionAndFile(t *testing.T) {
	h := newHub(t)
	cache := t.TempDir()
	if path, err := h.get(cache, model+"@refs/pr/1", nil); err != nil || filepath.Base(path) != commit {
		t.Errorf("a revision: %s, %v", path, err)
	}
	path, err := h.get(cache, model+":tiny.Q4_0.gguf", nil)
	if text, _ := os.ReadFile(path); err != nil || string(text) != "GGUF" {
		t.Errorf("a file: %s, %v", path, err)
	}
	if _, err := h.get(cache, model+":none.gguf", nil); err == nil || !strings.Contains(err.Error(), "tiny.Q4_0.gguf") {
		t.Errorf("a file that is not there: %v, want the names of those that are", err)
	}
	delete(h.files, safetensors.IndexName)
	if _, err := h.get(t.TempDir(), model, nil); err == nil || !strings.Contains(err.Error(), "acme/tiny:tiny.Q4_0.gguf") {
		t.Errorf("a model of GGUF files: %v, want how to name one", err)
	}
	delete(h.files, "tiny.Q4_0.gguf")
	if _, err := h.get(t.TempDir(), model, nil); err == nil || !strings.Contains(err.Error(), "PyTorch") {
		t.Errorf("a model of pickles: %v", err)
	}
	h.files[safetensors.SingleName] = shard(t, "a", []byte("x"))
	if path, err := h.get(t.TempDir(), model, nil); err != nil {
		t.Errorf("a model of one file: %v", err)
	} else if _, err := os.Stat(filepath.Join(path, safetensors.SingleName)); err != nil {
		t.Error(err)
	}
}

// cutting answers with half of what is asked for, and then ends the connection.
func cutting(w http.ResponseWriter, r *http.Request, content []byte) {
	start := 0
	fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &start)
	if start > 0 {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, len(content)-1, len(content)))
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(content)-start))
	if start > 0 {
		w.WriteHeader(http.StatusPartialContent)
	}
	half := (len(content) - start + 1) / 2
	w.Write(content[start : start+half])
	if half < len(content)-start {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func TestResumesAfterCuts(t *testing.T) {
	h := newHub(t)
	h.serve = cutting
	path, err := h.get(t.TempDir(), model, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.checkSnapshot(t, path, checkpointFiles...)
}

func TestResumesInALaterRun(t *testing.T) {
	h := newHub(t)
	cache := t.TempDir()
	refusing := true    // the rest of what was cut
	var ranges []string // that were asked for
	h.serve = func(w http.ResponseWriter, r *http.Request, content []byte) {
		asked := r.Header.Get("Range")
		h.mutex.Lock()
		ranges = append(ranges, asked)
		refuse := refusing && r.URL.Path == "/1.safetensors"
		h.mutex.Unlock()
		switch {
		case refuse && asked == "":
			cutting(w, r, content)
		case refuse:
			w.WriteHeader(http.StatusForbidden)
		default:
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
		}
	}
	if _, err := h.get(cache, model, nil); err == nil || !strings.Contains(err.Error(), "403") {
		t.Fatalf("cut and then refused: %v, want 403", err)
	}
	if parts, _ := filepath.Glob(filepath.Join(cache, "models--acme--tiny", "blobs", "*.part")); len(parts) == 0 {
		t.Error("no .part file was kept")
	}
	h.mutex.Lock()
	refusing, ranges = false, nil
	h.mutex.Unlock()
	path, err := h.get(cache, model, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.checkSnapshot(t, path, checkpointFiles...)
	if !strings.Contains(strings.Join(ranges, " "), "bytes=") {
		t.Errorf("ranges asked for: %q, want a part of one file", ranges)
	}
}

func TestContentThatIsWrong(t *testing.T) {
	cases := []struct {
		name  string
		serve func(w http.ResponseWriter, r *http.Request, content []byte)
		etag  func(name string, content []byte) string
		part  string // what an earlier run left behind of 1.safetensors
		want  string // part of the error; empty: it ends well
	}{
		{"one bit flipped", func(w http.ResponseWriter, r *http.Request, content []byte) {
			other := bytes.Clone(content)
			other[len(other)-1] ^= 1
			w.Write(other)
		}, nil, "", "what arrived is not the file"},
		{"ten times the length", func(w http.ResponseWriter, r *http.Request, content []byte) {
			w.Write(bytes.Repeat(content, 10))
		}, nil, "", "what arrived is not the file"},
		{"no length, no end", func(w http.ResponseWriter, r *http.Request, content []byte) {
			for range 100 {
				w.Write(content)
				w.(http.Flusher).Flush()
			}
		}, nil, "", "longer than it should be"},
		{"half the length", func(w http.ResponseWriter, r *http.Request, content []byte) {
			w.Write(content[:len(content)/2])
		}, nil, "", "cut 20 times"},
		{"nothing", func(w http.ResponseWriter, r *http.Request, content []byte) {}, nil, "", "given up after 5 attempts"},
		{"gzip that was not asked for", func(w http.ResponseWriter, r *http.Request, content []byte) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(content)
		}, nil, "", `encoding "gzip"`},
		{"hash of small files", nil, func(name string, content []byte) string {
			if name == "config.json" {
				return strings.Repeat("0", 40)
			}
			return ""
		}, "", "config.json: what arrived is not the file"},
		{"no hash", nil, func(name string, content []byte) string { return name + `/../../../x` }, "", ""},
		{"rubbish of an earlier run", nil, nil, "rubbish", ""},
		{"rubbish that is too long", nil, nil, strings.Repeat("x", 1<<20), ""},
		{"no ranges", func(w http.ResponseWriter, r *http.Request, content []byte) { w.Write(content) }, nil, "012", ""},
		{"another range", func(w http.ResponseWriter, r *http.Request, content []byte) {
			if r.Header.Get("Range") != "" {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", len(content)-1, len(content)))
				w.WriteHeader(http.StatusPartialContent)
			}
			w.Write(content)
		}, nil, "012", ""},
		{"always busy", func(w http.ResponseWriter, r *http.Request, content []byte) { w.WriteHeader(503) }, nil, "", "503 (given up after 5 attempts"},
	}
	for _, c := range cases {
		h := newHub(t)
		h.serve, h.etag = c.serve, c.etag
		cache := t.TempDir()
		blobs := filepath.Join(cache, "models--acme--tiny", "blobs")
		if c.part != "" {
			os.MkdirAll(blobs, 0o755)
			content := h.files["1.safetensors"]
			if err := os.WriteFile(filepath.Join(blobs, h.etagOf("1.safetensors", content)+".part"), []byte(c.part), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		path, err := h.get(cache, model, nil)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			h.checkSnapshot(t, path, checkpointFiles...)
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
		if _, err := os.Stat(filepath.Join(cache, "models--acme--tiny", "refs", "main")); (err == nil) != (c.want == "") {
			t.Errorf("%s: refs/main: %v", c.name, err)
		}
	}
}

// A file that is replaced on the hub while it is downloaded must not become a mixture.
func TestETagChanges(t *testing.T) {
	h := newHub(t)
	cut := false
	h.serve = func(w http.ResponseWriter, r *http.Request, content []byte) {
		if !cut {
			cut = true
			h.files["1.safetensors"] = shard(t, "a", bytes.Repeat([]byte("new"), 1<<14))
			cutting(w, r, content)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(h.files[strings.TrimPrefix(r.URL.Path, "/")]))
	}
	delete(h.files, "2.safetensors") // one download at a time: the hub's files change under it
	h.files[safetensors.IndexName] = []byte(`{"weight_map":{"a":"1.safetensors"}}`)
	path, err := h.get(t.TempDir(), model, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(path, "1.safetensors")); err != nil || !bytes.Equal(got, h.files["1.safetensors"]) {
		t.Errorf("%d bytes, %v; want the new file, %d bytes", len(got), err, len(h.files["1.safetensors"]))
	}
}

func TestRefusals(t *testing.T) {
	always := func(status int) func(*http.Request) int { return func(*http.Request) int { return status } }
	cases := []struct {
		refuse func(*http.Request) int
		want   string
	}{
		{always(401), "make a new one at"},
		{always(403), "accept the model's terms"},
		{always(404), "no such model, revision or file; check the spelling"},
		{always(418), "answers 418"},
		{always(500), "answers 500 (given up after 5 attempts"},
		{func(r *http.Request) int {
			if strings.HasSuffix(r.URL.Path, "1.safetensors") {
				return 403
			}
			return 0
		}, "1.safetensors: "},
	}
	for _, c := range cases {
		h := newHub(t)
		h.refuse = c.refuse
		cache := t.TempDir()
		if _, err := h.get(cache, model, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	h := newHub(t)
	h.refuse = always(401)
	cache := t.TempDir()
	_, err := Resolve(context.Background(), model, Options{CacheDir: cache, Endpoint: h.URL})
	if err == nil || !strings.Contains(err.Error(), "set HF_TOKEN") || !strings.Contains(err.Error(), "model acme/tiny: ") {
		t.Errorf("without a token: %v, want what to set", err)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "models--*")); len(left) > 0 {
		t.Errorf("left behind of a model that is not there: %v", left)
	}
}

func TestListThatIsABomb(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range maxListBytes>>20 + 1 {
		z.Write(make([]byte, 1<<20))
	}
	z.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(bomb.Bytes())
	}))
	defer server.Close()
	_, err := Resolve(context.Background(), model, Options{CacheDir: t.TempDir(), Endpoint: server.URL})
	if err == nil || !strings.Contains(err.Error(), "list of files is larger") {
		t.Errorf("got %v, want an error about its size", err)
	}
}

func TestListThatIsWrong(t *testing.T) {
	cases := []struct{ text, want string }{
		{`<html>`, "is this a HuggingFace hub?"},
		{`{"sha": "../../../etc"}`, "is no commit"},
		{`{"sha": "` + strings.ToUpper(commit) + `"}`, "is no commit"},
		{`{"sha": "` + commit + `"}`, "no config.json"},
		{`{"sha": "` + commit + `", "siblings": [{"rfilename": "config.json", "size": 9000000000000000000}, {"rfilename": "model.safetensors"}]}`, "free: free some"},
	}
	for _, c := range cases {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, c.text) }))
		_, err := Resolve(context.Background(), model, Options{CacheDir: t.TempDir(), Endpoint: server.URL})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.text, err, c.want)
		}
		server.Close()
	}
}

func TestTwoAtOnce(t *testing.T) {
	h := newHub(t)
	cache := t.TempDir()
	var group sync.WaitGroup
	paths, errs := make([]string, 4), make([]error, 4)
	for i := range paths {
		group.Go(func() { paths[i], errs[i] = h.get(cache, model, nil) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	h.checkSnapshot(t, paths[0], checkpointFiles...)
	lists := 0
	for _, request := range h.requests {
		if strings.Contains(request, "/api/models/") {
			lists++
		}
	}
	if lists != 1 {
		t.Errorf("the model was downloaded %d times, want once", lists)
	}
}
