package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// bare is a checkpoint of nothing but assets.
type bare struct {
	weights.Checkpoint
	closed *bool
}

func (bare) Assets() (weights.Assets, error) {
	return weights.Assets{ChatTemplate: []byte("its own"), GenerationConfig: []byte("{}")}, nil
}

func (b bare) Close() error {
	*b.closed = true
	return nil
}

func TestChatTemplate(t *testing.T) {
	cases := []struct {
		file, want string // the template; an error where it begins with !
	}{
		{"{{ messages[0].content }}\n", "{{ messages[0].content }}\n"},
		{"a\n{% if x %}\n{{ y\n", "!:3: "},
		{"a\n\n{% endfor %}", "!:3: "},
		{"", "!is empty"},
	}
	for _, c := range cases {
		path := filepath.Join(t.TempDir(), "own.jinja")
		if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		closed := false
		got, err := modelFlags{ChatTemplate: path}.withTemplate(bare{closed: &closed}, nil)
		if message, bad := strings.CutPrefix(c.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), message) || !closed {
				t.Errorf("%q: got %v, closed %v, want an error that names %s and has %q", c.file, err, closed, path, message)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.file, err)
			continue
		}
		assets, err := got.Assets()
		if err != nil || string(assets.ChatTemplate) != c.want || string(assets.GenerationConfig) != "{}" || closed {
			t.Errorf("%q: got %q, %v, want %q", c.file, assets.ChatTemplate, err, c.want)
		}
	}
	closed := false
	if got, err := (modelFlags{}).withTemplate(bare{closed: &closed}, nil); err != nil || got != (bare{closed: &closed}) {
		t.Errorf("without a file: got %v, %v", got, err)
	}
}
