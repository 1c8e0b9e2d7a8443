package qwen3next

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// read reads small settings of a model type with changes.
func read(t *testing.T, modelType, changes string) (*Config, error) {
	t.Helper()
	keys := map[string]any{"model_type": modelType, "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
		"vocab_size": 100, "max_position_embeddings": 512}
	changed := map[string]any{}
	if err := json.Unmarshal([]byte("{"+changes+"}"), &changed); err != nil {
		t.Fatalf("%s: %v", changes, err)
	}
	maps.Copy(keys, changed)
	text, err := json.Marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	return ReadConfig("config.json", text, modelType)
}

// What makes no sense, and what is not served, is refused by name.
func TestConfigsAreRefused(t *testing.T) {
	cases := []struct{ modelType, changes, want string }{
		{"qwen3_5_text", ``, ""},
		{"qwen3_next", ``, ""},
		{"qwen3_5_moe_text", ``, ""},
		{"qwen3_5_text", `"linear_key_head_dim": 258`, "linear_key_head_dim is 258"},
		{"qwen3_5_text", `"linear_value_head_dim": 31`, "both must be even"},
		{"qwen3_5_text", `"linear_value_head_dim": 0`, "linear_value_head_dim is 0"},
		{"qwen3_5_text", `"linear_conv_kernel_dim": 9`, "linear_conv_kernel_dim is 9"},
		{"qwen3_5_text", `"linear_num_value_heads": 24`, "no multiple of linear_num_key_heads 16"},
		{"qwen3_5_text", `"linear_num_value_heads": 1024, "linear_key_head_dim": 256, "linear_value_head_dim": 256`, "make states of 67108864 elements (at most 16777216 are served)"},
		{"qwen3_5_text", `"linear_num_key_heads": 0`, "linear_num_key_heads is 0"},
		{"qwen3_5_text", `"output_gate_type": "tanh"`, `output_gate_type "tanh" is not served`},
		{"qwen3_5_text", `"attn_output_gate": false`, "attn_output_gate is false"},
		{"qwen3_5_text", `"full_attention_interval": 0`, "full_attention_interval is 0"},
		{"qwen3_5_text", `"layer_types": ["linear_attention"]`, "layer_types has 1 entries"},
		{"qwen3_5_text", `"layer_types": ["mamba", "mamba", "mamba", "mamba"]`, `layer_types has "mamba", which this family does not serve (full_attention and linear_attention are)`},
		{"qwen3_5_text", `"layer_types": ["sliding_attention", "full_attention", "full_attention", "full_attention"]`, `layer_types has "sliding_attention"`},
		{"qwen3_5_text", `"num_hidden_layers": 2000000000`, "num_hidden_layers"},
		{"qwen3_5_text", `"partial_rotary_factor": 0.1`, "3 elements of heads of 32 turn"},
		{"qwen3_5_text", `"rope_parameters": {"rope_theta": 1e6, "mrope_section": [2, 1, 1]}`, ""},
		{"qwen3_5_text", `"rope_parameters": {"rope_theta": 1e6, "mrope_section": [11, 11, 10]}`, "mrope_section is [11 11 10] (it must be three numbers whose sum is 4, the pairs that turn)"},
		{"qwen3_5_text", `"rope_parameters": {"rope_theta": 1e6, "mrope_section": [4]}`, "mrope_section is [4]"},
		{"qwen3_5_text", `"rope_parameters": {"rope_theta": 1e6, "mrope_section": [6, -1, -1]}`, "mrope_section is [6 -1 -1]"},
		{"qwen3_5_text", `"rope_parameters": {"rope_theta": 1e6, "mrope_section": [2147483647, 2147483647, 6]}`, "mrope_section is [2147483647 2147483647 6]"},
		{"qwen3_5_text", `"num_experts": 8`, "num_experts is 8"},
		{"qwen3_5_text", `"hidden_act": "gelu"`, "hidden_act"},
		{"qwen3_next", `"num_experts": 16384, "num_hidden_layers": 4096`, "num_experts is 16384 in 4096 layers, 67108864 in all (at most 131072 are served)"},
		{"qwen3_next", `"num_experts_per_tok": 600`, "num_experts_per_tok is 600"},
		{"qwen3_next", `"shared_expert_intermediate_size": -1`, "shared_expert_intermediate_size is -1"},
		{"qwen3_next", `"decoder_sparse_step": 0`, "decoder_sparse_step is 0"},
		{"qwen3_next", `"num_experts": 0`, "num_experts is 0 (it must be between 1 and 16384)"},
		{"qwen3_next", `"num_local_experts": -3`, "num_local_experts is -3 (it must be between 1 and 16384)"},
		{"qwen3_next", `"num_local_experts": 4`, "num_experts_per_tok is 10 (it must be between 1 and 4)"},
		{"qwen3_next", `"mlp_only_layers": [0, 3]`, ""},
		{"qwen3_next", `"mlp_only_layers": [0, 4]`, "mlp_only_layers has layer 4 (it must be between 0 and 3)"},
		{"qwen3_next", `"mlp_only_layers": [-1]`, "mlp_only_layers has layer -1 (it must be between 0 and 3)"},
		{"qwen3_next", `"rms_norm_eps": 1e39`, "rms_norm_eps is 1e+39, wanted a number that f32 holds"},
		{"qwen3_next", `"rms_norm_eps": 1e-60`, "rms_norm_eps is 1e-60, wanted a number that f32 holds"},
		{"qwen3_next", `"rms_norm_eps": 0`, "rms_norm_eps is 0 (it must be between 0 and 1)"},
		{"qwen3_next", `"num_experts": 8, "num_local_experts": 6`, "num_experts is 8 and num_local_experts, its other name, 6"},
	}
	for _, c := range cases {
		_, err := read(t, c.modelType, c.changes)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s: got %v, want %q", c.modelType, c.changes, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "between 1 and 0") || err != nil && strings.Contains(err.Error(), "between 1 and -") {
			t.Errorf("%s with %s: %v: there is nothing between these", c.modelType, c.changes, err)
		}
	}
}

// A layer that is named a million times is looked for once.
func TestLayersAreListedOnce(t *testing.T) {
	config, err := read(t, "qwen3_next", `"mlp_only_layers": [`+strings.Repeat("2, 1, ", 1000)+`2]`)
	if err != nil {
		t.Fatal(err)
	}
	if got := config.mixture.DenseLayers; !slices.Equal(got, []int32{1, 2}) {
		t.Errorf("got %d layers, want 1 and 2", len(got))
	}
}

// What a file leaves out is as in the family's class: which layers are delta nets, what turns, and what norms are scaled by.
func TestConfigsAreCompleted(t *testing.T) {
	cases := []struct {
		changes   string
		recurrent []int32
	}{
		{`"num_hidden_layers": 6`, []int32{0, 1, 2, 4, 5}},
		{`"num_hidden_layers": 6, "full_attention_interval": 2`, []int32{0, 2, 4}},
		{`"full_attention_interval": 2, "layer_types": ["full_attention", "linear_attention", "linear_attention", "full_attention"]`, []int32{1, 2}},
	}
	for _, c := range cases {
		config, err := read(t, "qwen3_next", c.changes)
		if err != nil {
			t.Fatal(err)
		}
		var got []int32
		for i := range config.Layers {
			if config.recurrent(i) {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, c.recurrent) {
			t.Errorf("%s: layers %v are delta nets, want %v", c.changes, got, c.recurrent)
		}
	}
	ordinary, err := read(t, "qwen3_5_moe_text", ``)
	if err != nil {
		t.Fatal(err)
	}
	if dims := ordinary.Dims(); dims != 8 || ordinary.NormOffset != 1 || ordinary.Tiled || !ordinary.mixture.Normalise || ordinary.mixture.Shared != 512 || len(ordinary.Assumed) > 0 {
		t.Errorf("got %+v with %+v", ordinary, ordinary.mixture)
	}
	translated, err := read(t, "qwen3_5_text", `"norm_unit_offset": false, "linear_value_heads_tiled": true`)
	if err != nil {
		t.Fatal(err)
	}
	if translated.NormOffset != 0 || !translated.Tiled || translated.mixture != nil {
		t.Errorf("got %+v", translated)
	}
}

// What is read otherwise than it is written is said.
func TestConfigsSayWhatTheyAssume(t *testing.T) {
	cases := []struct{ modelType, changes, want string }{
		{"qwen3_5_moe_text", `"norm_topk_prob": false`, "norm_topk_prob is false, but model_type qwen3_5_moe_text divides"},
		{"qwen3_next", `"norm_topk_prob": false`, ""},
		{"qwen3_5_text", `"mamba_ssm_dtype": "bfloat16"`, `mamba_ssm_dtype is "bfloat16": states are kept in float32 all the same`},
		{"qwen3_5_text", `"mamba_ssm_dtype": "float32"`, ""},
		{"qwen3_5_text", `"partial_rotary_factor": 0.25`, ""},
		{"qwen3_5_text", `"output_gate_type": "sigmoid"`, ""},
	}
	for _, c := range cases {
		config, err := read(t, c.modelType, c.changes)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(config.Assumed, "\n"); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s with %s: assumed %q, want %q", c.modelType, c.changes, got, c.want)
		}
	}
}
