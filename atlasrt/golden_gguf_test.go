package main

import (
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/golden"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf/gguftest"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// A checkpoint that was converted gives the logits of one with the same values under HuggingFace's names; where these are the published
// values, those are transformers'.
func TestConvertedHybridsAgree(t *testing.T) {
	for _, name := range []string{"qwen3_next", "qwen3_5_text", "qwen3_5_moe"} {
		for _, kind := range []tensor.Type{tensor.F32, tensor.BF16, tensor.Q8_0, tensor.Q4_0} {
			t.Run(name+" "+kind.String(), func(t *testing.T) {
				recorded := golden.Read(t, name)
				file, plain := gguftest.Hybrid(t, recorded.Checkpoint, kind)
				target := onOracle(op.F32)
				logits := func(path string) []float32 {
					all, err := direct(t, place(t, target, path, true)).Logits(recorded.Tokens, 0, true)
					if err != nil {
						t.Fatal(err)
					}
					return all
				}
				got, want := logits(file), recorded.Logits
				if kind.Quantized() {
					want = logits(plain)
				}
				difference := golden.Worst(got, want)
				t.Logf("max |Δlogit| %.1e over %d positions", difference, len(recorded.Tokens))
				if !(difference <= 2e-3) {
					t.Errorf("max |Δlogit| is %v, want at most 2e-3", difference)
				}
			})
		}
	}
}

// So does its head, which drafts.
func TestConvertedHeadsAgree(t *testing.T) {
	g, want := readHead(t, "qwen3_next-mtp")
	for _, kind := range []tensor.Type{tensor.F32, tensor.BF16} {
		t.Run(kind.String(), func(t *testing.T) {
			file, _ := gguftest.Hybrid(t, g.Checkpoint, kind)
			got, err := headOf(placeHead(t, onOracle(op.F32), file, op.F32), g.Tokens, 0)
			if err != nil {
				t.Fatal(err)
			}
			if d := golden.Worst(got.scores, want.scores); !(d <= 2e-3) || !slices.Equal(got.draft, want.draft) {
				t.Errorf("drafted %v, want %v; max |Δ| of scores is %v, want at most 2e-3", got.draft, want.draft, d)
			}
		})
	}
}
