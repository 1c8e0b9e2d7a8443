package main

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// countingSet notes how many experts each step's rows pick.
type countingSet struct {
	patient
	picked *[]int
}

func (c countingSet) NormRouteUp(op.Stream, op.NormRouteUp) bool { return false }

func (c countingSet) ExpertUp(q op.Stream, x op.ExpertUp) {
	c.patient.ExpertUp(q, x)
	s, ok := q.(device.Stream)
	if !ok {
		return
	}
	starts := make([]byte, 4*(x.W.Count+1))
	s.Read(starts, x.Starts)
	some := 0
	for e := range int(x.W.Count) {
		if binary.LittleEndian.Uint32(starts[4*e:]) != binary.LittleEndian.Uint32(starts[4*e+4:]) {
			some++
		}
	}
	*c.picked = append(*c.picked, some)
}

// Rows of a prompt do not become alike from layer to layer, as those of random weights would: what is measured with made-up
// mixtures would have most of its experts idle.
func TestPromptsOfMadeUpMixturesPickAllExperts(t *testing.T) {
	const experts, rows, layers = 32, 48, 24
	config := fmt.Sprintf(`{"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_act": "silu",
		"hidden_size": 256, "intermediate_size": 256, "moe_intermediate_size": 64, "num_hidden_layers": %d, "num_attention_heads": 8, "num_key_value_heads": 2,
		"head_dim": 32, "num_experts": %d, "num_experts_per_tok": 2, "norm_topk_prob": true, "vocab_size": 1024, "max_position_embeddings": 512,
		"rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false}`, layers, experts)
	prompt := make([]int32, rows)
	for i := range prompt {
		prompt[i] = int32(i*389+17) % 1024
	}
	for _, scheme := range []op.Scheme{op.SchemeBF16, op.SchemeQ8_0, op.SchemeQ4_0, op.SchemeQ5_0, op.SchemeF8Block, op.SchemeNVFP4} {
		target := onOracle(op.BF16)
		var picked []int
		target.Set = countingSet{target.Set.(patient), &picked}
		m := placeSized(t, target, madeUp(t, target, config, dummy.Options{Scheme: scheme}), instance.Sizes{MaxContext: 64, MaxSequences: 1, MaxBatchTokens: 64, KVType: op.BF16, Memory: 1 << 30})
		picked = picked[:0]
		if _, err := direct(t, m).Logits(prompt, 0, true); err != nil {
			t.Fatal(err)
		}
		if len(picked) != layers {
			t.Fatalf("%v: %d layers routed, want %d", scheme, len(picked), layers)
		}
		// Rows that pick two of 32 at random leave one or two out; those that are alike pick half of them, and fewer with each layer.
		for i, n := range picked {
			if n < 24 {
				t.Errorf("%v: %d rows pick %d of %d experts in layer %d: %v", scheme, rows, n, experts, i, picked)
				break
			}
		}
	}
}
