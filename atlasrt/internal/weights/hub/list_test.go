package hub

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is listed as whole is what Resolve finds under that name; what is not whole has a reason.
func TestList(t *testing.T) {
	const other = "1123456789abcdef0123456789abcdef01234567"
	folder := t.TempDir()
	repository := func(name string, refs map[string]string, files ...string) string {
		path := filepath.Join(folder, "models--"+name)
		for ref, to := range refs {
			write(t, path, "refs", ref, to)
		}
		for _, file := range files {
			write(t, path, "snapshots", file, "{}")
		}
		return path
	}
	main := map[string]string{"main": commit}
	in := func(names ...string) (files []string) {
		for _, name := range names {
			files = append(files, commit+"/"+name)
		}
		return files
	}
	repository("acme--whole", map[string]string{"main": commit, "refs/pr/1": other, "a": other}, append(in("config.json", "model.safetensors"), other+"/config.json")...)
	repository("acme--half", main, in("config.json")...)
	repository("acme--files", main, in("config.json", "x.Q4_0.gguf", "sub/y.gguf", "z-00001-of-00002.gguf", "z-00002-of-00002.gguf", "w-00001-of-00002.gguf")...)
	repository("acme--both", main, in("config.json", "model.safetensors", "x.gguf")...)
	repository("acme--torch", main, in("pytorch_model.bin")...)
	repository("acme--damaged", map[string]string{"main": "no commit"})
	repository("acme--none", nil, in("config.json")...)
	write(t, folder, "models--no", "x", "")
	write(t, folder, "models--a--b--c", "refs", "main", commit)
	write(t, folder, "datasets--acme--d", "refs", "main", commit)
	linked := repository("acme--links", main, in("config.json", "model.safetensors")...)
	if err := os.Symlink("/etc/hostname", filepath.Join(linked, "snapshots", commit, "tokenizer.json")); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"acme/both: whole", "acme/both:x.gguf: whole",
		"acme/damaged: is no commit",
		"acme/files:sub/y.gguf: whole", "acme/files:w-00001-of-00002.gguf: not whole", "acme/files:x.Q4_0.gguf: whole", "acme/files:z-00001-of-00002.gguf: whole",
		"acme/half: not whole", "acme/links: does not stay", "acme/none: no revision",
		"acme/torch: neither safetensors nor GGUF",
		"acme/whole: whole", "acme/whole@a: not whole", "acme/whole@refs/pr/1: not whole",
	}
	found, err := List(folder)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range found {
		got := fmt.Sprint(f.Problem)
		if f.Problem == nil {
			path, err := offline(folder, f.Model)
			if got = "whole"; path != f.Path || err != nil {
				t.Errorf("%s: listed at %s, and found at %s, %v", f.Model, f.Path, path, err)
			}
		}
		if i >= len(want) {
			t.Errorf("%s: %s; want no more", f.Model, got)
			continue
		}
		if model, piece, _ := strings.Cut(want[i], ": "); model != f.Model || !strings.Contains(got, piece) {
			t.Errorf("got %s: %s, want %s", f.Model, got, want[i])
		}
	}
	if len(found) < len(want) {
		t.Errorf("got %d models, want %d", len(found), len(want))
	}
	c := &cache{path: filepath.Join(folder, "models--acme--files")}
	if c.root, err = os.OpenRoot(c.path); err != nil {
		t.Fatal(err)
	}
	defer c.close()
	files, err := parseReference("acme/files")
	if err != nil {
		t.Fatal(err)
	}
	if _, got, err := c.files(files, 6); err != nil || len(got) != 6 {
		t.Errorf("got %v, %v, want six files", got, err)
	}
	if _, _, err := c.files(files, 5); err == nil || !strings.Contains(err.Error(), "more than 5 files") {
		t.Errorf("six files where five are allowed: got %v, want an error", err)
	}
	if none, err := List(filepath.Join(folder, "nowhere")); err != nil || len(none) > 0 {
		t.Errorf("no cache: got %v, %v", none, err)
	}
	if _, err := List(filepath.Join(folder, "models--no", "x")); err == nil {
		t.Error("a file: got no error")
	}
}
