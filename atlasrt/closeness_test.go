package main

import (
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// Where activations are bf16, each position may lose twice what the plain reference loses by rounding once after each
// operation: as much again for the roundings inside of operations. Activations that kernels round further, because the checkpoint
// asks for it, the reference rounds likewise, in f32 as well as after bf16; which way a number goes that lies between two then
// hangs on its last bit, and positions are judged together. Where layers keep states the median position is judged.
func TestBF16LosesLittleMoreThanTheOracle(t *testing.T) {
	for _, name := range append(families(), "llama-fp8-block", "qwen3-nvfp4-ct", "qwen3-nvfp4-modelopt", "qwen3_moe-nvfp4-modelopt", "qwen3_next-nvfp4-modelopt",
		"qwen3_5_moe-nvfp4-ct", "qwen3_5_moe-fp8-block") {
		t.Run(name, func(t *testing.T) {
			folder := testdata.Shared(t, "golden/"+name)
			want := readGolden(t, name)
			tied := expertTies(t, folder, want.tokens, nearTie)
			eachHardwareThat(t, keepsBF16, false, func(t *testing.T, target *instance.Target) {
				var layout model.Layout
				logits := func(target *instance.Target, exact bool) []float32 {
					m := place(t, target, folder, exact)
					layout = m.Layout
					all, err := direct(t, m).Logits(want.tokens, 0, true)
					if err != nil {
						t.Fatal(err)
					}
					return all
				}
				truth, rules := want.logits, roundedCalls(t, target, opened(t, folder), want.tokens)
				if len(rules) > 0 {
					truth = logits(onRoundingOracle(t, op.F32, rules), true)
				}
				vocab := len(truth) / len(want.tokens)
				losses := func(logits []float32) []float64 {
					rows := make([]float64, len(want.tokens))
					for i := range rows {
						rows[i] = relative(logits[i*vocab:(i+1)*vocab], truth[i*vocab:(i+1)*vocab])
					}
					return rows
				}
				got, reference := losses(logits(target, false)), losses(logits(onRoundingOracle(t, op.BF16, rules), false))
				compared, worst, states := 0, 0.0, layout.Keeps(model.PerSequence)
				for i := range got {
					if tied[i] {
						continue
					}
					compared++
					worst = max(worst, got[i]/reference[i])
					if len(rules) == 0 && !states && !(got[i] <= 2*reference[i]) {
						t.Errorf("position %d: relative L2 difference is %.2e, the reference's %.2e", i, got[i], reference[i])
					}
				}
				t.Logf("at most %.2f times the reference's loss over %d positions, %d more excluded because experts tie", worst, compared, len(got)-compared)
				if len(rules) > 0 {
					t.Logf("%d products rounded: relative L2 difference of all positions together %.1e, the reference's %.1e", len(rules), middle(got), middle(reference))
				}
				if states {
					t.Logf("relative L2 difference of the median position %.1e, the reference's %.1e", judged(layout, got), judged(layout, reference))
				}
				if states && !(judged(layout, got) <= 2*judged(layout, reference)) {
					t.Errorf("relative L2 difference of the median position is %.2e, the reference's %.2e", judged(layout, got), judged(layout, reference))
				}
				if len(rules) > 0 && !states && !(middle(got) <= 2*middle(reference)) {
					t.Errorf("relative L2 difference of all positions together is %.2e, the reference's %.2e", middle(got), middle(reference))
				}
			})
		})
	}
}
