package oracle

import (
	"cmp"
	"math"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Choice is a token that a row may draw.
type Choice struct {
	Token       int32   // its id
	Probability float64 // from 0 to 1
}

// Sample draws tokens.
func (*Set) Sample(_ op.Stream, x op.Sample) {
	out := slice[int32](x.Out, int(x.Rows))
	parallel(len(out), func(from, to int) {
		for r := from; r < to; r++ {
			u := op.Uniform(slice[int64](x.Seed, len(out))[r], slice[int32](x.Position, len(out))[r])
			out[r] = draw(Choices(x, r), float64(u))
		}
	})
}

// draw inverts the cumulative distribution at u; -1 where there is nothing to draw.
func draw(choices []Choice, u float64) int32 {
	token, sum := int32(-1), 0.0
	for _, c := range choices {
		token = c.Token
		if sum += c.Probability; sum > u {
			break
		}
	}
	return token
}

// Choices are the tokens that row r of a call draws from, the most likely first; their probabilities sum to one. Temperature 0 leaves one.
// Logits that are not finite are ruled out. Tests use it to see how near a draw was to another token.
func Choices(x op.Sample, r int) []Choice {
	choices := candidates(x, r)
	if len(choices) == 0 {
		return nil
	}
	of := func(p op.Ptr) float64 { return float64(slice[float32](p, int(x.Rows))[r]) }
	temperature := of(x.Temperature)
	if h := of(x.MinEntropy); temperature <= 0 || h > 0 && entropy(choices) < h {
		return []Choice{{choices[0].Token, 1}}
	}
	if n := of(x.TopNSigma); n > 0 {
		least := choices[0].Probability - n*deviation(choices)
		choices = leading(choices, func(c Choice) bool { return c.Probability >= least })
	}
	for i := range choices {
		choices[i].Probability /= temperature
	}
	if m := of(x.MinP); m > 0 {
		least := choices[0].Probability + math.Log(m)
		choices = leading(choices, func(c Choice) bool { return c.Probability >= least })
	}
	if k := int(slice[int32](x.TopK, int(x.Rows))[r]); k > 0 && k < len(choices) {
		choices = choices[:k]
	}
	exponentiate(choices)
	if p := of(x.TopP); p < 1 {
		before := 0.0
		choices = leading(choices, func(c Choice) bool {
			keep := before < p || before == 0
			before += c.Probability
			return keep
		})
		rescale(choices)
	}
	seed, position := slice[int64](x.Seed, int(x.Rows))[r], slice[int32](x.Position, int(x.Rows))[r]
	if float64(op.Coin(seed, position)) < of(x.XTCProbability) {
		choices = withoutTop(choices, of(x.XTCThreshold))
	}
	return choices
}

// candidates lists the tokens that are not ruled out, the largest edited logit first, the lower id first where two tie. Until exponentiate
// is called, Probability holds the logit.
func candidates(x op.Sample, r int) []Choice {
	vocab := int(x.Vocab)
	logits := slices.Clone(slice[float32](x.Logits, int(x.Rows)*vocab)[r*vocab : (r+1)*vocab])
	edit(logits, x, r)
	var mask []uint32
	if x.Mask != 0 {
		words := (vocab + 31) / 32
		if m := int(slice[int32](x.MaskRow, int(x.Rows))[r]); m >= 0 {
			mask = slice[uint32](x.Mask, int(x.Masks)*words)[m*words : (m+1)*words]
		}
	}
	choices := make([]Choice, 0, vocab)
	for t, z := range logits {
		allowed := mask == nil || mask[t/32]>>(t%32)&1 == 1
		if allowed && !math.IsInf(float64(z), 0) && z == z {
			choices = append(choices, Choice{int32(t), float64(z)})
		}
	}
	slices.SortFunc(choices, func(a, b Choice) int {
		if a.Probability != b.Probability {
			return cmp.Compare(b.Probability, a.Probability)
		}
		return cmp.Compare(a.Token, b.Token)
	})
	return choices
}

// edit changes logits in float32 and rounds after each step, as kernels do: so logits that tie in a kernel tie here, too.
func edit(logits []float32, x op.Sample, r int) {
	starts := slice[int32](x.EditStarts, int(x.Rows)+1)
	edits := int(x.Edits)
	tokens, biases := slice[int32](x.EditToken, edits), slice[float32](x.EditBias, edits)
	factors, offsets := slice[float32](x.EditFactor, edits), slice[float32](x.EditOffset, edits)
	for e := starts[r]; e < starts[r+1]; e++ {
		if tokens[e] < 0 || tokens[e] >= x.Vocab {
			continue
		}
		z := logits[tokens[e]] + biases[e]
		if z > 0 {
			z /= factors[e]
		} else {
			z = float32(z * factors[e]) // the conversion forbids a fused multiply-add
		}
		logits[tokens[e]] = z + offsets[e]
	}
}

// leading is the choices before the first one for which keep is false.
func leading(choices []Choice, keep func(Choice) bool) []Choice {
	for i, c := range choices {
		if !keep(c) {
			return choices[:i]
		}
	}
	return choices
}

// withoutTop leaves out the choices of at least a probability, but for the last of them.
func withoutTop(choices []Choice, threshold float64) []Choice {
	top := leading(choices, func(c Choice) bool { return c.Probability >= threshold })
	if len(top) < 2 {
		return choices
	}
	choices = choices[len(top)-1:]
	rescale(choices)
	return choices
}

// deviation is the standard deviation of logits.
func deviation(choices []Choice) float64 {
	mean, variance := 0.0, 0.0
	for _, c := range choices {
		mean += c.Probability / float64(len(choices))
	}
	for _, c := range choices {
		variance += (c.Probability - mean) * (c.Probability - mean) / float64(len(choices))
	}
	return math.Sqrt(variance)
}

// entropy is that of the distribution that logits make, in nats.
func entropy(choices []Choice) (h float64) {
	made := slices.Clone(choices)
	exponentiate(made)
	for _, c := range made {
		if c.Probability > 0 {
			h -= c.Probability * math.Log(c.Probability)
		}
	}
	return h
}

// exponentiate turns sorted logits into probabilities.
func exponentiate(choices []Choice) {
	if len(choices) == 0 {
		return
	}
	largest := choices[0].Probability
	for i := range choices {
		choices[i].Probability = math.Exp(choices[i].Probability - largest)
	}
	rescale(choices)
}

func rescale(choices []Choice) {
	sum := 0.0
	for _, c := range choices {
		sum += c.Probability
	}
	for i := range choices {
		choices[i].Probability /= sum
	}
}
