package safetensors

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A link that git wrote as text, in a checkout without links, opens what it names; nothing else is taken for one.
func TestLinksWrittenAsText(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "weights"), 0o700); err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(root, "weights", SingleName)
	if err := Write(there, bytesTensor("a", "one")); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		text string
		good bool
	}{
		{"../weights/model.safetensors", true},
		{"../weights/../weights/model.safetensors", true},
		{"../weights/none.safetensors", false},
		{"../weights", false},
		{there, false},
		{"../weights/model.safetensors\n\n", false},
		{"model.safetensors", false}, // itself
		{strings.Repeat("./", 600) + "../weights/model.safetensors", false},
	}
	for _, c := range cases {
		folder := filepath.Join(root, "model")
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, SingleName), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := openFolder(folder)
		if (err == nil) != c.good {
			t.Errorf("%.60q: got %v, want good %v", c.text, err, c.good)
		}
		if err != nil {
			continue
		}
		if a, ok := f.Tensor("a"); !ok || string(a.Data) != "one" {
			t.Errorf("%.60q: got %v", c.text, a)
		}
		if notes := f.Notes(); len(notes) != 1 || !strings.Contains(notes[0], there) {
			t.Errorf("%.60q: notes %q, want one that names %s", c.text, notes, there)
		}
		f.Close()
	}
}

// A shard is what the index calls it, whatever the name of the file that a link written as text leads to.
func TestLinkedShardsKeepTheirNames(t *testing.T) {
	folder := t.TempDir()
	blobs := filepath.Join(folder, "blobs")
	if err := os.Mkdir(blobs, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"1.safetensors": "blobs/x.safetensors", "2.safetensors": "blobs/1.safetensors",
		IndexName: `{"weight_map":{"a":"1.safetensors","b":"2.safetensors"}}`} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(Write(filepath.Join(blobs, "x.safetensors"), bytesTensor("a", "one"), bytesTensor("b", "no")), Write(filepath.Join(blobs, "1.safetensors"), bytesTensor("b", "two"))); err != nil {
		t.Fatal(err)
	}
	f, err := openFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, _ := f.Tensor("a")
	b, _ := f.Tensor("b")
	if got := f.Shards(); !slices.Equal(got, []string{"1.safetensors", "2.safetensors"}) || string(a.Data) != "one" || string(b.Data) != "two" {
		t.Errorf("shards %q, a %q, b %q; want 1.safetensors, 2.safetensors, one, two", got, a.Data, b.Data)
	}
	for _, note := range f.Notes() {
		if strings.Contains(note, "differ") && !strings.Contains(note, `"b", 1 tensors`) {
			t.Errorf("note %q", note)
		}
	}
}
