package weights

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/mapping"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/internal/testdata"
)

func TestGoldenCheckpoints(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(testdata.Shared(t, "golden"), "*", "config.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden checkpoints: %v", err)
	}
	for _, path := range paths {
		folder := filepath.Dir(path)
		c, err := Open(folder)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, name := range c.Unused() {
			x, err := c.Tensor(name)
			if err == nil {
				err = mapping.Copy(make([]byte, len(x.Data)), x.Data)
			}
			if err == nil {
				err = Finite(x)
			}
			if err != nil {
				t.Errorf("%s: %v", folder, err)
			}
			c.Release(x)
		}
		if left := c.Unused(); len(left) != 0 {
			t.Errorf("%s: unused after every tensor was asked for: %v", folder, left)
		}
		config := c.Config()
		config.Strings("architectures")
		config.Int("hidden_size")
		config.FloatOr("rope_theta", 10000)
		if err := config.Err(); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestInfiniteLimitInGoldenConfig(t *testing.T) {
	c, err := Open(testdata.Shared(t, "golden/nemotron_h"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	config := c.Config()
	if got := config.Floats("time_step_limit"); len(got) != 2 || got[0] != 0 || !math.IsInf(got[1], 1) || config.Err() != nil {
		t.Errorf("time_step_limit: %v, %v; want [0 +Inf]", got, config.Err())
	}
}

// checkpoint writes a folder with these files and one tensor.
func checkpointFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	x := Tensor{Info: Info{Name: "x", Type: tensor.U8, Shape: []int64{2}}, Data: []byte("ab")}
	if err := safetensors.Write(filepath.Join(folder, safetensors.SingleName), x); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestOpenRefuses(t *testing.T) {
	pickle := checkpointFolder(t, map[string]string{"config.json": "{}", "pytorch_model.bin": ""})
	os.Remove(filepath.Join(pickle, safetensors.SingleName))
	empty := checkpointFolder(t, map[string]string{"config.json": "{}"})
	os.Remove(filepath.Join(empty, safetensors.SingleName))
	other := filepath.Join(t.TempDir(), "model.bin")
	os.WriteFile(other, nil, 0o600)
	cases := []struct{ path, want string }{
		{filepath.Join(t.TempDir(), "none"), "no such file"},
		{other, "model.bin is empty"},
		{checkpointFolder(t, nil), "holds no config.json"},
		{checkpointFolder(t, map[string]string{"config.json": "[]"}), "not a JSON object"},
		{checkpointFolder(t, map[string]string{"config.json": strings.Repeat(" ", 5<<20)}), "larger than"},
		{pickle, "convert the checkpoint to safetensors"},
		{empty, "holds config.json and no weights"},
	}
	for _, c := range cases {
		if _, err := Open(c.path); !matches(err, c.want) {
			t.Errorf("Open(%s): got %v, want %q", c.path, err, c.want)
		}
	}
}

func TestFolderCheckpoint(t *testing.T) {
	folder := checkpointFolder(t, map[string]string{
		"config.json": `{"auto_map": {"AutoConfig": "evil.py"}, "hidden_size": 8}`, "generation_config.json": "G", "tokenizer.json": "T",
		"chat_template.jinja": "C",
	})
	c, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Tensor("y"); !errors.Is(err, ErrMissing) || !matches(err, "y: ") {
		t.Errorf("Tensor(y): %v, want %v", err, ErrMissing)
	}
	if info, ok := c.Info("x"); !ok || info.String() != "x U8 [2]" || len(c.Unused()) != 1 {
		t.Errorf("Info(x): %v %v, unused %v; want x U8 [2], still unused", info, ok, c.Unused())
	}
	if x, err := c.Tensor("x"); err != nil || string(x.Data) != "ab" || len(c.Unused()) != 0 {
		t.Errorf("Tensor(x): %q %v, unused %v", x.Data, err, c.Unused())
	}
	a, err := c.Assets()
	if err != nil || string(a.GenerationConfig)+string(a.Tokenizer)+string(a.ChatTemplate) != "GTC" || a.TokenizerConfig != nil || a.Vocabulary != nil {
		t.Errorf("assets: %+v, %v", a, err)
	}
	if got := c.String(); got != "safetensors, 1 files, 1 tensors, 2 bytes" {
		t.Errorf("description: %s", got)
	}
	first, second := c.Config(), c.Config()
	first.Int("none")
	if second.Err() != nil || first.Err() == nil || second.Int("hidden_size") != 8 {
		t.Errorf("readers share errors: %v, %v", first.Err(), second.Err())
	}
}

// A checkpoint that is cut while it is loaded must end the load, not the process.
func TestTruncatedWhileOpen(t *testing.T) {
	norm := Tensor{Info: Info{Name: "norm", Type: tensor.F32, Shape: []int64{1 << 18}}, Data: make([]byte, 1<<20)}
	folder := checkpointFolder(t, map[string]string{"config.json": "{}"})
	shard := filepath.Join(folder, safetensors.SingleName)
	if err := safetensors.Write(shard, norm); err != nil {
		t.Fatal(err)
	}
	gguf := writeGGUF(t, llamaKeys, ggufTensor{"token_embd.weight", []int64{10, 8}}, ggufTensor{"blk.0.attn_q.weight", []int64{1 << 12, 64}})
	cases := []struct {
		path, file, name string
		wants            []Want
	}{
		{folder, shard, "norm", []Want{{Name: "norm", Shape: norm.Shape}}},
		{gguf, gguf, "model.layers.0.self_attn.q_proj.weight", nil},
	}
	for _, c := range cases {
		checkpoint, err := Open(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(c.file, 4096); err != nil {
			t.Fatal(err)
		}
		x, err := checkpoint.Tensor(c.name)
		if err == nil {
			err = mapping.Copy(make([]byte, len(x.Data)), x.Data)
		}
		if !matches(err, "truncated") {
			t.Errorf("%s: reading %s: %v, want truncated", c.file, c.name, err)
		}
		if err := Check(checkpoint, c.wants); len(c.wants) > 0 && !matches(err, "truncated") {
			t.Errorf("%s: Check: %v, want truncated", c.file, err)
		}
		checkpoint.Close()
	}
}
