// Package sample says how tokens are chosen: checked parameters, the sparse edits that they make to logits, and
// log-probabilities.
//
// The tokens themselves are drawn on the device, by op.Sample.
package sample

import (
	"maps"
	"math"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/option"
)

// Params choose how one request samples. Start from Defaults or Greedy; the zero value does not validate.
type Params struct {
	Temperature       float32           // 0 takes the largest logit
	TopP              float32           // keeps the fewest tokens whose probabilities reach it; 1 keeps all, 0 the likeliest alone
	MinP              float32           // rules out tokens less probable than this share of the best; 0 rules out none
	TopK              int32             // keeps the largest; 0 keeps all
	RepetitionPenalty float32           // divides positive and multiplies other logits of every token seen; 1 is none
	FrequencyPenalty  float32           // subtracted once for each time that a token was generated
	PresencePenalty   float32           // subtracted from tokens that were generated
	LogitBias         map[int32]float32 // added to the logits of tokens
	Seed              int64             // with the position it makes the random number of a draw
}

// Defaults draws from the model's own distribution.
func Defaults() Params { return Params{Temperature: 1, TopP: 1, RepetitionPenalty: 1} }

// Greedy takes the most likely token each time.
func Greedy() Params { return Params{TopP: 1, RepetitionPenalty: 1} }

// IsGreedy says whether the likeliest token is taken each time.
func (p Params) IsGreedy() bool { return p.Temperature == 0 || p.TopP == 0 }

// Validate reports the first parameter out of range as an *option.Error; vocab is the number of token ids.
func (p Params) Validate(vocab int32) error {
	ranges := []struct {
		name     option.Name
		value    float32
		low, top float32
		open     bool // low itself is refused
	}{
		{option.Temperature, p.Temperature, 0, 100, false},
		{option.TopP, p.TopP, 0, 1, false},
		{option.MinP, p.MinP, 0, 1, false},
		{option.RepetitionPenalty, p.RepetitionPenalty, 0, 100, true},
		{option.FrequencyPenalty, p.FrequencyPenalty, -100, 100, false},
		{option.PresencePenalty, p.PresencePenalty, -100, 100, false},
	}
	for _, r := range ranges {
		switch {
		case r.open && !(r.value > r.low && r.value <= r.top):
			return option.Invalid(r.name, "is %g, must be more than %g and at most %g", r.value, r.low, r.top)
		case !(r.value >= r.low && r.value <= r.top):
			return option.Invalid(r.name, "is %g, must be from %g to %g", r.value, r.low, r.top)
		}
	}
	if p.TopK < 0 {
		return option.Invalid(option.TopK, "is %d, must be at least 0", p.TopK)
	}
	for _, token := range slices.Sorted(maps.Keys(p.LogitBias)) { // so that the same error is reported each time
		bias := p.LogitBias[token]
		if token < 0 || token >= vocab {
			return option.Invalid(option.LogitBias, "names token %d, the vocabulary has %d", token, vocab)
		}
		if math.IsNaN(float64(bias)) || math.IsInf(float64(bias), 1) {
			return option.Invalid(option.LogitBias, "of token %d is %g, must be a number or -inf", token, bias)
		}
	}
	return nil
}
