package hub

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseReference(t *testing.T) {
	long := strings.Repeat("a", 97)
	cases := []struct{ model, want string }{ // empty: refused
		{"Qwen/Qwen3-0.6B", "Qwen Qwen3-0.6B main "},
		{"a/b@v1.0", "a b v1.0 "},
		{"a/b@refs/pr/3", "a b refs/pr/3 "},
		{"a/b:x.Q4_0.gguf", "a b main x.Q4_0.gguf"},
		{"a/b@v1:x.gguf", "a b v1 x.gguf"},
		{"", ""},
		{"a", ""},
		{"a/b/c", ""},
		{"/a/b", ""},
		{"./a", ""},
		{"../b", ""},
		{"a/..", ""},
		{"a/b..c", ""},
		{"a--b/c", ""},
		{"a/b\x00", ""},
		{"a/b c", ""},
		{"a/é", ""},
		{long + "/b", ""},
		{"a/b@", ""},
		{"a/b@../x", ""},
		{"a/b@/x", ""},
		{"a/b@x/../../y", ""},
		{"a/b@x//y", ""},
		{"a/b:", ""},
		{"a/b:x.bin", ""},
		{"a/b:../x.gguf", ""},
		{"a/b:c/x.gguf", "a b main c/x.gguf"},
		{"a/b:X.GGUF", "a b main X.GGUF"},
		{"a/b:c/x-00001-of-00003.gguf", "a b main c/x-00001-of-00003.gguf"},
		{"a/b:x-00002-of-00003.gguf", ""},
		{"a/b:c/../x.gguf", ""},
		{"a/b:/x.gguf", ""},
		{"a/b:c//x.gguf", ""},
		{"a/b:.c/x.gguf", ""},
		{"a/b:1/2/3/4/x.gguf", ""},
		{"a/b:.gguf", ""},
		{`a/b:..\x.gguf`, ""},
	}
	for _, c := range cases {
		r, err := parseReference(c.model)
		got := ""
		if err == nil {
			got = fmt.Sprintf("%s %s %s %s", r.owner, r.name, r.revision, r.file)
		}
		if got != c.want {
			t.Errorf("%q: got %q (%v), want %q", c.model, got, err, c.want)
		}
	}
}

// offline resolves with a hub that nobody listens at.
func offline(cache, model string) (string, error) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return Resolve(ctx, model, Options{CacheDir: cache, Endpoint: "http://127.0.0.1:1"})
}

func write(t *testing.T, parts ...string) {
	t.Helper()
	path, text := filepath.Join(parts[:len(parts)-1]...), parts[len(parts)-1]
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPathThatExists(t *testing.T) {
	folder := t.TempDir()
	link := filepath.Join(folder, "link")
	if err := os.Symlink("nothing", link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{folder, link} {
		if got, err := offline("", path); err != nil || got != path {
			t.Errorf("got %s, %v; want %s", got, err, path)
		}
	}
}

func TestCacheOfOthers(t *testing.T) {
	cache := t.TempDir()
	repository := filepath.Join(cache, "models--acme--tiny")
	snapshot := filepath.Join(repository, "snapshots", commit)
	write(t, repository, "refs", "main", commit+"\n")
	write(t, repository, "blobs", "abc", "{}")
	write(t, snapshot, "model.safetensors", "x")
	if err := os.Symlink("../../blobs/abc", filepath.Join(snapshot, "config.json")); err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"acme/tiny", "acme/tiny@main", "acme/tiny@" + commit} {
		if got, err := offline(cache, model); err != nil || got != snapshot {
			t.Errorf("%s: got %s, %v; want %s", model, got, err, snapshot)
		}
	}
	for _, model := range []string{"acme/tiny@v2", "acme/other", "acme/tiny:x.gguf"} {
		if got, err := offline(cache, model); err == nil {
			t.Errorf("%s: got %s, want an attempt to download", model, got)
		}
	}
}

func TestHostileCache(t *testing.T) {
	outside := t.TempDir()
	write(t, outside, "secret", "s")
	cases := []struct {
		name string
		make func(repository, snapshot string)
		want string
	}{
		{"ref is no commit", func(repository, snapshot string) { write(t, repository, "refs", "main", "../../x") }, "is no commit"},
		{"ref is huge", func(repository, snapshot string) { write(t, repository, "refs", "main", strings.Repeat("a", 1000)) }, "larger than"},
		{"absolute link", func(repository, snapshot string) {
			os.Symlink(filepath.Join(outside, "secret"), filepath.Join(snapshot, "tokenizer.json"))
		}, "does not stay in the model's folder"},
		{"link in a folder", func(repository, snapshot string) {
			write(t, snapshot, "Q4_0", "x.gguf", "x")
			os.Symlink("../../../../../secret", filepath.Join(snapshot, "Q4_0", "y.gguf"))
		}, "does not stay in the model's folder"},
		{"link to a parent", func(repository, snapshot string) {
			os.Symlink("../../../../secret", filepath.Join(snapshot, "tokenizer.json"))
		}, "does not stay in the model's folder"},
		{"snapshot is a link", func(repository, snapshot string) {
			os.RemoveAll(snapshot)
			os.Symlink(outside, snapshot)
		}, "escapes"},
		{"index leaves the folder", func(repository, snapshot string) {
			write(t, snapshot, "model.safetensors.index.json", `{"weight_map":{"a":"../x.safetensors"}}`)
		}, "no plain name"},
	}
	for _, c := range cases {
		cache := t.TempDir()
		repository := filepath.Join(cache, "models--acme--tiny")
		snapshot := filepath.Join(repository, "snapshots", commit)
		write(t, repository, "refs", "main", commit)
		write(t, snapshot, "config.json", "{}")
		write(t, snapshot, "model.safetensors", "x")
		c.make(repository, snapshot)
		if _, err := offline(cache, "acme/tiny"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// What is cached is found, and for what is not nobody is asked and nothing is written.
func TestOffline(t *testing.T) {
	h := newHub(t)
	asked := false
	h.serve = func(w http.ResponseWriter, r *http.Request, content []byte) { asked = true }
	folder := t.TempDir()
	snapshot := filepath.Join(folder, "models--acme--tiny", "snapshots", commit)
	write(t, folder, "models--acme--tiny", "refs", "main", commit)
	write(t, snapshot, "config.json", "{}")
	write(t, snapshot, "model.safetensors", "x")
	write(t, folder, "models--acme--half", "refs", "main", commit)
	cases := []struct{ model, want, wrong string }{
		{"acme/tiny", snapshot, ""},
		{"acme/half", "", "not whole in the cache"},
		{"acme/none", "", "not in the cache"},
	}
	for _, c := range cases {
		got, err := Resolve(t.Context(), c.model, Options{CacheDir: folder, Endpoint: h.URL, Offline: true})
		if got != c.want || c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: got %q, %v, want %q, %q", c.model, got, err, c.want, c.wrong)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "models--acme--none")); asked || err == nil {
		t.Errorf("hub asked: %v, folder made: %v", asked, err == nil)
	}
}
