package instance

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/model/llama"
	"github.com/atlas-inference/atlas/atlasrt/model/qwen3"
	"github.com/atlas-inference/atlas/atlasrt/model/qwen3moe"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// A config.json that says nothing has the defaults of transformers' class: see tools/testdata/settings.py.
func TestDefaultsAreThoseOfTheClasses(t *testing.T) {
	text, err := os.ReadFile("testdata/classes.json")
	if err != nil {
		t.Fatal(err)
	}
	recorded := map[string]map[string]any{}
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	for kind, want := range recorded {
		says := []byte(fmt.Sprintf(`{"model_type": %q}`, kind))
		var config any
		switch kind {
		case "qwen3":
			config, err = qwen3.ReadConfig("config.json", says, kind)
		case "qwen3_moe":
			config, err = qwen3moe.ReadConfig("config.json", says, kind)
		default:
			config, err = llama.ReadConfig("config.json", says, kind)
		}
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		fields, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		if err := json.Unmarshal(fields, &got); err != nil {
			t.Fatal(err)
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if fmt.Sprint(got[key]) != fmt.Sprint(want[key]) {
				t.Errorf("%s: %s is %v, want %v", kind, key, got[key], want[key])
			}
		}
	}
}

// noted writes a made-up model with these files beside it, and gives what is said about it.
func noted(t *testing.T, config string, files map[string]string) (assumed, unread string, err error) {
	t.Helper()
	made, _, _, _ := prepared(t, `"model_type": "qwen2"`)
	folder := filepath.Join(t.TempDir(), "model")
	if err := weights.Write(folder, made, weights.Layout{ShardBytes: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	files = maps.Clone(files)
	if files == nil {
		files = map[string]string{}
	}
	files["config.json"] = "{" + config + "," + dense + "}"
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := weights.Open(folder)
	if err != nil {
		return "", "", err
	}
	defer c.Close()
	n, err := networkOf(c.Config())
	if err != nil {
		return "", "", err
	}
	set := oracle.New(op.F32)
	counter := load.NewCounter(set, load.Stored(c, set))
	n.build(set, counter, model.Limits{Rows: 8, Activations: op.F32})
	if err := leaveOut(c, counter.Wants); err != nil {
		return "", "", err
	}
	p := &Prepared{Checkpoint: c, Counter: counter}
	assets, err := c.Assets()
	return strings.Join(p.Assumed(), "\n"), strings.Join(append(p.Unread(), unreadAssets(assets)...), "\n"), err
}

func TestNotes(t *testing.T) {
	many := strings.Repeat(`"k%d": 1,`, 30)
	numbers := make([]any, 30)
	for i := range numbers {
		numbers[i] = 100 + i
	}
	cases := []struct {
		name, config    string
		files           map[string]string
		assumed, unread string
	}{
		{"nothing to say", `"model_type": "qwen2", "torch_dtype": "bfloat16", "use_cache": true, "attention_dropout": 0.0, "transformers_version": "4.51.0", "eos_token_id": [1, 2], "max_window_layers": 28`, nil, "", ""},
		{"unknown keys", `"model_type": "qwen2", "foo": 1, "bar": {"x": 1}`, nil, "", "config.json: keys with no effect here: bar, foo"},
		{"inside", `"model_type": "qwen2", "rope_scaling": {"type": "linear", "factor": 2, "beta_fast": 3, "foo": 4, "finetuned": true}`, nil, "",
			"config.json: keys with no effect here: rope_scaling.beta_fast, rope_scaling.foo"},
		{"left-over factor", `"model_type": "qwen2", "rope_scaling": {"rope_type": "default", "factor": 2}`, nil, "config.json: assumed: rope_scaling.factor is 2, but the type of scaling uses none: nothing is stretched",
			"config.json: keys with no effect here: rope_scaling.factor"},
		{"text for a number", `"model_type": "qwen2", "rope_theta": "1e6"`, nil, `config.json: assumed: rope_theta is the text "1e6": read as 1e+06`, ""},
		{"biases", `"model_type": "llama", "sliding_window": 4`, nil,
			"config.json: assumed: biases are left out, as attention_bias, mlp_bias or the model_type say: model.layers.0.self_attn.q_proj.bias, model.layers.0.self_attn.k_proj.bias and 4 more", "config.json: keys with no effect here: sliding_window"},
		{"neutral", `"model_type": "qwen2", "residual_multiplier": 1.0, "attn_logit_softcapping": null`, nil, "", ""},
		{"generation", `"model_type": "qwen2"`, map[string]string{"generation_config.json": `{"temperature": 0.5, "eos_token_id": 2, "num_beams": 4, "_from_model_config": true, "do_sample": true}`}, "",
			"generation_config.json: keys with no effect here: num_beams"},
		{"tokenizer", `"model_type": "qwen2"`, map[string]string{"tokenizer_config.json": `{"tokenizer_class": "X", "bos_token": "<s>", "split_special_tokens": true}`}, "",
			"tokenizer_config.json: keys with no effect here: split_special_tokens"},
		{"tokenizer switched off", `"model_type": "qwen2"`, map[string]string{"tokenizer_config.json": `{"tokenizer_class": "X", "split_special_tokens": false}`}, "", ""},
		{"many", `"model_type": "qwen2", ` + fmt.Sprintf(many, numbers...) + `"z": 1`, nil, "", "k119 and 11 more"},
	}
	for _, c := range cases {
		assumed, unread, err := noted(t, c.config, c.files)
		if err != nil || assumed != c.assumed || unread != c.unread && !(c.name == "many" && strings.HasSuffix(unread, c.unread)) {
			t.Errorf("%s: got\n%s\n%s\n%v\nwant\n%s\n%s", c.name, assumed, unread, err, c.assumed, c.unread)
		}
	}
	if _, _, err := noted(t, `"model_type": "qwen2", "clip_qkv": 8`, nil); err == nil || !strings.Contains(err.Error(), "config.json: clip_qkv is 8") {
		t.Errorf("clip_qkv: %v, want a refusal by name", err)
	}
}

func TestUnreadMetadata(t *testing.T) {
	keys := map[string]any{
		"general.architecture": "llama", "general.name": "x", "llama.block_count": 1, "llama.context_length": 64, "llama.embedding_length": 32, "llama.feed_forward_length": 64,
		"llama.attention.head_count": 2, "llama.attention.layer_norm_rms_epsilon": uint32(0x358637bd), "llama.vocab_size": 50, "llama.rope.dimension_count": 16,
		"llama.attention.sliding_window": 8, "llama.foo": 1, "other.key": "x", "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.foo": 3, "quantize.imatrix.file": "x", "general.size_label": "1B", "general.source.url": "x",
		"general.sampling.mirostat": 1, "tokenizer.ggml.fim_pre_token_id": 3,
		"llama.rope.scaling.type": "yarn",
	}
	checkpoint, err := weights.Open(smallGGUF(t, keys, map[string][]uint64{"token_embd.weight": {32, 50}}))
	if err != nil {
		t.Fatal(err)
	}
	defer checkpoint.Close()
	p := &Prepared{Checkpoint: checkpoint}
	const unread = "x.gguf: keys with no effect here: general.sampling.mirostat, llama.attention.sliding_window, llama.foo, other.key, tokenizer.ggml.foo"
	if got := strings.Join(p.Unread(), "\n"); got != unread {
		t.Errorf("got  %s\nwant %s", got, unread)
	}
	const assumed = "x.gguf: assumed: rope.scaling.type is yarn without a factor: nothing is stretched"
	if got := strings.Join(p.Assumed(), "\n"); got != assumed {
		t.Errorf("got  %s\nwant %s", got, assumed)
	}
}

// Nothing is to be said about a config.json as models are published with: each has the keys of a well-known one.
func TestPublishedConfigsNeedNoNotes(t *testing.T) {
	const all = `"bos_token_id": 1, "eos_token_id": [2, 3], "hidden_act": "silu", "initializer_range": 0.02, "rms_norm_eps": 1e-05, "tie_word_embeddings": false,
		"torch_dtype": "bfloat16", "transformers_version": "4.43.0", "use_cache": true, "vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2,
		"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 64, "attention_dropout": 0.0`
	cases := []struct{ name, config string }{
		{"Llama 3.1", `"architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": false, "mlp_bias": false, "pretraining_tp": 1, "max_position_embeddings": 131072, "rope_theta": 500000.0,
			"rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}`},
		{"Mistral 0.3", `"architectures": ["MistralForCausalLM"], "model_type": "mistral", "max_position_embeddings": 32768, "rope_theta": 1000000.0, "sliding_window": null, "head_dim": 8`},
		{"Qwen 2.5", `"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "max_position_embeddings": 32768, "max_window_layers": 28, "rope_theta": 1000000.0, "sliding_window": 131072, "use_sliding_window": false`},
		{"Qwen 3", `"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "attention_bias": false, "head_dim": 8, "max_position_embeddings": 40960, "max_window_layers": 36, "rope_scaling": null,
			"rope_theta": 1000000, "sliding_window": null, "use_sliding_window": false`},
		{"Qwen 3 MoE", `"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "attention_bias": false, "decoder_sparse_step": 1, "head_dim": 8, "max_position_embeddings": 40960, "max_window_layers": 48,
			"mlp_only_layers": [], "moe_intermediate_size": 16, "norm_topk_prob": true, "num_experts": 4, "num_experts_per_tok": 2, "output_router_logits": false, "rope_scaling": null, "rope_theta": 1000000.0,
			"router_aux_loss_coef": 0.001, "sliding_window": null, "use_sliding_window": false`},
		{"Qwen 3 Coder", `"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "attention_bias": false, "decoder_sparse_step": 1, "head_dim": 8, "max_position_embeddings": 262144, "max_window_layers": 28,
			"mlp_only_layers": [], "moe_intermediate_size": 16, "norm_topk_prob": true, "num_experts": 4, "num_experts_per_tok": 2, "output_router_logits": false, "qkv_bias": false, "rope_scaling": null,
			"rope_theta": 10000000, "router_aux_loss_coef": 0.0, "shared_expert_intermediate_size": 0, "sliding_window": null, "use_qk_norm": true, "use_sliding_window": false`},
		{"SmolLM 2", `"architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": false, "is_llama_config": true, "max_position_embeddings": 8192, "mlp_bias": false, "pad_token_id": 2,
			"pretraining_tp": 1, "rope_interleaved": false, "rope_scaling": null, "rope_theta": 100000, "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}}`},
		{"R1 distilled", `"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "max_position_embeddings": 131072, "max_window_layers": 21, "rope_theta": 10000, "sliding_window": 4096, "use_mrope": false,
			"use_sliding_window": false`},
		{"transformers 5", `"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "dtype": "bfloat16", "layer_types": ["full_attention", "full_attention"], "max_position_embeddings": 32768, "max_window_layers": 28,
			"pad_token_id": null, "rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"}, "sliding_window": null, "use_sliding_window": false`},
		{"Qwen 3 Next", `"architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "attention_bias": false, "decoder_sparse_step": 1, "full_attention_interval": 4, "head_dim": 16,
			"linear_conv_kernel_dim": 4, "linear_key_head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_value_head_dim": 16, "max_position_embeddings": 262144,
			"mlp_only_layers": [], "moe_intermediate_size": 16, "norm_topk_prob": true, "num_experts": 4, "num_experts_per_tok": 2, "output_router_logits": false, "partial_rotary_factor": 0.25,
			"rope_scaling": null, "rope_theta": 10000000, "router_aux_loss_coef": 0.001, "shared_expert_intermediate_size": 16`},
		{"Qwen 3.5", `"architectures": ["Qwen3_5MoeForConditionalGeneration"], "image_token_id": 40, "model_type": "qwen3_5_moe", "video_token_id": 41, "vision_end_token_id": 42, "vision_start_token_id": 43,
			"vision_config": {"depth": 27, "hidden_size": 1152}, "text_config": {"attention_bias": false, "attn_output_gate": true, "full_attention_interval": 4, "head_dim": 64, "dtype": "bfloat16",
			"linear_conv_kernel_dim": 4, "linear_key_head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_value_head_dim": 16, "mamba_ssm_dtype": "float32",
			"max_position_embeddings": 262144, "model_type": "qwen3_5_moe_text", "moe_intermediate_size": 16, "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": false, "num_experts": 4,
			"num_experts_per_tok": 2, "router_aux_loss_coef": 0.001, "shared_expert_intermediate_size": 16,
			"rope_parameters": {"mrope_interleaved": true, "mrope_section": [3, 3, 2], "partial_rotary_factor": 0.25, "rope_theta": 10000000, "rope_type": "default"}}`},
	}
	for _, c := range cases {
		config, err := weights.ParseConfig("config.json", []byte("{"+c.config+","+all+"}"))
		if err != nil {
			t.Fatal(err)
		}
		config = config.Text()
		if _, err := networkOf(config); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if left := unread(nil, "config.json", config.Unread(), effectless.config); len(left)+len(config.Assumed()) > 0 {
			t.Errorf("%s: %v %v, want nothing said", c.name, left, config.Assumed())
		}
	}
}
