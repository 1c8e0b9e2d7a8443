package main

import (
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// Where activations are bf16, each position may lose twice what the plain reference loses by rounding once after each
// operation: as much again for the roundings inside of operations.
func TestBF16LosesLittleMoreThanTheOracle(t *testing.T) {
	for _, name := range []string{"llama", "qwen3", "qwen3_moe", "llama-fp8-block", "qwen3-nvfp4-ct", "qwen3-nvfp4-modelopt", "qwen3_moe-nvfp4-modelopt"} {
		t.Run(name, func(t *testing.T) {
			folder := testdata.Shared(t, "golden/"+name)
			want := readGolden(t, folder+"/golden.safetensors")
			tied := expertTies(t, folder, want.tokens)
			eachHardware(t, false, func(t *testing.T, target *instance.Target) {
				if target.Bundle.Activations != op.BF16 {
					t.Skipf("activations are %s here", target.Bundle.Activations)
				}
				losses := func(target *instance.Target) []float64 {
					m := place(t, target, folder, false)
					logits, err := direct(t, m).Logits(want.tokens, 0, true)
					if err != nil {
						t.Fatal(err)
					}
					vocab, rows := int(m.Layout.Vocab), make([]float64, len(want.tokens))
					for i := range rows {
						rows[i] = relative(logits[i*vocab:(i+1)*vocab], want.logits[i*vocab:(i+1)*vocab])
					}
					return rows
				}
				got, reference := losses(target), losses(onOracle(op.BF16))
				compared, worst := 0, 0.0
				for i := range got {
					if tied[i] {
						continue
					}
					compared++
					worst = max(worst, got[i]/reference[i])
					if !(got[i] <= 2*reference[i]) {
						t.Errorf("position %d: relative L2 difference is %.2e, the reference's %.2e", i, got[i], reference[i])
					}
				}
				t.Logf("at most %.2f times the reference's loss over %d positions, %d more excluded because experts tie", worst, compared, len(got)-compared)
			})
		})
	}
}
