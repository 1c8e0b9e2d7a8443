package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/internal/testdata"
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
			folder := testdata.Shared(t, "golden/"+name)
			want := readGolden(t, name)
			tied := expertTies(t, folder, want.tokens, nearTie)
			for _, act := range []op.DType{op.F32, op.BF16} {
				target := onOracle(act)
				t.Run(target.Bundle.Hardware, func(t *testing.T) { agrees(t, target, folder, want, tied, closeness(target), true, 128) })
			}
			eachHardware(t, true, func(t *testing.T, target *instance.Target) {
				agrees(t, target, folder, want, tied, closeness(target), true, 128)
			})
			eachHardware(t, false, func(t *testing.T, target *instance.Target) {
				tied, limit := tied, closeness(target)
				if keepsF32(target.Bundle) && strings.Contains(name, "nvfp4") {
					tied, limit = expertTies(t, folder, want.tokens, 3*nearTie), inBytes
				}
				agrees(t, target, folder, want, tied, limit, false, 32)
			})
		})
	}
}

// inBytes is how far, in relative L2, the logits of these small models may be off where a CPU rounds activations to bytes. Where weights
// are dense it comes to half of that, 1.6 times what the reference loses by rounding to bf16.
const inBytes = 6e-2

// agrees compares logits of a prompt in steps of so many rows. Exact targets whose activations are f32 must also write what
// transformers writes; others may round at every position where no experts tie.
func agrees(t *testing.T, target *instance.Target, folder string, want golden, tied []bool, limit float64, exact bool, rows int) {
	t.Helper()
	sizes := smallSizes()
	sizes.MaxBatchTokens = rows
	if exact = exact && target.Bundle.Activations == op.F32; exact {
		sizes.KVType = op.F32
	}
	m := placeSized(t, target, opened(t, folder), sizes)
	d := direct(t, m)
	logits, err := d.Logits(want.tokens, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	vocab := int(m.Layout.Vocab)
	var losses []float64
	for i := range want.tokens {
		if !tied[i] || exact {
			losses = append(losses, relative(logits[i*vocab:(i+1)*vocab], want.logits[i*vocab:(i+1)*vocab]))
		}
	}
	loss := judged(m.Layout, losses)
	t.Logf("%d rows a step, f32 throughout: %t; relative L2 difference %.1e over %d of %d positions, max |Δlogit| %.1e",
		rows, exact, loss, len(losses), len(want.tokens), worst(logits, want.logits))
	switch {
	case !exact && !(loss <= limit):
		t.Errorf("relative L2 difference is %.2e, want at most %.0e", loss, limit)
	case exact && !(worst(logits, want.logits) <= 2e-3):
		t.Errorf("max |Δlogit| is %v, want at most 2e-3", worst(logits, want.logits))
	case exact:
		greedy, err := d.Greedy(want.tokens, len(want.greedy))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(greedy, want.greedy) {
			t.Errorf("greedy continuation\n got %v\nwant %v", greedy, want.greedy)
		}
	}
}
