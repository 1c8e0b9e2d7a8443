package safetensors

import (
	"os"
	"path/filepath"
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
		f, err := OpenFolder(folder)
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
