package api

import (
	"fmt"
	"math"
)

// route names the requests whose numbers have ranges; a field may have another range on another route.
type route uint8

const (
	chatRoute route = 1 << iota
	textRoute
	vocabularyRoute // tokenize and detokenize; they have no numbers of their own

	allRoutes = chatRoute | textRoute
)

// numericRange is what a numeric field may be.
type numericRange struct {
	name      string
	routes    route
	low, high float64
	lowOpen   bool // low itself is refused
	whole     bool
}

// ranges is every numeric field of every route. Fields of one name come in one row for each range that they have.
var ranges = [...]numericRange{
	{name: "temperature", routes: allRoutes, low: 0, high: 2},
	{name: "top_p", routes: allRoutes, low: 0, high: 1}, // 0 takes the likeliest token
	{name: "min_p", routes: allRoutes, low: 0, high: 1},
	{name: "presence_penalty", routes: allRoutes, low: -2, high: 2},
	{name: "frequency_penalty", routes: allRoutes, low: -2, high: 2},
	{name: "repetition_penalty", routes: allRoutes, low: 0, high: 100, lowOpen: true},
	{name: "repeat_penalty", routes: allRoutes, low: 0, high: 100, lowOpen: true},
	{name: "logit_bias", routes: allRoutes, low: -100, high: 100},        // of each token
	{name: "top_k", routes: allRoutes, low: -1, high: most, whole: true}, // -1 and 0 are all
	{name: "seed", routes: allRoutes, low: math.MinInt64, high: math.MaxInt64, whole: true},
	{name: "n", routes: allRoutes, low: 1, high: most, whole: true}, // Limits.Choices is lower
	{name: "best_of", routes: allRoutes, low: 0, high: most, whole: true},
	{name: "min_tokens", routes: allRoutes, low: 0, high: most, whole: true},
	{name: "n_predict", routes: allRoutes, low: -1, high: mostTokens, whole: true}, // -1 is as many as the context leaves
	{name: "max_tokens", routes: chatRoute, low: 1, high: mostTokens, whole: true},
	{name: "max_completion_tokens", routes: chatRoute, low: 1, high: mostTokens, whole: true},
	{name: "top_logprobs", routes: chatRoute, low: 0, high: 20, whole: true},
	{name: "max_tokens", routes: textRoute, low: 0, high: mostTokens, whole: true}, // 0 only scores the prompt
	{name: "logprobs", routes: textRoute, low: 0, high: 5, whole: true},
}

const (
	most       = math.MaxInt32 // of integers without a bound of their own
	mostTokens = 1 << 62       // of numbers of tokens, which the context bounds
)

// rangeOf finds the range of a field.
func rangeOf(of route, name string) numericRange {
	for _, r := range ranges {
		if r.name == name && r.routes&of != 0 {
			return r
		}
	}
	panic("BUG: no range for the field " + name)
}

func (r numericRange) holds(n float64) bool {
	return (n > r.low || n == r.low && !r.lowOpen) && n <= r.high
}

// holdsWhole is holds for integers, which floats round beyond 2^53.
func (r numericRange) holdsWhole(n int64) bool {
	if r.low == math.MinInt64 && r.high == math.MaxInt64 {
		return true
	}
	return n >= int64(r.low) && n <= int64(r.high)
}

func (r numericRange) String() string {
	switch {
	case r.whole && r.high == math.MaxInt64:
		return "from -9223372036854775808 to 9223372036854775807"
	case r.whole:
		return fmt.Sprintf("from %d to %d", int64(r.low), int64(r.high))
	case r.lowOpen:
		return fmt.Sprintf("more than %g and at most %g", r.low, r.high)
	}
	return fmt.Sprintf("from %g to %g", r.low, r.high)
}
