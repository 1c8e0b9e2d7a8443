package optest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// filters are the settings of a row that draws.
type filters struct {
	temperature, topP, minP, sigma, entropy float32
	exclude, from                           float32 // probability and threshold of XTC
	topK                                    int32
}

func sampleCases(o Options) []*Case {
	var list []*Case
	settings := []struct {
		name string
		f    filters
	}{
		{"greedy", filters{topP: 1}},
		{"plain", filters{temperature: 1, topP: 1}},
		{"cold", filters{temperature: 0.2, topP: 1}},
		{"hot", filters{temperature: 3, topP: 1}},
		{"top p", filters{temperature: 1, topP: 0.9}},
		{"tiny top p", filters{temperature: 1, topP: 1e-6}},
		{"min p", filters{temperature: 1, topP: 1, minP: 0.05}},
		{"top k", filters{temperature: 1, topP: 1, topK: 20}},
		{"top k 1", filters{temperature: 0.7, topP: 1, topK: 1}},
		{"top k above the vocabulary", filters{temperature: 1, topP: 1, topK: 1 << 20}},
		{"all", filters{temperature: 0.6, topP: 0.95, minP: 0.01, topK: 40}},
		{"coldest", filters{temperature: 1e-30, topP: 1}},
		{"colder than that", filters{temperature: 1e-45, topP: 0.9, minP: 0.05}},
		{"top n sigma", filters{temperature: 1, topP: 1, sigma: 1.5}},
		{"wide top n sigma", filters{temperature: 4, topP: 1, sigma: 4}},
		{"no sigma", filters{temperature: 2, topP: 1, sigma: 1e-9}},
		{"top n sigma and others", filters{temperature: 0.8, topP: 0.9, minP: 0.02, sigma: 2, topK: 30}},
		{"calm", filters{temperature: 2, topP: 1, entropy: 20}},
		{"lively", filters{temperature: 2, topP: 0.9, entropy: 0.001}},
		{"xtc", filters{temperature: 1, topP: 1, exclude: 1, from: 0.02}},
		{"hot xtc", filters{temperature: 3, topP: 1, exclude: 1, from: 1e-5}},
		{"xtc of few", filters{temperature: 1.5, topP: 0.9, exclude: 1, from: 0.01, topK: 12}},
		{"xtc of all that are left", filters{temperature: 3, topP: 1, exclude: 1, from: 1e-4, topK: 7}},
		{"xtc of nothing", filters{temperature: 0.1, topP: 1, exclude: 1, from: 0.5}},
		{"xtc by a coin", filters{temperature: 2, topP: 0.95, sigma: 3, exclude: 0.5, from: 0.01}},
	}
	vocabularies := []int{32, 97, 1000, 49152}
	if !o.Short {
		vocabularies = append(vocabularies, 151936)
	}
	mixed := func(vocab int) *Case {
		name := fmt.Sprintf("mixed, edits, vocabulary %d", vocab)
		rows := len(settings)
		return sample(name, rows, vocab, func(r int) filters { return settings[r].f }).edit(rows, vocab).mask(vocab, rows)
	}
	for i, vocab := range vocabularies {
		for k, s := range settings {
			rows := []int{1, 4, 17}[(i+k)%3]
			if vocab > 10000 {
				rows = min(rows, 3)
			}
			name := fmt.Sprintf("%s, vocabulary %d rows %d", s.name, vocab, rows)
			c := sample(name, rows, vocab, func(int) filters { return s.f })
			if k%2 == i%2 {
				c.mask(vocab, rows)
			}
			list = append(list, c)
		}
		list = append(list, mixed(vocab))
	}
	if !o.Short {
		list = append(list, mixed(201088))
	}
	return append(list, sampleTraps()...)
}

// sample makes a case of rows with their filters, and no edits.
func sample(name string, rows, vocab int, of1 func(r int) filters) *Case {
	rng := rand.New(rand.NewPCG(uint64(rows), uint64(vocab)))
	c := of(name, op.Sample{Rows: int32(rows), Vocab: int32(vocab)})
	var temperature, topP, minP, sigma, entropy, exclude, from []float32
	var topK, position []int32
	var seed []int64
	for r := range rows {
		f := of1(r)
		temperature, topP, minP, topK = append(temperature, f.temperature), append(topP, f.topP), append(minP, f.minP), append(topK, f.topK)
		sigma, entropy, exclude, from = append(sigma, f.sigma), append(entropy, f.entropy), append(exclude, f.exclude), append(from, f.from)
		seed, position = append(seed, int64(rng.Uint64())), append(position, rng.Int32N(1<<20))
	}
	set(c, "Temperature", temperature)
	set(c, "TopP", topP)
	set(c, "MinP", minP)
	set(c, "TopNSigma", sigma)
	set(c, "MinEntropy", entropy)
	set(c, "XTCProbability", exclude)
	set(c, "XTCThreshold", from)
	set(c, "TopK", topK)
	set(c, "Seed", seed)
	set(c, "Position", position)
	set(c, "EditStarts", make([]int32, rows+1))
	logits := make([]float64, rows*vocab)
	for i := range logits {
		logits[i] = 3 * rng.NormFloat64()
	}
	c.numbers["Logits"] = logits
	return c
}

// mask rules out about half of the tokens, in all rows but every third, the last row by the first mask.
func (c *Case) mask(vocab, rows int) *Case {
	rng := rand.New(rand.NewPCG(uint64(vocab), uint64(rows)))
	masks := make([]int32, rows)
	n := int32(0)
	for r := range masks {
		if masks[r] = -1; r%3 != 2 {
			masks[r] = int32((rows+1)*2/3) - 1 - n
			n++
		}
	}
	words := make([]uint32, int(n)*((vocab+31)/32))
	for i := range words {
		words[i] = rng.Uint32()
	}
	return c.masks(int(n), words, masks)
}

// masks gives rows their masks.
func (c *Case) masks(n int, words []uint32, rows []int32) *Case {
	c.args.FieldByName("Masks").SetInt(int64(n))
	set(c.with("Mask"), "Mask", words)
	set(c.with("MaskRow"), "MaskRow", rows)
	return c
}

// edit gives every second row some edits: biases, penalties, and tokens that a bias of -∞ rules out.
func (c *Case) edit(rows, vocab int) *Case {
	rng := rand.New(rand.NewPCG(uint64(vocab), 5))
	starts := []int32{0}
	var tokens []int32
	var bias, factor, offset []float32
	for r := range rows {
		if r%2 == 0 {
			for k := range min(30, vocab) {
				tokens = append(tokens, int32((k*31+r)%vocab))
				bias = append(bias, []float32{0, -2, 5, float32(math.Inf(-1))}[k%4])
				factor = append(factor, 1+float32(rng.IntN(3))/4)
				offset = append(offset, -float32(rng.IntN(4))/2)
			}
		}
		starts = append(starts, int32(len(tokens)))
	}
	c.args.FieldByName("Edits").SetInt(int64(len(tokens)))
	set(c, "EditStarts", starts)
	set(c, "EditToken", tokens)
	set(c, "EditBias", bias)
	set(c, "EditFactor", factor)
	set(c, "EditOffset", offset)
	return c
}

// sampleTraps are rows whose logits tie, leave nothing to draw, or are not numbers.
func sampleTraps() []*Case {
	const vocab = 200
	nan, inf := math.NaN(), math.Inf(1)
	row := func(fill func(t int) float64) []float64 {
		values := make([]float64, vocab)
		for t := range values {
			values[t] = fill(t)
		}
		return values
	}
	var logits []float64
	for _, fill := range []func(int) float64{
		func(int) float64 { return 0 },
		func(t int) float64 { return float64(min(t, 150)) },
		func(int) float64 { return -inf },
		func(int) float64 { return nan },
		func(t int) float64 { return []float64{nan, -inf, inf, float64(t) / 100}[t%4] },
		func(t int) float64 { return -1e30 * float64(1+t%7) },
	} {
		logits = append(logits, row(fill)...)
	}
	rows := len(logits) / vocab
	greedy := sample("greedy traps", rows, vocab, func(int) filters { return filters{topP: 1} })
	drawn := sample("drawn traps", rows, vocab, func(int) filters { return filters{temperature: 1, topP: 0.9, minP: 0.1, topK: 50} })
	// Where logits tie, XTC goes by ids.
	excluded := sample("excluded traps", rows, vocab, func(int) filters { return filters{temperature: 1, topP: 1, sigma: 3, exclude: 1, from: 0.001} })
	for _, c := range []*Case{greedy, drawn, excluded} {
		c.numbers["Logits"] = logits
	}
	ruledOut := sample("all ruled out", 2, vocab, func(r int) filters { return filters{temperature: float32(r), topP: 1} })
	ruledOut.masks(1, make([]uint32, (vocab+31)/32), []int32{0, 0})
	return []*Case{greedy, drawn, excluded, ruledOut}
}
