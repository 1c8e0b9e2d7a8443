package hub

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"fmt"
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
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/internal/await"
)

const (
	commit = "0123456789abcdef0123456789abcdef01234567"
	model  = "acme/tiny"
	token  = "hf_secret"
)

// fakeHub is a hub with one model. Weights are redirected to a store on another host, as the real hub does.
type fakeHub struct {
	*httptest.Server
	store *httptest.Server
	files map[string][]byte

	mutex    sync.Mutex
	requests []string                                               // "GET /path"
	leaked   bool                                                   // the token reached the store
	refuse   func(r *http.Request) int                              // status of a refusal, 0: none
	serve    func(w http.ResponseWriter, r *http.Request, f []byte) // how the store answers; nil: well
	etag     func(name string, f []byte) string                     // nil: the true one
}

func newHub(t *testing.T) *fakeHub {
	t.Helper()
	weights := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	h := &fakeHub{files: map[string][]byte{
		"config.json":            []byte(`{"hidden_size": 8}`),
		"tokenizer.json":         []byte(`{}`),
		"tokenizer_config.json":  []byte(`{}`), // the same content, so the same blob
		"chat_template.jinja":    []byte(`{{ x }}`),
		"README.md":              []byte("not needed"),
		"pytorch_model.bin":      []byte("not needed"),
		"tiny.Q4_0.gguf":         []byte("GGUF"),
		"onnx/model.safetensors": []byte("in a subfolder"),
		"1.safetensors":          shard(t, "a", weights),
		"2.safetensors":          shard(t, "b", weights[:1000]),
		"other.safetensors":      []byte("not needed"),
		safetensors.IndexName:    []byte(`{"weight_map":{"a":"1.safetensors","b":"2.safetensors"}}`),
	}}
	h.Server = httptest.NewServer(http.HandlerFunc(h.answer))
	h.store = httptest.NewServer(http.HandlerFunc(h.answerStore))
	t.Cleanup(h.Close)
	t.Cleanup(h.store.Close)
	return h
}

func shard(t *testing.T, name string, data []byte) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x")
	x := tensor.Tensor{Info: tensor.Info{Name: name, Type: tensor.U8, Shape: []int64{int64(len(data))}}, Data: data}
	if err := safetensors.Write(path, x); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (h *fakeHub) answer(w http.ResponseWriter, r *http.Request) {
	h.mutex.Lock()
	h.requests = append(h.requests, r.Method+" "+r.URL.Path)
	h.mutex.Unlock()
	if h.refuse != nil {
		if status := h.refuse(r); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	if rest, ok := strings.CutPrefix(r.URL.Path, "/api/models/"+model+"/revision/"); ok && (rest == "main" || rest == "refs/pr/1") {
		type sibling struct {
			Name string `json:"rfilename"`
			Size int    `json:"size"`
		}
		list := struct {
			Commit string    `json:"sha"`
			Files  []sibling `json:"siblings"`
		}{Commit: commit, Files: []sibling{{"../../evil.json", 3}, {"a\u0000b", 3}}}
		for name, content := range h.files {
			list.Files = append(list.Files, sibling{name, len(content)})
		}
		json.NewEncoder(w).Encode(list)
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/"+model+"/resolve/"+commit+"/")
	content, found := h.files[name]
	if !ok || !found {
		http.NotFound(w, r)
		return
	}
	etag := h.etagOf(name, content)
	if strings.HasSuffix(name, ".safetensors") || strings.HasSuffix(name, ".gguf") {
		w.Header().Set("X-Linked-Etag", strconv.Quote(etag))
		w.Header().Set("X-Linked-Size", strconv.Itoa(len(content)))
		http.Redirect(w, r, h.store.URL+"/"+name+"?signature=s", http.StatusFound)
		return
	}
	w.Header().Set("ETag", `W/"`+etag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

func (h *fakeHub) etagOf(name string, content []byte) string {
	if h.etag != nil {
		if etag := h.etag(name, content); etag != "" {
			return etag
		}
	}
	if strings.HasSuffix(name, ".safetensors") {
		return fmt.Sprintf("%x", sha256.Sum256(content))
	}
	return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content)))
}

func (h *fakeHub) answerStore(w http.ResponseWriter, r *http.Request) {
	h.mutex.Lock()
	h.leaked = h.leaked || r.Header.Get("Authorization") != ""
	h.mutex.Unlock()
	content := h.files[strings.TrimPrefix(r.URL.Path, "/")]
	if h.serve != nil {
		h.serve(w, r, content)
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// get resolves the model as Resolve does, but without pauses between attempts.
func (h *fakeHub) get(cacheDir, name string, progress func(Progress)) (string, error) {
	want, err := parseReference(name)
	if err != nil {
		return "", err
	}
	return resolve(context.Background(), want, Options{CacheDir: cacheDir, Endpoint: h.URL, Token: token, Progress: progress}, patience{time.Millisecond, await.Patience})
}

// checkSnapshot compares the files of a snapshot with the hub's.
func (h *fakeHub) checkSnapshot(t *testing.T, path string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) != len(names) {
		t.Errorf("the snapshot holds %v (%v), want %v", entries, err, names)
	}
	for _, name := range names {
		got, err := os.ReadFile(filepath.Join(path, name))
		if err != nil || !bytes.Equal(got, h.files[name]) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(h.files[name]))
		}
	}
}
