package hub

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
)

func TestPartsAreFetchedTogether(t *testing.T) {
	for _, folder := range []string{"", "Q8_0/"} {
		h := newHub(t)
		names := []string{folder + "big-00001-of-00003.gguf", folder + "big-00002-of-00003.gguf", folder + "big-00003-of-00003.gguf"}
		for _, name := range names {
			h.files[name] = []byte("GGUF of " + name)
		}
		cache := t.TempDir()
		path, err := h.get(cache, model+":"+names[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		snapshot := filepath.Join(cache, "models--acme--tiny", "snapshots", commit)
		if want := filepath.Join(snapshot, names[0]); path != want {
			t.Errorf("got %s, want %s", path, want)
		}
		for _, name := range names {
			if text, err := os.ReadFile(filepath.Join(snapshot, name)); err != nil || string(text) != "GGUF of "+name {
				t.Errorf("%s holds %q, %v", name, text, err)
			}
		}
		before := len(h.requests)
		if again, err := h.get(cache, model+":"+names[0], nil); err != nil || again != path || len(h.requests) != before {
			t.Errorf("again: %s, %v, %d requests more", again, err, len(h.requests)-before)
		}
		// A part that is gone is fetched alone.
		if err := os.Remove(filepath.Join(snapshot, names[1])); err != nil {
			t.Fatal(err)
		}
		if _, err := h.get(cache, model+":"+names[0], nil); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(snapshot, names[1])); err != nil {
			t.Error(err)
		}
		if _, err := h.get(cache, model+":"+names[2], nil); err == nil || !strings.Contains(err.Error(), "give the first, "+names[0]) {
			t.Errorf("the last part: %v, want the name of the first", err)
		}
		delete(h.files, names[2])
		if _, err := h.get(t.TempDir(), model+":"+names[0], nil); err == nil || !strings.Contains(err.Error(), "it has no file "+names[2]) {
			t.Errorf("a part that the hub lacks: %v, want its name", err)
		}
		delete(h.files, safetensors.IndexName)
		if _, err := h.get(t.TempDir(), model, nil); err == nil || !strings.HasSuffix(err.Error(), "("+names[0]+", tiny.Q4_0.gguf)") {
			t.Errorf("a model of GGUF files: %v, want its models, one of parts by its first", err)
		}
	}
}

func TestTokenizerFiles(t *testing.T) {
	more := map[string]string{
		"special_tokens_map.json": "S", "added_tokens.json": "A", "vocab.json": "V", "merges.txt": "M", "tokenizer.model": "P",
		"additional_chat_templates/default.jinja": "D", "additional_chat_templates/rag.jinja": "R", "other/tokenizer.json": "O",
	}
	cases := []struct {
		name   string
		remove []string
		want   []string // beside those that every checkpoint has
	}{
		{"with tokenizer.json", nil, []string{"special_tokens_map.json", "added_tokens.json"}},
		{"without", []string{"tokenizer.json", "chat_template.jinja"},
			[]string{"special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt", "tokenizer.model", "additional_chat_templates/default.jinja"}},
	}
	for _, c := range cases {
		h := newHub(t)
		for name, text := range more {
			h.files[name] = []byte(text)
		}
		for _, name := range c.remove {
			delete(h.files, name)
		}
		path, err := h.get(t.TempDir(), model, nil)
		if err != nil {
			t.Fatal(err)
		}
		wanted := map[string]bool{}
		for _, name := range c.want {
			wanted[name] = true
		}
		for name, text := range more {
			got, err := os.ReadFile(filepath.Join(path, name))
			if wanted[name] && string(got) != text || !wanted[name] && err == nil {
				t.Errorf("%s: %s holds %q, %v; wanted: %v", c.name, name, got, err, wanted[name])
			}
		}
	}
}
