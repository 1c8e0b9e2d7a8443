package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/hub"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// tinyLlama is the config.json of a model that any machine has room for.
const tinyLlama = `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 32,
	"intermediate_size": 32, "num_hidden_layers": 3, "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 32, "vocab_size": 64,
	"max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false}`

// written is a folder with a made-up checkpoint.
func written(t *testing.T, folder string) string {
	t.Helper()
	stored, err := dummy.Parse("bf16")
	if err != nil {
		t.Fatal(err)
	}
	if err := weights.Write(folder, madeUp(t, onOracle(op.F32), tinyLlama, stored), weights.Layout{ShardBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	return folder
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLook(t *testing.T) {
	good := written(t, filepath.Join(t.TempDir(), "good"))
	foreign := written(t, filepath.Join(t.TempDir(), "foreign"))
	put(t, filepath.Join(foreign, "config.json"), strings.Replace(tinyLlama, `"llama"`, `"strange"`, 1))
	cut := written(t, filepath.Join(t.TempDir(), "cut"))
	shards, err := filepath.Glob(filepath.Join(cut, "*.safetensors"))
	if err != nil || len(shards) == 0 {
		t.Fatal(shards, err)
	}
	if err := os.Truncate(shards[0], 5000); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "page.gguf")
	put(t, page, "<!DOCTYPE html><html>log in</html>")
	large := onOracle(op.F32)
	large.Device = host.New(1 << 16)
	cases := []struct {
		what   string
		found  hub.Found
		want   state
		reason string
	}{
		{"good", hub.Found{Path: good}, modelFits, ""},
		{"foreign", hub.Found{Path: foreign}, modelUnserved, "strange"},
		{"cut", hub.Found{Path: cut}, modelDamaged, ".safetensors"},
		{"a page", hub.Found{Path: page}, modelDamaged, "page"},
		{"gone", hub.Found{Path: filepath.Join(good, "gone.gguf")}, modelDamaged, "gone.gguf"},
		{"not whole", hub.Found{Problem: errors.New("not whole")}, modelDamaged, "not whole"},
	}
	for _, c := range cases {
		got := look(c.found, onOracle(op.F32), nil)
		if got.State != c.want || !strings.Contains(got.Reason, c.reason) || (got.Reason == "") != (c.reason == "") {
			t.Errorf("%s: got %+v, want %s, %q", c.what, got, c.want, c.reason)
		}
	}
	if got := look(hub.Found{Path: good}, onOracle(op.F32), nil); got.Format != "safetensors" || got.Stored != "BF16" || got.Context != 64 || got.Bytes < 10000 {
		t.Errorf("got %+v", got)
	}
	if got := look(hub.Found{Path: good}, large, nil); got.State != modelLarge || got.Reason == "" {
		t.Errorf("64 KiB of memory: got %+v", got)
	}
	if got := look(hub.Found{Path: good}, nil, errors.New("no kernels")); got.State != modelUnknown || got.Stored != "BF16" {
		t.Errorf("no kernels: got %+v", got)
	}
}

// Names are what --model takes, also below a folder whose name is a pattern.
func TestModelsBelowAFolder(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "a[b]*")
	for _, file := range []string{smollm2, "smollm2/other.GGUF", "x-00001-of-00002.gguf", "x-00002-of-00002.gguf", "notes.txt", "deep/er/y.gguf", "settings/config.json"} {
		put(t, filepath.Join(cache, file), "x")
	}
	written(t, filepath.Join(cache, "tiny"))
	found, err := below(cache)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		got = append(got, strings.TrimPrefix(f.Model, cache+"/"))
	}
	if got, want := strings.Join(got, " "), "x-00001-of-00002.gguf tiny smollm2 smollm2/other.GGUF"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPrintModels(t *testing.T) {
	var out bytes.Buffer
	if err := printModels(&out, nil, ".cache"); err != nil || !strings.Contains(out.String(), "make serve") {
		t.Errorf("no models: got %q, %v", out.String(), err)
	}
	out.Reset()
	models := []listed{{Model: "a/b", Format: "GGUF", Stored: "Q4_1", Bytes: 3 << 29, Context: 8192, State: modelFits}, {Model: "c/d", State: modelDamaged, Reason: "cut off"}}
	if err := printModels(&out, models, ".cache"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a/b", "1.50 GiB", "8192", "fits", "c/d, damaged: cut off"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %s, want %q in it", out.String(), want)
		}
	}
}
