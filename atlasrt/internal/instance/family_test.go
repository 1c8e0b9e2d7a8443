package instance

import (
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/golden"
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

const dense = `"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 64,
	"vocab_size": 50, "max_position_embeddings": 256, "rms_norm_eps": 1e-6, "hidden_act": "silu"`

// prepared makes up a model of a config on the oracle.
func prepared(t *testing.T, config string) (weights.Checkpoint, build, *load.Counter, *Target) {
	t.Helper()
	c, err := weights.ParseConfig("config.json", []byte("{"+config+","+dense+"}"))
	if err != nil {
		t.Fatal(err)
	}
	target := &Target{Device: host.New(0), Set: oracle.New(op.F32), Bundle: &bundle.Bundle{Activations: op.F32}}
	checkpoint, err := Dummy(target, c, dummy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := networkOf(c)
	if err != nil {
		t.Fatal(err)
	}
	counter := load.NewCounter(target.Set, load.Stored(checkpoint, target.Set))
	n.build(target.Set, counter, model.Limits{Rows: 8, Activations: op.F32})
	return checkpoint, n.build, counter, target
}

// What a family reads follows from its config: names that must and must not be wanted.
func TestFamiliesWantWhatTheirConfigSays(t *testing.T) {
	cases := []struct{ name, config, want, not string }{
		{"llama", `"model_type": "llama"`, "lm_head.weight model.layers.1.mlp.up_proj.weight", "self_attn.q_proj.bias self_attn.q_norm.weight"},
		{"tied", `"model_type": "llama", "tie_word_embeddings": true`, "model.embed_tokens.weight", "lm_head.weight"},
		{"llama with biases", `"model_type": "llama", "attention_bias": true, "mlp_bias": true`, "model.layers.0.self_attn.o_proj.bias model.layers.0.mlp.down_proj.bias", ""},
		{"mistral", `"model_type": "mistral", "sliding_window": 16`, "model.layers.0.self_attn.k_proj.weight", "k_proj.bias"},
		{"qwen2", `"model_type": "qwen2"`, "model.layers.0.self_attn.q_proj.bias model.layers.1.self_attn.v_proj.bias", "o_proj.bias q_norm"},
		{"qwen3", `"model_type": "qwen3"`, "model.layers.0.self_attn.q_norm.weight", "q_proj.bias"},
		{"qwen3_moe", `"model_type": "qwen3_moe", "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "mlp_only_layers": [0]`,
			"model.layers.0.mlp.up_proj.weight model.layers.1.mlp.experts.3.down_proj.weight model.layers.1.mlp.gate.weight", "layers.0.mlp.experts layers.1.mlp.up_proj"},
		{"qwen3_5", `"model_type": "qwen3_5", "layer_types": ["linear_attention", "full_attention"]`,
			"model.layers.0.linear_attn.in_proj_qkv.weight model.layers.0.linear_attn.in_proj_a.weight model.layers.0.linear_attn.A_log model.layers.1.self_attn.q_proj.weight model.layers.1.mlp.up_proj.weight lm_head.weight",
			"layers.1.linear_attn layers.0.self_attn in_proj_qkvz mlp.experts mtp visual"},
		{"qwen3_next", `"model_type": "qwen3_next", "layer_types": ["linear_attention", "full_attention"], "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
			"shared_expert_intermediate_size": 16, "mlp_only_layers": [1]`,
			"model.layers.0.linear_attn.in_proj_qkvz.weight model.layers.0.linear_attn.in_proj_ba.weight model.layers.0.mlp.shared_expert.up_proj.weight model.layers.0.mlp.shared_expert_gate.weight model.layers.1.mlp.up_proj.weight",
			"in_proj_qkv.weight layers.1.mlp.experts layers.1.mlp.shared_expert"},
		{"qwen3_5_moe inside", `"model_type": "qwen3_5_moe", "text_config": {"model_type": "qwen3_5_moe_text", "layer_types": ["linear_attention", "full_attention"], "num_experts": 4,
			"num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 0}`,
			"model.layers.1.mlp.experts.3.down_proj.weight model.layers.0.linear_attn.in_proj_z.weight", "shared_expert"},
	}
	for _, c := range cases {
		_, _, counter, _ := prepared(t, c.config)
		var names strings.Builder
		for _, want := range counter.Wants {
			names.WriteString(want.Name + "\n")
		}
		for _, want := range strings.Fields(c.want) {
			if !strings.Contains(names.String(), want+"\n") {
				t.Errorf("%s does not want %s; it wants\n%s", c.name, want, &names)
			}
		}
		for _, not := range strings.Fields(c.not) {
			if strings.Contains(names.String(), not) {
				t.Errorf("%s wants %s", c.name, not)
			}
		}
	}
}

// logits loads a model that prepared has made, and gives its logits at each of twelve tokens.
func logits(t *testing.T, checkpoint weights.Checkpoint, construct build, counter *load.Counter, target *Target) []float32 {
	t.Helper()
	stream, err := target.Device.Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	loader, err := load.NewLoader(t.Context(), checkpoint, target.Device, stream, target.Set, counter)
	if err != nil {
		t.Fatal(err)
	}
	m := construct(target.Set, loader, model.Limits{Rows: 8, Activations: op.F32})
	if err := loader.Finish(); err != nil {
		t.Fatal(err)
	}
	out, err := direct(t, target.Device, target.Set, m, 8, 32).Logits([]int32{3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9, 32}, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Biases and windows must reach the kernels: they change logits, and a window only once it is passed.
func TestBiasesAndWindowsCount(t *testing.T) {
	logits := func(config string) []float32 {
		checkpoint, construct, counter, target := prepared(t, config)
		return logits(t, checkpoint, construct, counter, target)
	}
	plain := logits(`"model_type": "llama"`)
	if d := golden.Worst(logits(`"model_type": "qwen2"`), plain); d == 0 {
		t.Error("qwen2's biases change nothing")
	}
	windowed := logits(`"model_type": "mistral", "sliding_window": 4`)
	const vocab = 50
	if d := golden.Worst(windowed[:4*vocab], plain[:4*vocab]); d != 0 {
		t.Errorf("a window of 4 changes the first four positions by %v", d)
	}
	if d := golden.Worst(windowed[4*vocab:], plain[4*vocab:]); d == 0 {
		t.Error("a window of 4 changes no later position")
	}
}

// Settings of delta nets and of rotations must reach the kernels: each changes logits.
func TestSettingsOfHybridsCount(t *testing.T) {
	logits := func(changes string) []float32 {
		checkpoint, construct, counter, target := prepared(t, `"model_type": "qwen3_5_text", "layer_types": ["linear_attention", "full_attention"], "head_dim": 16, "linear_num_key_heads": 2,
			"linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 6`+changes)
		return logits(t, checkpoint, construct, counter, target)
	}
	plain := logits(``)
	for _, same := range []string{`, "output_gate_type": "swish"`, `, "partial_rotary_factor": 0.25`} {
		if d := golden.Worst(logits(same), plain); d != 0 {
			t.Errorf("%s changes logits by %v", same, d)
		}
	}
	for _, other := range []string{`, "output_gate_type": "sigmoid"`, `, "linear_value_heads_tiled": true`, `, "partial_rotary_factor": 0.5`} {
		if d := golden.Worst(logits(other), plain); d == 0 {
			t.Errorf("%s changes nothing", other)
		}
	}
}

func TestUnknownFamilyIsNamed(t *testing.T) {
	c, err := weights.ParseConfig("config.json", []byte(`{"model_type": "rwkv"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := networkOf(c); err == nil || !strings.Contains(err.Error(), `"rwkv"`) {
		t.Errorf("got %v, want an error that names rwkv", err)
	}
}

// Settings that give no size are those of a part of a model, or of one whose text_config is missing.
func TestSettingsWithoutSizesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"model_type": "qwen3_5", "vision_config": {"hidden_size": 64}}`:  "config.json: none of hidden_size, num_hidden_layers, vocab_size is given",
		`{"model_type": "qwen3_5_moe", "text_config": {}}`:                 "has them in text_config",
		`{"model_type": "llama", "rope_theta": 5}`:                         "none of hidden_size",
		`{"model_type": "qwen3_5", "text_config": {"hidden_size": 64}}`:    "",
		`{"model_type": "llama", "vocab_size": 1000, "unknown_size": 100}`: "",
	} {
		c, err := weights.ParseConfig("config.json", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := networkOf(c); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
