package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// What is collapsed is exactly what is there, in the order in which it comes.
func TestCollapse(t *testing.T) {
	layer := func(i int, stored string) entry {
		return entry{fmt.Sprintf("model.layers.%d.up.weight", i), []string{stored}}
	}
	expert := func(l, e int) entry {
		return entry{Name: fmt.Sprintf("layers.%d.experts.%d.w", l, e)}
	}
	cases := []struct {
		what    string
		tensors []entry
		want    string
	}{
		{"nothing", nil, ""},
		{"no layers", []entry{{Name: "a.weight"}, {Name: "b"}}, "a.weight 1, b 1"},
		{"layers", []entry{layer(0, "Q4_1"), layer(1, "Q4_1"), layer(2, "Q4_1")}, "model.layers.{0…2}.up.weight 3"},
		{"in any order", []entry{layer(2, "Q4_1"), layer(0, "Q4_1"), layer(1, "Q4_1")}, "model.layers.{0…2}.up.weight 3"},
		{"with gaps", []entry{layer(0, "Q4_1"), layer(1, "Q4_1"), layer(3, "Q4_1"), layer(5, "Q4_1"), layer(6, "Q4_1"), layer(7, "Q4_1")}, "model.layers.{0, 1, 3, 5…7}.up.weight 6"},
		{"stored in two ways", []entry{layer(0, "Q4_1"), layer(1, "Q6_K"), layer(2, "Q4_1")}, "model.layers.{0, 2}.up.weight 2, model.layers.1.up.weight 1"},
		{"experts", []entry{expert(0, 0), expert(0, 1), expert(1, 0), expert(1, 1)}, "layers.{0, 1}.experts.{0, 1}.w 4"},
		{"experts that lack one", []entry{expert(0, 0), expert(0, 1), expert(1, 0)}, "layers.0.experts.{0, 1}.w 2, layers.1.experts.0.w 1"},
		{"numbers that are none", []entry{{Name: "a.01.b"}, {Name: "a.1x.b"}, {Name: "a.-1.b"}}, "a.01.b 1, a.1x.b 1, a.-1.b 1"},
	}
	for _, c := range cases {
		var got []string
		for _, g := range collapse(c.tensors) {
			got = append(got, fmt.Sprintf("%s %d", g.name(), len(g.numbers)))
		}
		if got := strings.Join(got, ", "); got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
}

// States have a place in the line where there are any.
func TestPartsOfMemory(t *testing.T) {
	m := engine.Memory{Weights: 3 << 30, Inputs: 1 << 20, Cache: 2 << 30, Tokens: 4096}
	const want = "weights 3.00 GiB, work 1.0 MiB, cache 2.00 GiB for 4096 tokens"
	if got := parts(m); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	m.States, m.Slots = 1<<30, 16
	if got := parts(m); got != want+", states 1.00 GiB for 16 sequences" {
		t.Errorf("got %q, want %q and the states", got, want)
	}
}

func TestSummary(t *testing.T) {
	checkpoint, err := weights.Open(written(t, filepath.Join(t.TempDir(), "tiny")))
	if err != nil {
		t.Fatal(err)
	}
	defer checkpoint.Close()
	s, err := summarize("tiny", checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	p, err := instance.Prepare(onOracle(op.F32), checkpoint, instance.Sizes{KVType: op.F32, Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	s.serve(p)
	var out, tensors bytes.Buffer
	if err := s.table.Print(&out); err != nil {
		t.Fatal(err)
	}
	// The parameters: embedding and head 2·64·32, per layer 4·32·32 + 3·32·32 + 2·32, the last norm 32.
	for _, want := range []string{"tiny", "llama", "BF16 ", "(25824)", "none", "64 tokens", "3 of attention", "--memory", "yes, 64 sequences of 64 tokens"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %s, want %q in it", out.String(), want)
		}
	}
	for all, lines := range map[bool]int{true: 1 + 3 + 3*9, false: 1 + 3 + 9} {
		tensors.Reset()
		if err := printTensors(&tensors, tensorTitles, describeTensors(checkpoint, p.Counter), all, wholly); err != nil || strings.Count(tensors.String(), "\n") != lines {
			t.Errorf("all %v: got %d lines, %v, want %d:\n%s", all, strings.Count(tensors.String(), "\n"), err, lines, &tensors)
		}
	}
}

// Each matrix says how it is stored, by which rule, where its scales are and what reads it, also where no kernel does.
func TestMatricesOfGoldens(t *testing.T) {
	cases := []struct {
		golden, hardware string
		want             []string // lines, their cells joined by |; of the kernels a part of their names
		served           bool
	}{
		{"qwen3_moe-nvfp4-modelopt", "h200", []string{
			"embed_tokens|BF16||embedding|1",
			"self_attn.q_proj\nof layers 0…3|nvfp4\nby quant_algo NVFP4|weight_scale\nweight_scale_2|linear_nvfp4|4",
			"mlp.gate\nof layers 0, 2, 3|BF16||linear_bf16|3",
			"mlp.experts.{0…7}.up_proj\nof layers 0, 2, 3|nvfp4\nby quant_algo NVFP4|weight_scale\nweight_scale_2|expert_up_nvfp4|24",
			"lm_head|BF16\nby ignore \"lm_head\"||logits_bf16|1",
		}, true},
		{"qwen3-nvfp4-ct", "h200", []string{
			"self_attn.o_proj\nof layers 0…3|nvfp4\nby config_groups.group_0|weight_scale\nweight_global_scale|linear_nvfp4|4",
		}, true},
		{"qwen3_5_moe-nvfp4-ct", "h200", []string{
			"mlp.shared_expert.up_proj\nof layers 0…3|nvfp4\nby config_groups.group_0|weight_scale\nweight_global_scale|expert_up_nvfp4|4",
			"linear_attn.in_proj_b\nof layers 0…2|BF16\nby ignore \"re:.*in_proj_b$\"||linear_bf16|3",
		}, true},
		{"llama-fp8-block", "h200", []string{"mlp.up_proj\nof layers 0…3|fp8 of blocks\nby quant_method fp8|weight_scale_inv|linear_f8block|4"}, true},
		{"llama-fp8-block", "", []string{"mlp.up_proj\nof layers 0…3|fp8 of blocks\nby quant_method fp8|weight_scale_inv|none|4"}, false},
	}
	for _, c := range cases {
		checkpoint, err := weights.Open(testdata.Shared(t, "golden/"+c.golden))
		if err != nil {
			t.Fatal(err)
		}
		defer checkpoint.Close()
		target := onOracle(op.F32)
		if c.hardware == "" {
			target.Set = withoutF8Blocks{target.Set}
		} else if target, err = (instance.Hardware{Bundles: bundles(), Name: c.hardware}).Ask(); err != nil {
			t.Fatal(err)
		}
		p, err := instance.Prepare(target, checkpoint, instance.Sizes{KVType: op.F32, Memory: 1 << 30})
		if (err == nil) != c.served {
			t.Fatalf("%s: %v", c.golden, err)
		}
		counter, err := instance.Wants(target, checkpoint, 0)
		if err != nil {
			t.Fatal(err)
		}
		matrices, err := describeMatrices(target, counter, p)
		if err != nil {
			t.Fatal(err)
		}
		var lines [][]string
		for _, g := range collapse(matrices) {
			lines = append(lines, slices.Concat([]string{layersBelow(g.name())}, g.Cells, []string{fmt.Sprint(len(g.numbers))}))
		}
		for _, text := range c.want {
			want := strings.Split(text, "|")
			const kernels = 3
			if !slices.ContainsFunc(lines, func(line []string) bool {
				return slices.Equal(line[:kernels], want[:kernels]) && strings.Contains(line[kernels], want[kernels]) && line[kernels+1] == want[kernels+1]
			}) {
				t.Errorf("%s on %s: no line %q in:\n%q", c.golden, c.hardware, text, lines)
			}
		}
	}
}

// Matrices in a form that nothing reads are listed, too: the table says for which of them there are no kernels.
func TestMatricesOfOtherMethods(t *testing.T) {
	config, err := weights.ParseConfig("config.json", []byte(`{"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64,
		"vocab_size": 64, "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "hidden_act": "silu", "quantization_config": {"quant_method": "awq"}}`))
	if err != nil {
		t.Fatal(err)
	}
	target := onOracle(op.F32)
	made, err := instance.Dummy(target, config, dummy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	counter, err := instance.Wants(target, packed{made}, 0)
	if err != nil {
		t.Fatal(err)
	}
	matrices, err := describeMatrices(target, counter, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, m := range matrices {
		if strings.HasSuffix(m.Name, "up_proj") {
			found++
			if want := []string{"I32\nby quant_method awq", "", "none"}; !slices.Equal(m.Cells, want) {
				t.Errorf("got %q, want %q", m.Cells, want)
			}
		}
	}
	if found != 1 {
		t.Errorf("up_proj is listed %d times", found)
	}
}

// packed is a checkpoint whose up projections are packed as AWQ packs them.
type packed struct{ weights.Checkpoint }

func (c packed) Info(name string) (weights.Info, bool) {
	if linear, ok := strings.CutSuffix(name, "up_proj.qweight"); ok {
		return weights.Info{Name: linear + "up_proj.qweight", Type: tensor.I32, Shape: []int64{32, 8}}, true
	}
	if strings.HasSuffix(name, "up_proj.weight") {
		return weights.Info{}, false
	}
	return c.Checkpoint.Info(name)
}

// withoutF8Blocks is a set that has no kernels for FP8 with scales of blocks.
type withoutF8Blocks struct{ bundle.Set }

func (s withoutF8Blocks) PackedBytes(scheme op.Scheme, rows, cols int32) int64 {
	if scheme == op.SchemeF8Block {
		return 0
	}
	return s.Set.PackedBytes(scheme, rows, cols)
}
