package weights

import (
	"fmt"
	"math"
	"slices"
)

// unservedKeys are metadata of an architecture that change the mathematics, with the values besides 0 and false that change
// nothing.
var unservedKeys = []struct {
	key     string
	neutral []float64
}{
	{"attn_logit_softcapping", nil},
	{"final_logit_softcapping", nil},
	{"router_logit_softcapping", nil},
	{"logit_scale", []float64{1}},
	{"embedding_scale", []float64{1}},
	{"residual_scale", []float64{1}},
	{"use_parallel_residual", nil},
	{"swin_norm", nil},
	{"pooling_type", nil},
	{"attention.clamp_kqv", nil},
	{"attention.max_alibi_bias", nil},
	{"attention.output_scale", []float64{1}},
	{"attention.temperature_scale", nil},
	{"attention.temperature_length", nil},
	{"attention.shared_kv_layers", nil},
	{"rope.scaling.alpha", []float64{1}},
	{"expert_weights_scale", []float64{1}},
	{"expert_shared_count", nil},
	{"expert_shared_feed_forward_length", nil},
	{"expert_group_count", []float64{1}},
	{"expert_group_used_count", []float64{1}},
	{"expert_gating_func", []float64{1}}, // softmax
	{"leading_dense_block_count", nil},
	{"interleave_moe_layer_step", []float64{1}},
	{"nextn_predict_layers", nil},
}

// hybridKeys are those of unservedKeys that hybrid architectures read.
var hybridKeys = []string{"expert_shared_feed_forward_length", "nextn_predict_layers"}

// refuseUnserved refuses files whose metadata ask for what no model here does.
func (t *translator) refuseUnserved() {
	for _, unserved := range unservedKeys {
		if t.arch.hybrid && slices.Contains(hybridKeys, unserved.key) {
			continue
		}
		value, neutral := t.value(unserved.key), append([]float64{0}, unserved.neutral...)
		if slices.ContainsFunc(neutral, func(n float64) bool { return n == value }) {
			continue
		}
		t.refuseValue(unserved.key, value)
	}
	if causal, err := t.file.Bool(t.prefix + "attention.causal"); t.present(err) && !causal {
		t.refuseValue("attention.causal", false)
	}
	head, _ := asInt(t.values["head_dim"])
	if scale := t.value("attention.scale"); scale != 0 && math.Abs(scale*math.Sqrt(float64(head))-1) > 1e-5 {
		t.refuseValue("attention.scale", scale)
	}
}

func (t *translator) refuseValue(key string, value any) {
	t.problems = append(t.problems, fmt.Errorf("metadata key %s%s is %v, which changes the mathematics and is not served for this architecture", t.prefix, key, value))
}

// value reads an optional number or bool; absent is 0.
func (t *translator) value(key string) float64 {
	if on, err := t.file.Bool(t.prefix + key); err == nil {
		return map[bool]float64{true: 1}[on]
	}
	return t.orElse(key, 0)
}
