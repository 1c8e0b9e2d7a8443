package main

import (
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// billion is Llama 3.2's shape of a billion parameters, with few words.
const billion = `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 2048,
	"intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
	"vocab_size": 4096, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": true}`

// The same made-up weights on a GPU and, exact, on this machine's CPU: the GPU may lose twice what the plain reference loses by activations in
// bf16. Products of many rows round GGUF's weights to bf16, too; there positions are judged together.
func TestGPUAgreesWithCPUOnABillionParameters(t *testing.T) {
	gpu := instance.Hardware{Bundles: bundles()}
	if target, err := gpu.Open(); err != nil || target.Bundle.Activations != op.BF16 {
		t.Skip("there is no GPU with kernels here")
	} else if err := target.Device.Close(); err != nil {
		t.Fatal(err)
	}
	cpu := ""
	for _, b := range bundles() {
		if cpu == "" && b.Device == "cpu" && (instance.Hardware{Bundles: bundles(), Name: b.Hardware}).Runs() {
			cpu = b.Hardware
		}
	}
	prompt := make([]int32, 48)
	for i := range prompt {
		prompt[i] = int32(i*i*31+7*i+1) % 4096
	}
	open := func(t *testing.T, h instance.Hardware) *instance.Target {
		target, err := h.Open()
		if err != nil {
			t.Fatal(err)
		}
		return target
	}
	logits := func(t *testing.T, target *instance.Target, stored dummy.Options, kv op.DType) []float32 {
		defer target.Device.Close()
		m := placeSized(t, target, madeUp(t, target, billion, stored), instance.Sizes{MaxContext: 64, MaxSequences: 1, MaxBatchTokens: 64, KVType: kv, Memory: 8 << 30})
		all, err := direct(t, m).Logits(prompt, 0, true)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	for _, name := range []string{"bf16", "q4_k", "q6_k", "q5_0"} { // GPUs keep blocks of Q4_K and Q5_0 in others
		t.Run(name, func(t *testing.T) {
			stored, err := dummy.Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			want := logits(t, open(t, instance.Hardware{Bundles: bundles(), Name: cpu, Exact: true}), stored, op.F32)
			got := positionLosses(logits(t, open(t, gpu), stored, op.BF16), want, len(prompt))
			reference := positionLosses(logits(t, onOracle(op.BF16), stored, op.BF16), want, len(prompt))
			for i := range got {
				if name == "bf16" && !(got[i] <= 2*reference[i]) {
					t.Errorf("position %d: relative L2 difference is %.2e, the reference's %.2e", i, got[i], reference[i])
				}
			}
			t.Logf("relative L2 difference of all %d positions together %.2e, the reference's %.2e; of one at most %.2f times the reference's", len(got), middle(got), middle(reference), ratio(got, reference, len(got)))
			if !(middle(got) <= 2*middle(reference)) {
				t.Errorf("relative L2 difference of all positions together is %.2e, the reference's %.2e", middle(got), middle(reference))
			}
		})
	}
}
