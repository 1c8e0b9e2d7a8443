package main

import (
	"math"
	"testing"
)

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-6*max(1, math.Abs(want)) }

// Divergences that follow by hand from probabilities of quarters and halves.
func TestDivergenceOfRows(t *testing.T) {
	ln := func(p float64) float32 { return float32(math.Log(p)) }
	even, uneven := []float32{ln(.5), ln(.25), ln(.25)}, []float32{ln(.25), ln(.5), ln(.25)}
	shifted := []float32{even[0] + 7, even[1] + 7, even[2] + 7}
	infinite := float32(math.Inf(-1))
	cases := []struct {
		name          string
		right, judged []float32
		divergence    float64
		agree         bool
	}{
		{"the same", even, even, 0, true},
		{"the same but for a constant", even, shifted, 0, true},
		{"others", even, uneven, .5*math.Log(2) - .25*math.Log(2), false},
		{"a token that cannot be", []float32{ln(.5), ln(.5), infinite}, even, .5 * math.Log(2), true},
	}
	for _, c := range cases {
		got := scoreRow(c.right, c.judged, 1)
		if !near(got.divergence, c.divergence) || got.agree != c.agree {
			t.Errorf("%s: got %v, %v, want %v, %v", c.name, got.divergence, got.agree, c.divergence, c.agree)
		}
		if want := -math.Log(.25); c.name == "the same" && (!near(got.loss[0], want) || !near(got.loss[1], want)) {
			t.Errorf("%s: the loss is %v, want %v twice", c.name, got.loss, want)
		}
	}
	rows := score(append(append([]float32{}, even...), even...), append(append([]float32{}, even...), uneven...), 3, []int32{0, 1})
	if len(rows) != 2 || !near(rows[0].divergence, 0) || !near(rows[1].divergence, cases[2].divergence) {
		t.Errorf("two rows: got %v", rows)
	}
}

func TestComparisonOfPositions(t *testing.T) {
	all := make([]scored, 200)
	for i := range all {
		all[i] = scored{divergence: float64(i), agree: i%4 != 0, loss: [2]float64{math.Log(3), math.Log(5)}}
	}
	got := compared(all)
	// The variance of 0…n-1 is n(n+1)/12.
	want := comparison{Tokens: 200, MeanKL: 99.5, KLError: math.Sqrt(201.0 / 12), KL99: 197, MaxKL: 199, SameTop: .75, Perplexity: 5, PerplexityRef: 3}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"mean", got.MeanKL, want.MeanKL}, {"standard error", got.KLError, want.KLError}, {"99th percentile", got.KL99, want.KL99},
		{"most", got.MaxKL, want.MaxKL}, {"agreement", got.SameTop, want.SameTop},
		{"perplexity", got.Perplexity, want.Perplexity}, {"exact perplexity", got.PerplexityRef, want.PerplexityRef},
	} {
		if !near(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
	if got.Tokens != want.Tokens {
		t.Errorf("tokens: got %d, want %d", got.Tokens, want.Tokens)
	}
}
