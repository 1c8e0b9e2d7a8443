package weights

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// numbered is a tensor whose bytes count up from a number.
func numbered(name string, kind Type, from int, shape ...int64) Tensor {
	x := Tensor{Info: Info{Name: name, Type: kind, Shape: shape}}
	n, err := kind.Bytes(shape)
	if err != nil {
		panic(err)
	}
	for i := range n {
		x.Data = append(x.Data, byte(from)+byte(i))
	}
	return x
}

// openedTensors opens a folder of tensors.
func openedTensors(t *testing.T, config string, all ...Tensor) (Checkpoint, error) {
	t.Helper()
	folder := folderOf(t, map[string]string{"config.json": config})
	if err := safetensors.Write(filepath.Join(folder, safetensors.SingleName), all...); err != nil {
		t.Fatal(err)
	}
	c, err := Open(folder)
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// Each expert's matrices are parts of the stacked tensors, under the names that they have elsewhere, also in an MTP head and in a wrapped model.
func TestStackedExperts(t *testing.T) {
	const layer = "model.language_model.layers.0.mlp."
	c, err := openedTensors(t, `{}`,
		numbered("model.language_model.embed_tokens.weight", tensor.BF16, 0, 1), numbered("model.language_model.norm.weight", tensor.BF16, 0, 1),
		numbered(layer+"experts.gate_up_proj", tensor.BF16, 0, 2, 4, 3), numbered(layer+"experts.down_proj", tensor.BF16, 100, 2, 3, 2),
		numbered("mtp.layers.0.mlp.experts.gate_up_proj", tensor.F32, 0, 1, 2, 3), numbered("mtp.layers.0.mlp.experts.down_proj", tensor.F32, 100, 1, 3, 1))
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, stored string
		shape        []int64
		from         int
	}{
		{"model.layers.0.mlp.experts.0.gate_proj.weight", layer + "experts.gate_up_proj", []int64{2, 3}, 0},
		{"model.layers.0.mlp.experts.0.up_proj.weight", layer + "experts.gate_up_proj", []int64{2, 3}, 12},
		{"model.layers.0.mlp.experts.1.gate_proj.weight", layer + "experts.gate_up_proj", []int64{2, 3}, 24},
		{"model.layers.0.mlp.experts.1.up_proj.weight", layer + "experts.gate_up_proj", []int64{2, 3}, 36},
		{"model.layers.0.mlp.experts.0.down_proj.weight", layer + "experts.down_proj", []int64{3, 2}, 100},
		{"model.layers.0.mlp.experts.1.down_proj.weight", layer + "experts.down_proj", []int64{3, 2}, 112},
		{"mtp.layers.0.mlp.experts.0.gate_proj.weight", "mtp.layers.0.mlp.experts.gate_up_proj", []int64{1, 3}, 0},
		{"mtp.layers.0.mlp.experts.0.up_proj.weight", "mtp.layers.0.mlp.experts.gate_up_proj", []int64{1, 3}, 12},
		{"mtp.layers.0.mlp.experts.0.down_proj.weight", "mtp.layers.0.mlp.experts.down_proj", []int64{3, 1}, 100},
	}
	for _, want := range cases {
		x, err := c.Tensor(want.name)
		if err != nil {
			t.Fatal(err)
		}
		if data := numbered("", x.Type, want.from, want.shape...).Data; !slices.Equal(x.Shape, want.shape) || !bytes.Equal(x.Data, data) || x.Stored != want.stored {
			t.Errorf("%s of %s: %v %v, want %v %v", want.name, x.Stored, x.Shape, x.Data, want.shape, data)
		}
		c.Release(x)
	}
	if left := c.Unused(); len(left) != 2 {
		t.Errorf("left after all experts were asked for: %v", left)
	}
	// What is wrong with a part is said of the tensor in the file.
	err = Check(c, []Want{{Name: "model.layers.0.mlp.experts.1.up_proj.weight", Shape: []int64{8, 3}}, {Name: "model.layers.0.mlp.experts.2.up_proj.weight", Shape: []int64{2, 3}}})
	for _, want := range []string{
		"model.layers.0.mlp.experts.1.up_proj.weight (in the file: " + layer + "experts.gate_up_proj) is [2, 3] in the checkpoint, the configuration wants [8, 3]",
		"model.layers.0.mlp.experts.2.up_proj.weight [2, 3]: no such tensor",
	} {
		if !matches(err, want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

// Tensors of other shapes or types under these names are left alone, and a note says so.
func TestStackedOtherwise(t *testing.T) {
	const up, down = "model.layers.0.mlp.experts.gate_up_proj", "model.layers.0.mlp.experts.down_proj"
	cases := []struct {
		name string
		all  []Tensor
		err  string
	}{
		{"transposed", []Tensor{numbered(up, tensor.BF16, 0, 2, 3, 4), numbered(down, tensor.BF16, 0, 2, 2, 3)}, ""},
		{"fewer down projections", []Tensor{numbered(up, tensor.BF16, 0, 2, 4, 3), numbered(down, tensor.BF16, 0, 1, 3, 2)}, ""},
		{"two types", []Tensor{numbered(up, tensor.BF16, 0, 2, 4, 3), numbered(down, tensor.F32, 0, 2, 3, 2)}, ""},
		{"quantised", []Tensor{numbered(up, tensor.F8_E4M3, 0, 2, 4, 3), numbered(down, tensor.F8_E4M3, 0, 2, 3, 2)}, ""},
		{"matrices", []Tensor{numbered(up, tensor.BF16, 0, 4, 3), numbered(down, tensor.BF16, 0, 3, 2)}, ""},
		{"experts twice", []Tensor{numbered(up, tensor.BF16, 0, 2, 4, 3), numbered(down, tensor.BF16, 0, 2, 3, 2), numbered("model.layers.0.mlp.experts.1.up_proj.weight", tensor.BF16, 0, 2, 3)},
			"tensor model.layers.0.mlp.experts.1.up_proj.weight and a part of " + up + " would both be model.layers.0.mlp.experts.1.up_proj.weight"},
	}
	for _, c := range cases {
		checkpoint, err := openedTensors(t, `{}`, c.all...)
		if !matches(err, c.err) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.err)
		}
		if err != nil {
			continue
		}
		if _, ok := checkpoint.Info(up); !ok || !strings.Contains(fmt.Sprint(checkpoint.Notes()), "are left as they are") {
			t.Errorf("%s: it is there: %v; notes %q", c.name, ok, checkpoint.Notes())
		}
	}
}

// What lies beside them may be missing.
func TestStackedWithoutTheOther(t *testing.T) {
	const up, down = "model.layers.0.mlp.experts.gate_up_proj", "model.layers.0.mlp.experts.down_proj"
	checkpoint, err := openedTensors(t, `{}`, numbered(up, tensor.BF16, 0, 2, 4, 3))
	if err != nil {
		t.Fatal(err)
	}
	want := up + " BF16 [2, 4, 3] has no " + down + " beside it: it is left as it is"
	if _, ok := checkpoint.Info(up); !ok || !slices.Contains(checkpoint.Notes(), want) {
		t.Errorf("it is there: %v; notes %q, want %q", ok, checkpoint.Notes(), want)
	}
}

// The published layouts of a family have one set of names.
func TestNamesOfGoldenHybrids(t *testing.T) {
	cases := []struct {
		golden string
		has    []string
		lacks  []string
	}{
		{"qwen3_5_moe", []string{"lm_head.weight", "model.embed_tokens.weight", "model.norm.weight", "model.layers.0.linear_attn.A_log", "model.layers.3.mlp.experts.7.up_proj.weight", "model.visual.merger.norm.weight"},
			[]string{"model.language_model.norm.weight"}},
		{"qwen3_5_moe-mtp", []string{"model.layers.3.mlp.experts.5.down_proj.weight", "mtp.layers.0.mlp.experts.5.gate_proj.weight", "mtp.fc.weight", "model.visual.merger.norm.weight"},
			[]string{"mtp.layers.0.mlp.experts.gate_up_proj", "model.layers.0.mlp.experts.6.down_proj.weight"}},
		{"qwen3_5_moe-nvfp4-ct", []string{"lm_head.weight", "model.layers.0.linear_attn.in_proj_qkv.weight_packed", "model.layers.0.linear_attn.in_proj_qkv.weight_global_scale"}, nil},
		{"qwen3_5_text", []string{"lm_head.weight", "model.layers.0.linear_attn.A_log"}, nil},
		{"qwen3_next-mtp", []string{"lm_head.weight", "mtp.layers.0.mlp.experts.0.gate_proj.weight", "model.layers.0.linear_attn.in_proj_qkvz.weight"}, nil},
	}
	for _, want := range cases {
		c, err := Open(testdata.Shared(t, "golden/"+want.golden))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range want.has {
			if info, ok := c.Info(name); !ok || info.Name != name {
				t.Errorf("%s has no %s", want.golden, name)
			}
		}
		for _, name := range want.lacks {
			if _, ok := c.Info(name); ok {
				t.Errorf("%s has a %s", want.golden, name)
			}
		}
		if notes := c.Notes(); len(notes) > 0 {
			t.Errorf("%s: nothing is unusual about it, but: %q", want.golden, notes)
		}
		c.Close()
	}
}
