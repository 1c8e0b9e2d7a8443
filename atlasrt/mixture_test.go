package main

import (
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// mixedSet serves some of the norms that are one with a projection, and counts them.
type mixedSet struct {
	patient
	serves func(x op.NormLinear) bool
	served map[op.Scheme]int
}

func (m mixedSet) NormLinear(q op.Stream, x op.NormLinear) bool {
	if !m.serves(x) || !m.patient.NormLinear(q, x) {
		return false
	}
	m.served[x.W.Scheme]++
	return true
}

// Values in another scheme than queries and keys are a matrix of their own, which normalises for itself, or waits for a norm that is a launch.
func TestProjectionsOfAMixtureNormaliseForThemselves(t *testing.T) {
	const layers = `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 256, "intermediate_size": 256,
		"num_hidden_layers": 8, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 64, "max_position_embeddings": 512,
		"rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false}`
	stored, err := dummy.Parse("q4_k_m")
	if err != nil {
		t.Fatal(err)
	}
	logits := func(serves func(x op.NormLinear) bool) ([]float32, map[op.Scheme]int) {
		target, served := onOracle(op.F32), map[op.Scheme]int{}
		target.Set = mixedSet{target.Set.(patient), serves, served}
		m := placeSized(t, target, madeUp(t, target, layers, stored), instance.Sizes{MaxContext: 64, MaxSequences: 1, MaxBatchTokens: 64, KVType: op.F32, Memory: 1 << 30})
		clear(served)
		all, err := direct(t, m).Logits([]int32{3, 1, 4, 1, 5}, 0, true)
		if err != nil {
			t.Fatal(err)
		}
		return all, served
	}
	want, _ := logits(func(op.NormLinear) bool { return false })
	all, served := logits(func(op.NormLinear) bool { return true })
	// Four of eight layers have their values in Q6_K: the first, the last and two between.
	if served[op.SchemeQ4_K] == 0 || 2*served[op.SchemeQ6_K] != served[op.SchemeQ4_K] {
		t.Errorf("%v norms with projections, wanted half as many of q6_k as of q4_k", served)
	}
	some, _ := logits(func(x op.NormLinear) bool { return x.W.Scheme == op.SchemeQ4_K })
	others, _ := logits(func(x op.NormLinear) bool { return x.W.Scheme == op.SchemeQ6_K })
	for name, got := range map[string][]float32{"all": all, "queries and keys": some, "values": others} {
		if d := relative(got, want); !(d <= 1e-6) {
			t.Errorf("%s with norms of their own: relative L2 difference %.2e", name, d)
		}
	}
}
