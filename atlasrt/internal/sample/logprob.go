package sample

import "math"

// Floor stands in for the log-probability of the impossible, because JSON has no -inf. OpenAI's API does the same.
const Floor = -9999

// Choice is a token and the logarithm of its probability.
type Choice struct {
	Token   int32
	LogProb float32
}

// TokenLogProb is the log-probability of a chosen token and those of the likeliest ones, best first.
type TokenLogProb struct {
	Token   int32
	LogProb float32
	Top     []Choice
}

// LogProbs is the log-softmax of raw logits, before bias, penalties and temperature, at chosen and at the top likeliest
// tokens (the lower id first where two tie).
//
// Every value is finite and at most 0: what is not a number counts as impossible, the impossible as Floor.
func LogProbs(logits []float32, chosen int32, top int) TokenLogProb {
	normal := logSumExp(logits)
	at := func(token int32) float32 {
		if token < 0 || int(token) >= len(logits) {
			return Floor
		}
		v := float64(logits[token]) - normal
		if math.IsNaN(v) || v < Floor {
			return Floor
		}
		return float32(min(v, 0))
	}
	result := TokenLogProb{Token: chosen, LogProb: at(chosen)}
	if top > 0 {
		result.Top = largest(logits, min(top, len(logits)))
		for i := range result.Top {
			result.Top[i].LogProb = at(result.Top[i].Token)
		}
	}
	return result
}

func logSumExp(logits []float32) float64 {
	most := float32(math.Inf(-1))
	for _, v := range logits {
		if v > most {
			most = v
		}
	}
	sum := 0.0
	for _, v := range logits {
		if d := float64(v) - float64(most); d > -50 { // e⁻⁵⁰ of the largest is lost in a float64 sum of a vocabulary
			sum += math.Exp(d)
		}
	}
	return float64(most) + math.Log(sum)
}

// largest finds the n largest logits by insertion: n is small and few tokens of a vocabulary enter.
func largest(logits []float32, n int) []Choice {
	best := make([]Choice, 0, n)
	for token, v := range logits {
		if v != v {
			v = float32(math.Inf(-1))
		}
		if len(best) == n {
			if v <= best[n-1].LogProb {
				continue
			}
			best = best[:n-1]
		}
		at := len(best)
		for at > 0 && v > best[at-1].LogProb {
			at--
		}
		best = append(best, Choice{})
		copy(best[at+1:], best[at:])
		best[at] = Choice{Token: int32(token), LogProb: v}
	}
	return best
}
