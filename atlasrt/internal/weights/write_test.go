package weights_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// made is a checkpoint whose three matrices take 8, 8 and 24 KiB in bf16.
func made(t *testing.T, scheme op.Scheme) weights.Checkpoint {
	t.Helper()
	config, err := weights.ParseConfig("config.json", []byte(`{"architectures": ["Qwen3ForCausalLM"], "hidden_size": 64}`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := dummy.New(config, []weights.Want{
		{Name: "a.q_proj.weight", Shape: []int64{64, 64}}, {Name: "b.k_proj.weight", Shape: []int64{64, 64}}, {Name: "c.up_proj.weight", Shape: []int64{192, 64}}, {Name: "norm.weight", Shape: []int64{64}},
	}, dummy.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	for _, scheme := range []op.Scheme{op.SchemeBF16, op.SchemeF8, op.SchemeF8Block, op.SchemeNVFP4} {
		c := made(t, scheme)
		names := c.Unused()
		folder := filepath.Join(t.TempDir(), "model")
		if err := weights.Write(folder, c, weights.Layout{ShardBytes: 17 << 10}); err != nil {
			t.Fatalf("%s: %v", scheme, err)
		}
		files, _ := filepath.Glob(filepath.Join(folder, "*.safetensors"))
		if scheme == op.SchemeBF16 && len(files) != 3 { // a and b, c that is larger than a file should be, and norm
			t.Errorf("files %q, want three", files)
		}
		for _, file := range files {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm()&0o044 != 0o044 {
				t.Errorf("%s: others cannot read it (%v)", file, info.Mode())
			}
		}
		got, err := weights.Open(folder)
		if err != nil {
			t.Fatalf("%s: %v", scheme, err)
		}
		defer got.Close()
		if n := got.Config().IntOr("hidden_size", 0); n != 64 {
			t.Errorf("%s: config.json has hidden_size %d, want 64", scheme, n)
		}
		if there := got.Unused(); !slices.Equal(there, names) {
			t.Errorf("%s: tensors %q, want %q", scheme, there, names)
		}
		for _, name := range names {
			was, err := c.Tensor(name)
			if err != nil {
				t.Fatal(err)
			}
			is, err := got.Tensor(name)
			if err != nil || is.Type != was.Type || !slices.Equal(is.Shape, was.Shape) || !bytes.Equal(is.Data, was.Data) {
				t.Errorf("%s: %v (%v), want %v and its bytes", scheme, is.Info, err, was.Info)
			}
		}
	}
}

func TestNothingStaysOfWhatCannotBeWritten(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "model")
	if err := weights.Write(folder, made(t, op.SchemeQ8_0), weights.Layout{ShardBytes: 1 << 20}); err == nil || !strings.Contains(err.Error(), "the format has no type Q8_0") {
		t.Errorf("GGUF's blocks: %v", err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder is there: %v", err)
	}
	if err := os.WriteFile(folder, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := weights.Write(folder, made(t, op.SchemeBF16), weights.Layout{ShardBytes: 1 << 20}); err == nil {
		t.Error("it wrote over what was there")
	}
	if text, _ := os.ReadFile(folder); string(text) != "mine" {
		t.Errorf("what was there is now %q", text)
	}
}
