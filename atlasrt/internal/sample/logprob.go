package sample

import "math"

// Floor stands in for the log-probability of the impossible, because JSON has no -inf. OpenAI's API does the same.
const Floor = -9999

// Choice is a token and its log-probability.
type Choice struct {
	Token   int32   // its id
	LogProb float32 // natural logarithm
}

// TokenLogProb is the log-probability of a chosen token, and those of the likeliest tokens.
type TokenLogProb struct {
	Token   int32    // the chosen one
	LogProb float32  // its log-probability
	Top     []Choice // the likeliest first
}

// LogProbs is the log-softmax of raw logits, before bias, penalties and temperature: of the chosen token, and of the top likeliest
// tokens, the lower id first where two tie.
//
// Every value is finite, at most 0 and at least Floor, which stands for logits of -inf and for those that are not a number.
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

// largest finds the n largest logits in descending order. It inserts into a sorted list: n is small, and few tokens of a vocabulary are
// inserted.
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
