package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/golden"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// quantised are checkpoints whose linears are stored in FP8 or NVFP4.
var quantised = []string{
	"llama-fp8-block", "qwen3-nvfp4-ct", "qwen3-nvfp4-modelopt", "qwen3_moe-nvfp4-modelopt", "qwen3_next-nvfp4-modelopt", "qwen3_5_moe-nvfp4-ct", "qwen3_5_moe-fp8-block",
}

// Quantised checkpoints run on the reference and on all hardware. transformers dequantised the weights and kept activations in f32,
// so that only roundings of activations are between the two: exact kernels round them to bf16 at most, and so do a GPU's others in
// steps of few rows. A CPU's others round them to bytes where they meet NVFP4.
func TestQuantisedCheckpointsAgreeWithTransformers(t *testing.T) {
	for _, name := range quantised {
		t.Run(name, func(t *testing.T) {
			want := golden.Read(t, name)
			t.Run("oracle-f32", func(t *testing.T) { agrees(t, direct(t, place(t, onOracle(op.F32), want.Checkpoint, true)), want) })
			eachHardwareThat(t, keepsF32, true, func(t *testing.T, target *instance.Target) {
				agrees(t, direct(t, place(t, target, want.Checkpoint, true)), want)
			})
			eachHardwareThat(t, keepsF32, false, func(t *testing.T, target *instance.Target) {
				most := inF32
				if strings.Contains(name, "nvfp4") {
					most = inBytes
				}
				judged(t, target, want.Checkpoint, want.Tokens, 32, most)
			})
			eachHardwareThat(t, keepsBF16, true, func(t *testing.T, target *instance.Target) {
				judged(t, target, want.Checkpoint, want.Tokens, 128, inBF16)
			})
			eachHardwareThat(t, keepsBF16, false, func(t *testing.T, target *instance.Target) {
				judged(t, target, want.Checkpoint, want.Tokens, 32, inBF16)
			})
		})
	}
}

// agrees compares logits of a prompt and what follows it with transformers, where nothing is rounded.
func agrees(t *testing.T, d *engine.Direct, want golden.Golden) {
	t.Helper()
	logits, err := d.Logits(want.Tokens, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	logits = logits[len(logits)-len(want.Logits):]
	difference := golden.Worst(logits, want.Logits)
	t.Logf("max |Δlogit| %.1e over %d positions", difference, len(want.Tokens))
	if !(difference <= 2e-3) {
		t.Errorf("max |Δlogit| is %v, want at most 2e-3", difference)
	}
	greedy, err := d.Greedy(want.Tokens, len(want.Greedy))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(greedy, want.Greedy) {
		t.Errorf("greedy continuation\n got %v\nwant %v", greedy, want.Greedy)
	}
}
