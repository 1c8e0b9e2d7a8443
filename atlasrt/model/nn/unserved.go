package nn

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// unserved lists settings of similar models that change the result and that no family here serves. With each stand the values, as JSON,
// that change nothing; nil stands for everything that Python counts as false. Null never changes anything.
var unserved = map[string][]string{
	"attn_logit_softcapping":          nil, // Gemma 2, Grok
	"final_logit_softcapping":         nil,
	"router_logit_softcapping":        nil,
	"attention_multiplier":            nil, // Granite: in place of 1/√head_dim
	"query_pre_attn_scalar":           nil, // Gemma
	"residual_multiplier":             {"1"},
	"embedding_multiplier":            {"1"},
	"logits_scaling":                  {"1"},
	"logit_scale":                     {"1"}, // Cohere
	"embedding_scale":                 {"1"},
	"scale_emb":                       {"1"}, // MiniCPM
	"scale_depth":                     nil,
	"dim_model_base":                  nil,
	"clip_qkv":                        nil, // OLMo
	"use_qk_norm":                     nil, // Cohere, Hunyuan
	"qk_layernorm":                    nil, // StableLM, Phi
	"qkv_bias":                        nil, // Qwen, where the class has no such switch
	"use_bias":                        nil,
	"lm_head_bias":                    nil,
	"alibi":                           nil,
	"use_parallel_residual":           nil, // GPT-NeoX
	"parallel_attn":                   nil, // Falcon
	"is_causal":                       {"true"},
	"use_bidirectional_attention":     nil,
	"is_encoder_decoder":              nil,
	"add_cross_attention":             nil,
	"attention_chunk_size":            nil, // Llama 4
	"attn_temperature_tuning":         nil,
	"llama_4_scaling":                 nil, // Ministral 3
	"no_rope_layers":                  nil, // SmolLM 3
	"no_rope_layer_interval":          nil,
	"sliding_window_pattern":          {"0", "1"}, // Gemma 3, Cohere 2
	"rope_local_base_freq":            nil,
	"rope_interleave":                 nil,
	"rope_interleaved":                nil,
	"per_layer_config":                nil,
	"num_experts":                     nil, // where the family has none
	"num_local_experts":               nil,
	"n_routed_experts":                nil,
	"n_shared_experts":                nil, // DeepSeek
	"shared_expert_intermediate_size": nil, // Qwen2-MoE
	"routed_scaling_factor":           {"1"},
	"n_group":                         {"0", "1"},
	"topk_group":                      {"0", "1"},
	"scoring_func":                    {`"softmax"`},
	"hidden_activation":               {`"silu"`},
}

// unservedScaling is the same for rope_scaling and rope_parameters.
var unservedScaling = map[string][]string{
	"alpha":                {"1"}, // Hunyuan: another base for dynamic scaling
	"attn_factor":          {"1"}, // one loader multiplies by it, one replaces attention_factor, one leaves it out
	"llama_4_scaling_beta": nil,
}

// refuseUnserved is an error for each setting of unserved whose value would change the result. It returns the keys of those settings
// whose value changes nothing.
func refuseUnserved(values map[string]any, c *Config) (neutral []string, err error) {
	var problems []error
	check := func(values map[string]any, prefix string, table map[string][]string) {
		for _, key := range slices.Sorted(maps.Keys(table)) {
			value, given := values[key]
			switch {
			case !given || slices.Contains(c.known, prefix+key):
			case value == nil, table[key] == nil && empty(value), c.inherent(prefix+key, value), slices.ContainsFunc(table[key], func(text string) bool { return equal(value, text) }):
				neutral = append(neutral, prefix+key)
			default:
				problems = append(problems, fmt.Errorf("%s%s is %s, which changes the mathematics and is not served for model_type %q", prefix, key, show(value), c.ModelType))
			}
		}
	}
	check(values, "", unserved)
	for _, object := range []string{"rope_scaling", "rope_parameters"} {
		inside, _ := values[object].(map[string]any)
		check(inside, object+".", unservedScaling)
	}
	return neutral, errors.Join(problems...)
}

// inherent reports whether a setting asks for what the family always does.
func (c *Config) inherent(key string, value any) bool {
	text, ok := c.Inherent[key]
	return ok && equal(value, text)
}

// empty reports whether Python counts a value as false.
func empty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case bool:
		return !value
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	f, ok := number(value)
	return ok && f == 0
}

// equal compares a value with JSON text. Numbers are compared as numbers: 1 equals 1.0.
func equal(value any, text string) bool {
	if f, ok := number(value); ok {
		g, ok := number(json.Number(text))
		return ok && f == g
	}
	return show(value) == text
}
