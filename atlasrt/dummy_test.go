package main

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/internal/golden"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// tinyHybrid is a Qwen3.5 with experts as it is published, with few of everything; a head of a delta net has 32 elements.
const tinyHybrid = `{"architectures": ["Qwen3_5MoeForConditionalGeneration"], "model_type": "qwen3_5_moe", "image_token_id": 300, "tie_word_embeddings": false,
	"text_config": {"model_type": "qwen3_5_moe_text", "hidden_act": "silu", "hidden_size": 128, "num_hidden_layers": 8, "num_attention_heads": 4, "num_key_value_heads": 2,
	"head_dim": 32, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 32, "linear_value_head_dim": 32, "linear_conv_kernel_dim": 4,
	"num_experts": 16, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "shared_expert_intermediate_size": 64, "vocab_size": 320, "max_position_embeddings": 4096,
	"rms_norm_eps": 1e-6, "rope_parameters": {"rope_type": "default", "rope_theta": 10000000, "partial_rotary_factor": 0.25, "mrope_section": [2, 1, 1]}}}`

// A written checkpoint has the names and settings of those that are published, and the weights of one that is made up in memory.
func TestWrittenDummies(t *testing.T) {
	settings := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(settings, []byte(tinyHybrid), 0o600); err != nil {
		t.Fatal(err)
	}
	prompt := []int32{5, 1, 200, 31, 7}
	const layer = "model.language_model.layers.0."
	cases := []struct {
		kind, dialect string
		method        string
		there, not    []string // tensors
	}{
		{"bf16", "modelopt", "", []string{"lm_head.weight", layer + "mlp.experts.15.up_proj.weight BF16 [64, 128]", layer + "linear_attn.in_proj_qkv.weight BF16 [256, 128]"}, []string{layer + "linear_attn.out_proj.weight_scale"}},
		{"f8block", "modelopt", `"quant_method":"fp8"`, []string{
			layer + "linear_attn.in_proj_qkv.weight F8_E4M3 [256, 128]", layer + "linear_attn.in_proj_qkv.weight_scale_inv F32 [2, 1]", layer + "linear_attn.out_proj.weight_scale_inv",
			layer + "linear_attn.in_proj_a.weight BF16 [4, 128]", layer + "mlp.gate.weight BF16 [16, 128]", "lm_head.weight BF16", layer + "linear_attn.conv1d.weight BF16 [256, 1, 4]",
		}, nil},
		{"nvfp4", "modelopt", `"quant_algo":"NVFP4"`, []string{
			layer + "mlp.shared_expert.down_proj.weight U8 [128, 32]", layer + "mlp.experts.3.gate_proj.weight_scale F8_E4M3 [64, 8]", layer + "mlp.experts.3.gate_proj.weight_scale_2 F32 []",
			layer + "mlp.experts.3.gate_proj.input_scale F32 []", "lm_head.weight BF16",
		}, nil},
		{"nvfp4", "compressed-tensors", `"format":"nvfp4-pack-quantized"`, []string{
			layer + "linear_attn.in_proj_z.weight_packed U8 [128, 64]", layer + "linear_attn.in_proj_z.weight_global_scale F32 [1]", layer + "linear_attn.in_proj_b.weight BF16",
		}, []string{layer + "linear_attn.in_proj_z.weight"}},
		{"nvfp4_all", "modelopt", `"quant_algo":"NVFP4"`, []string{"lm_head.weight U8 [320, 64]", layer + "linear_attn.in_proj_a.weight U8 [4, 64]", layer + "mlp.gate.weight BF16"}, nil},
	}
	for _, c := range cases {
		folder := filepath.Join(t.TempDir(), "written")
		if err := (&dummyCommand{Settings: settings, Folder: folder, Type: c.kind, Dialect: c.dialect}).Run(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(folder, "config.json"))
		if err != nil || !json.Valid(text) || !strings.Contains(string(text), c.method) || !strings.Contains(string(text), `"text_config":{`) {
			t.Errorf("%s %s: config.json is %s, %v; want %s", c.kind, c.dialect, text, err, c.method)
		}
		stored, err := safetensors.OpenFiles(folder, "model-00001-of-00001.safetensors")
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, name := range stored.Names() {
			x, _ := stored.Tensor(name)
			all = append(all, x.Info.String())
		}
		for _, want := range c.there {
			if !slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, want) }) {
				t.Errorf("%s %s: no %s", c.kind, c.dialect, want)
			}
		}
		for _, name := range c.not {
			if _, ok := stored.Tensor(name); ok {
				t.Errorf("%s %s: there is %s", c.kind, c.dialect, name)
			}
		}
		if err := stored.Close(); err != nil {
			t.Error(err)
		}
		options, err := dummy.Parse(c.kind)
		if err != nil {
			t.Fatal(err)
		}
		options.Dialect = dummy.Dialect(c.dialect)
		target := onOracle(op.F32)
		logits := func(from weights.Checkpoint) []float32 {
			all, err := direct(t, placeSized(t, target, from, smallSizes())).Logits(prompt, 0, true)
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		if got, want := logits(opened(t, folder)), logits(madeUp(t, target, tinyHybrid, options)); !slices.Equal(got, want) {
			t.Errorf("%s %s: logits of the written checkpoint differ from those of one in memory, by up to %v", c.kind, c.dialect, golden.Worst(got, want))
		}
	}
}

// stateSet notes the size of states after each step of a delta net, and how many experts each step's rows pick.
type stateSet struct {
	countingSet
	sizes *[]float64 // root mean square of the elements, by step, layer and head
}

func (c stateSet) DeltaNet(op.Stream, op.DeltaNet) bool { return false }

func (c stateSet) DeltaRule(q op.Stream, x op.DeltaRule) {
	c.patient.DeltaRule(q, x)
	s, ok := q.(device.Stream)
	if !ok {
		return
	}
	head := int(x.ValueDim * x.KeyDim)
	state := make([]byte, 4*head*int(x.ValueHeads))
	s.Read(state, x.State) // of slot 0
	for h := range int(x.ValueHeads) {
		squares := 0.0
		for i := range head {
			v := float64(math.Float32frombits(binary.LittleEndian.Uint32(state[4*(h*head+i):])))
			squares += v * v
		}
		*c.sizes = append(*c.sizes, math.Sqrt(squares/float64(head)))
	}
}

// States of made-up weights neither vanish nor overflow, however long a prompt is, and rows do not become alike: they pick all experts.
func TestStatesOfMadeUpWeights(t *testing.T) {
	target := onOracle(op.F32)
	var sizes []float64
	var picked []int
	target.Set = stateSet{countingSet{target.Set.(patient), &picked}, &sizes}
	m := placeSized(t, target, madeUp(t, target, tinyHybrid, dummy.Options{}), instance.Sizes{MaxContext: 512, MaxSequences: 1, MaxBatchTokens: 64, KVType: op.BF16, Memory: 1 << 30})
	prompt := make([]int32, 256)
	for i := range prompt {
		prompt[i] = int32(i*389+17) % 320
	}
	sizes, picked = nil, nil
	if _, err := direct(t, m).Logits(prompt, 0, true); err != nil {
		t.Fatal(err)
	}
	if want := 4 * 6 * 4; len(sizes) != want { // steps, layers and heads
		t.Fatalf("%d states, want %d", len(sizes), want)
	}
	if least, most := slices.Min(sizes), slices.Max(sizes); !(least > 0.02 && most < 1) {
		t.Errorf("sizes of states are from %v to %v, want 0.02 to 1", least, most)
	}
	if least := slices.Min(picked); least < 15 {
		t.Errorf("64 rows pick %d of 16 experts: %v", least, picked)
	}
}
