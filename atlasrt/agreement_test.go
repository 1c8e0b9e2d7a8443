package main

import (
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// billion is Llama 3.2's shape of a billion parameters, with few words.
const billion = `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 2048,
	"intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
	"vocab_size": 4096, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": true}`

// The same made-up weights on a GPU and, exact, on this machine's CPU: the GPU may lose what activations in bf16 cost.
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
	logits := func(t *testing.T, h instance.Hardware, stored dummy.Options, kv op.DType) []float32 {
		config, err := weights.ParseConfig("config.json", []byte(billion))
		if err != nil {
			t.Fatal(err)
		}
		target, err := h.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer target.Device.Close()
		checkpoint, err := instance.Dummy(target, config, stored)
		if err != nil {
			t.Fatal(err)
		}
		p, err := instance.Prepare(target, checkpoint, instance.Sizes{MaxContext: 64, MaxSequences: 1, MaxBatchTokens: 64, KVType: kv, Memory: 8 << 30})
		if err != nil {
			t.Fatal(err)
		}
		m, err := p.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
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
			got, want := logits(t, gpu, stored, op.BF16), logits(t, instance.Hardware{Bundles: bundles(), Name: cpu, Exact: true}, stored, op.F32)
			vocab, worst := len(want)/len(prompt), 0.0
			for i := range prompt {
				worst = max(worst, relative(got[i*vocab:(i+1)*vocab], want[i*vocab:(i+1)*vocab]))
			}
			t.Logf("largest relative L2 difference %.2e over %d positions", worst, len(prompt))
			if !(worst <= 4e-2) {
				t.Errorf("relative L2 differences reach %.2e, want at most 4e-2", worst)
			}
		})
	}
}
