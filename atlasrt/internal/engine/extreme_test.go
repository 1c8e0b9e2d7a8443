package engine

import (
	"math"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// However cold a draw is, it takes the likeliest token, and no number overflows.
func TestT029ColdDraws(t *testing.T) {
	f := newFixture(t, nil)
	prompt := []int32{4, 2}
	want := f.model.greedy(prompt, 20)
	for _, temperature := range []float32{1e-4, 1e-30, 1e-38, math.SmallestNonzeroFloat32} {
		for _, minP := range []float32{0, 0.5} {
			r := greedy(prompt, 20)
			r.LogProbs = 2
			r.Sampling.Temperature, r.Sampling.MinP, r.Sampling.TopK, r.Sampling.Seed = temperature, minP, 0, 7
			got := f.ask(t, r)
			if got.err != nil || !slices.Equal(got.tokens, want) {
				t.Errorf("temperature %g, min_p %g: got %v, %v, want %v", temperature, minP, got.tokens, got.err, want)
			}
			for _, l := range got.logProbs {
				if v := float64(l.LogProb); math.IsNaN(v) || v > 0 || v < sample.Floor {
					t.Errorf("temperature %g: a log-probability of %v", temperature, v)
				}
			}
		}
	}
}

// A bias that leaves one token leaves that one. Where all have the same bias, nothing changes.
func TestT038BiasesThatLeaveOne(t *testing.T) {
	f := newFixture(t, nil)
	prompt := []int32{4, 2}
	biased := func(but int32) map[int32]float32 {
		bias := map[int32]float32{}
		for token := range int32(fakeVocab) {
			if token != but {
				bias[token] = -100
			}
		}
		return bias
	}
	likeliest := f.model.greedy(prompt, 20)
	cases := []struct {
		but  int32 // that has no bias; -1: all have one
		want []int32
	}{
		{0, slices.Repeat([]int32{0}, 20)}, {17, slices.Repeat([]int32{17}, 20)}, {fakeVocab - 1, slices.Repeat([]int32{fakeVocab - 1}, 20)}, {-1, likeliest},
	}
	for _, c := range cases {
		for _, temperature := range []float32{0, 0.01, 1} {
			if c.but < 0 && temperature == 1 {
				continue // which draws others than the likeliest
			}
			r := greedy(prompt, 20)
			r.Sampling.Temperature, r.Sampling.LogitBias = temperature, biased(c.but)
			if got := f.ask(t, r); got.err != nil || !slices.Equal(got.tokens, c.want) {
				t.Errorf("all but %d at temperature %g: got %v, %v, want %v", c.but, temperature, got.tokens, got.err, c.want)
			}
		}
	}
	r := greedy(prompt, 20)
	r.Sampling.LogitBias = map[int32]float32{}
	for token := range int32(fakeVocab) {
		r.Sampling.LogitBias[token] = float32(math.Inf(-1))
	}
	if got := f.ask(t, r); got.finish != FinishError || len(got.tokens) != 0 {
		t.Errorf("nothing is left: got %v, %v, %v, want an error", got.tokens, got.finish, got.err)
	}
}
