package main

import (
	"math"
	"runtime"
	"slices"
	"sync"
)

// scored is what two kernel sets make of one position: the set whose answer is taken for right, and the one that is judged.
type scored struct {
	divergence float64    // KL(right‖judged) in nats
	agree      bool       // on the likeliest token
	loss       [2]float64 // of the token that follows, in nats
}

// score compares rows of logits, of vocab numbers each, before the tokens next.
func score(right, judged []float32, vocab int, next []int32) []scored {
	all := make([]scored, len(next))
	var group sync.WaitGroup
	share := max((len(next)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0), 1)
	for first := 0; first < len(next); first += share {
		group.Go(func() {
			for i := first; i < min(first+share, len(next)); i++ {
				all[i] = scoreRow(right[i*vocab:(i+1)*vocab], judged[i*vocab:(i+1)*vocab], next[i])
			}
		})
	}
	group.Wait()
	return all
}

func scoreRow(right, judged []float32, next int32) scored {
	p, q := normaliser(right), normaliser(judged)
	s := scored{agree: likeliest(right) == likeliest(judged), loss: [2]float64{p - float64(right[next]), q - float64(judged[next])}}
	for i, v := range right {
		if logP := float64(v) - p; !math.IsInf(logP, -1) {
			s.divergence += math.Exp(logP) * (logP - float64(judged[i]) + q)
		}
	}
	return s
}

// normaliser is log Σ exp(logits).
func normaliser(logits []float32) float64 {
	top := float64(slices.Max(logits))
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - top)
	}
	return top + math.Log(sum)
}

// likeliest is the index of the largest logit, the lowest where several are.
func likeliest(logits []float32) int {
	best := 0
	for i, v := range logits {
		if v > logits[best] {
			best = i
		}
	}
	return best
}

// comparison sums up what a text shows of two kernel sets.
type comparison struct {
	Tokens        int     `json:"tokens"`
	MeanKL        float64 `json:"kl_mean"`
	KLError       float64 `json:"kl_standard_error"`
	KL99          float64 `json:"kl_99th_percentile"`
	MaxKL         float64 `json:"kl_max"`
	SameTop       float64 `json:"same_top_token"` // share of positions
	Perplexity    float64 `json:"perplexity"`
	PerplexityRef float64 `json:"perplexity_exact"`
}

// compared is the comparison of at least one position.
func compared(all []scored) comparison {
	n := float64(len(all))
	c := comparison{Tokens: len(all)}
	divergences := make([]float64, len(all))
	var loss [2]float64
	for i, s := range all {
		divergences[i] = s.divergence
		c.MeanKL += s.divergence / n
		loss[0] += s.loss[0] / n
		loss[1] += s.loss[1] / n
		if s.agree {
			c.SameTop += 1 / n
		}
	}
	variance := 0.0
	for _, d := range divergences {
		variance += (d - c.MeanKL) * (d - c.MeanKL)
	}
	c.KLError = math.Sqrt(variance / max(n-1, 1) / n)
	slices.Sort(divergences)
	c.KL99, c.MaxKL = divergences[(len(all)*99+99)/100-1], divergences[len(all)-1]
	c.PerplexityRef, c.Perplexity = math.Exp(loss[0]), math.Exp(loss[1])
	return c
}
