package hub

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	home := t.TempDir()
	hash, hex := strings.Repeat("0a", 20), strings.Repeat("5f", 32)
	for _, folder := range []string{
		"Tiny-2.5-0.1B-Instruct/inner", "plain", "dots.gguf", "v1.0", "Qwen/Qwen3-0.6B", "with space", "models--local",
		"hub/models--acme--Tiny-2.5/snapshots/" + hash, "hub/models--gpt2/snapshots/" + hash, "hub/models--a--b--c/snapshots/" + hash,
	} {
		if err := os.MkdirAll(filepath.Join(home, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{
		"m-2.5.Q4_1.gguf", "M.GGUF", "big-00001-of-00003.gguf", "big-1-of-3.gguf", "noending-2.5", "parts-00001-of-00002", "Tiny-2.5-0.1B-Instruct/config.json", "Tiny-2.5-0.1B-Instruct/model-00001-of-00002.safetensors", "x.gguf.bak", ".gguf",
		"hub/models--acme--Tiny-2.5/snapshots/" + hash + "/tiny.Q8_0.gguf",
		"ollama/blobs/sha256-" + hex, "ollama/blobs/sha256-" + strings.Repeat("00", 32), "alone/blobs/sha256-" + hex,
	} {
		write(t, home, file, "x")
	}
	write(t, home, "ollama/manifests/registry.ollama.ai/library/aaa/latest", `{"layers": [{"digest": "sha256:1234"}]}`)
	write(t, home, "ollama/manifests/registry.ollama.ai/library/bad/latest", `not JSON`)
	write(t, home, "ollama/manifests/registry.ollama.ai/library/llama3.2/1b", `{"layers": [{"digest": "sha256:`+hex+`"}]}`)
	for _, link := range []struct{ to, name string }{{"Tiny-2.5-0.1B-Instruct", "current-1.5"}, {"m-2.5.Q4_1.gguf", "best.v2.gguf"}} {
		if err := os.Symlink(link.to, filepath.Join(home, link.name)); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct{ from, model, want string }{ // from is the working folder, below home; a model that begins with / is below home, too
		// Folders.
		{".", "/Tiny-2.5-0.1B-Instruct", "Tiny-2.5-0.1B-Instruct"},
		{".", "/Tiny-2.5-0.1B-Instruct/", "Tiny-2.5-0.1B-Instruct"},
		{".", "/Tiny-2.5-0.1B-Instruct/inner/..", "Tiny-2.5-0.1B-Instruct"},
		{".", "/Tiny-2.5-0.1B-Instruct/.", "Tiny-2.5-0.1B-Instruct"},
		{".", "Tiny-2.5-0.1B-Instruct", "Tiny-2.5-0.1B-Instruct"},
		{".", "./Tiny-2.5-0.1B-Instruct//", "Tiny-2.5-0.1B-Instruct"},
		{"Tiny-2.5-0.1B-Instruct", ".", "Tiny-2.5-0.1B-Instruct"},
		{"Tiny-2.5-0.1B-Instruct/inner", "..", "Tiny-2.5-0.1B-Instruct"},
		{"plain", "../v1.0", "v1.0"},
		{".", "/plain", "plain"},
		{".", "/with space", "with space"},
		{".", "/dots.gguf", "dots.gguf"},
		{".", "Qwen/Qwen3-0.6B", "Qwen3-0.6B"},
		{".", "/current-1.5", "current-1.5"},
		{".", "/models--local", "models--local"},
		// The HuggingFace cache.
		{".", "/hub/models--acme--Tiny-2.5/snapshots/" + hash, "acme/Tiny-2.5"},
		{".", "/hub/models--acme--Tiny-2.5/snapshots/" + hash + "/", "acme/Tiny-2.5"},
		{"hub/models--acme--Tiny-2.5/snapshots/" + hash, ".", "acme/Tiny-2.5"},
		{".", "/hub/models--gpt2/snapshots/" + hash, "gpt2"},
		{".", "/hub/models--a--b--c/snapshots/" + hash, "a/b--c"},
		{".", "/hub/models--acme--Tiny-2.5/snapshots/" + hash + "/tiny.Q8_0.gguf", "tiny.Q8_0"},
		// Files.
		{".", "/m-2.5.Q4_1.gguf", "m-2.5.Q4_1"},
		{".", "m-2.5.Q4_1.gguf", "m-2.5.Q4_1"},
		{".", "/M.GGUF", "M"},
		{".", "/big-00001-of-00003.gguf", "big"},
		{".", "/big-1-of-3.gguf", "big-1-of-3"},
		{".", "/noending-2.5", "noending-2.5"},
		{".", "/parts-00001-of-00002", "parts"},
		{".", "/Tiny-2.5-0.1B-Instruct/config.json", "Tiny-2.5-0.1B-Instruct"},
		{"Tiny-2.5-0.1B-Instruct", "model-00001-of-00002.safetensors", "Tiny-2.5-0.1B-Instruct"},
		{".", "/x.gguf.bak", "x.gguf.bak"},
		{".", "/.gguf", ".gguf"},
		{".", "/best.v2.gguf", "best.v2"},
		// Ollama's blobs.
		{".", "/ollama/blobs/sha256-" + hex, "llama3.2:1b"},
		{".", "/ollama/blobs/sha256-" + strings.Repeat("00", 32), "sha256-" + strings.Repeat("00", 32)},
		{".", "/alone/blobs/sha256-" + hex, "sha256-" + hex},
		// Names that are no paths.
		{".", "smollm2", "smollm2"},
		{".", "acme/Tiny-2.5", "acme/Tiny-2.5"},
		{".", "acme/Tiny-2.5@v1.0", "acme/Tiny-2.5@v1.0"},
		{".", "acme/Tiny-2.5:tiny.Q4_0.gguf", "tiny.Q4_0"},
		{".", "acme/Tiny-2.5:Q4_0/tiny.Q4_0-00001-of-00002.gguf", "tiny.Q4_0"},
		{".", "/none-1.5", "/none-1.5"},
	}
	for _, c := range cases {
		t.Run(c.from+" "+c.model, func(t *testing.T) {
			t.Chdir(filepath.Join(home, c.from))
			model, want := c.model, c.want
			if strings.HasPrefix(model, "/") {
				model = home + model
			}
			if strings.HasPrefix(want, "/") {
				want = home + want
			}
			if got := Name(model); got != want {
				t.Errorf("%s: got %q, want %q", c.model, got, want)
			}
		})
	}
}

// Names of other hosts and owners are whole, and a folder without manifests names nothing.
func TestOllamaName(t *testing.T) {
	home := t.TempDir()
	write(t, home, "registry.ollama.ai/acme/tiny/v1", `{"layers": [{"digest": "sha256:a"}]}`)
	write(t, home, "hf.co/acme/big/q4", `{"layers": [{"digest": "sha256:b"}]}`)
	for digest, want := range map[string]string{"sha256:a": "acme/tiny:v1", "sha256:b": "hf.co/acme/big:q4", "sha256:c": ""} {
		if got := ollamaName(os.DirFS(home), digest); got != want {
			t.Errorf("%s: got %q, want %q", digest, got, want)
		}
	}
	if got := ollamaName(os.DirFS(filepath.Join(home, "none")), "sha256:a"); got != "" {
		t.Errorf("no folder: got %q", got)
	}
}
