package oracle_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// settings are those of a row without mask and edits.
type settings struct {
	temperature, topP, minP, sigma, entropy, probability, threshold float32
	topK                                                            int32
}

// probabilities are what tokens are drawn with, from the formulas of op.Sample, token by token. A token that comes before another is more
// probable, or as probable and of a lower id.
func (s settings) probabilities(logits []float32, coin float32) []float64 {
	z := make([]float64, len(logits))
	kept := map[int]bool{}
	for i, logit := range logits {
		if z[i] = float64(logit); !math.IsNaN(z[i]) && !math.IsInf(z[i], 0) {
			kept[i] = true
		}
	}
	comes := func(i, j int) bool { return z[i] > z[j] || z[i] == z[j] && i < j }
	before := func(token int) (others []int) {
		for i := range z {
			if kept[i] && i != token && comes(i, token) {
				others = append(others, i)
			}
		}
		return others
	}
	drop := func(rule func(token int) bool) {
		var out []int
		for i := range z {
			if kept[i] && rule(i) {
				out = append(out, i)
			}
		}
		for _, i := range out {
			delete(kept, i)
		}
	}
	largest := math.Inf(-1)
	for i := range kept {
		largest = max(largest, z[i])
	}
	share := func(token int, temperature float64) float64 {
		sum := 0.0
		for i := range kept {
			sum += math.Exp((z[i] - z[token]) / temperature)
		}
		return 1 / sum
	}
	temperature, h := float64(s.temperature), 0.0
	for i := range kept {
		if p := share(i, 1); p > 0 {
			h -= p * math.Log(p)
		}
	}
	if h < float64(s.entropy) {
		temperature = 0
	}
	if temperature == 0 {
		temperature = 1
		drop(func(i int) bool { return len(before(i)) > 0 })
	}
	if s.sigma > 0 {
		n, sum, squares := float64(len(kept)), 0.0, 0.0
		for i := range kept {
			sum += z[i] - largest
			squares += (z[i] - largest) * (z[i] - largest)
		}
		deviation := math.Sqrt(max(squares/n-sum/n*sum/n, 0))
		drop(func(i int) bool { return z[i] < largest-float64(s.sigma)*deviation })
	}
	drop(func(i int) bool { return math.Exp((z[i]-largest)/temperature) < float64(s.minP) })
	if s.topK > 0 {
		drop(func(i int) bool { return len(before(i)) >= int(s.topK) })
	}
	if s.topP < 1 {
		drop(func(i int) bool {
			sum := 0.0
			for _, j := range before(i) {
				sum += share(j, temperature)
			}
			return sum >= float64(s.topP) && len(before(i)) > 0
		})
	}
	if coin < s.probability {
		likely := map[int]bool{}
		for i := range kept {
			likely[i] = share(i, temperature) >= float64(s.threshold)
		}
		drop(func(i int) bool {
			for j := range z {
				if likely[i] && likely[j] && comes(i, j) {
					return true
				}
			}
			return false
		})
	}
	out := make([]float64, len(z))
	for i := range kept {
		out[i] = share(i, temperature)
	}
	return out
}

// Rows of every kind are drawn as the formulas say, ties and logits that are no numbers among them.
func TestChoicesFollowTheFormulas(t *testing.T) {
	b := newBench(t)
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 11))
		one := func(values ...float32) float32 { return values[r.IntN(len(values))] }
		s := settings{
			temperature: one(0, 0.3, 1, 1, 2.5), topP: one(1, 1, 0.9, 0.4, 0), minP: one(0, 0, 0.03), sigma: one(0, 0.7, 1.3, 3), entropy: one(0, 0, 1.1, 2.3),
			probability: one(0, 0.5, 1), threshold: one(0.01, 0.06, 0.21, 0.6), topK: int32(one(0, 0, 1, 4, 100)),
		}
		logits := make([]float32, 1+r.IntN(40))
		for i := range logits {
			if logits[i] = float32(4 * r.NormFloat64()); r.IntN(4) == 0 {
				logits[i] = float32(r.IntN(3)) // so that some tie
			}
			if r.IntN(10) == 0 {
				logits[i] = one(float32(math.Inf(-1)), float32(math.Inf(1)), float32(math.NaN()))
			}
		}
		drawSeed, position := int64(r.Uint64()), r.Int32()
		x := op.Sample{
			Logits: put(b, logits...), Temperature: put(b, s.temperature), TopP: put(b, s.topP), MinP: put(b, s.minP), TopNSigma: put(b, s.sigma), MinEntropy: put(b, s.entropy),
			XTCProbability: put(b, s.probability), XTCThreshold: put(b, s.threshold), TopK: put(b, s.topK), Seed: put(b, drawSeed), Position: put(b, position),
			EditStarts: put[int32](b, 0, 0), Rows: 1, Vocab: int32(len(logits)),
		}
		got, want := make([]float64, len(logits)), s.probabilities(logits, op.Coin(drawSeed, position))
		for _, c := range oracle.Choices(x, 0) {
			got[c.Token] = c.Probability
		}
		if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
			t.Fatalf("seed %d: %+v of %v:\ngot  %s\nwant %s", seed, s, logits, fmt.Sprint(got), fmt.Sprint(want))
		}
	}
}

// Coins are fair and have nothing to do with draws.
func TestCoins(t *testing.T) {
	const n = 20_000
	heads, both := 0, 0
	for i := range int32(n) {
		coin, draw := op.Coin(7, i) < 0.5, op.Uniform(7, i) < 0.5
		if coin {
			heads++
		}
		if coin && draw {
			both++
		}
	}
	if math.Abs(float64(heads)/n-0.5) > 0.02 || math.Abs(float64(both)/n-0.25) > 0.02 {
		t.Errorf("of %d coins %d show heads, %d of them with a low draw; want a half and a quarter", n, heads, both)
	}
}
