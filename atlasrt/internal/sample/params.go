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
	TopNSigma         float32           // rules out logits that lie more standard deviations below the largest; 0 rules out none
	MinEntropy        float32           // takes the largest logit where the model's distribution has less entropy, in nats; 0 never does
	XTCProbability    float32           // how often XTC is applied, see op.Sample; 0 never
	XTCThreshold      float32           // probability of tokens that XTC rules out but for the least likely of them
	TopK              int32             // keeps the largest; 0 keeps all
	RepetitionPenalty float32           // divides positive and multiplies other logits of every token seen; 1 is none
	FrequencyPenalty  float32           // subtracted once for each time that a token was generated
	PresencePenalty   float32           // subtracted from tokens that were generated
	Window            int32             // the last tokens of the context, at which these three look alike; WholeContext: all; 0: as said above
	DRY               DRY               // subtracted from tokens that go on with what was said before
	LZPenalty         float32           // strength of the LZ penalty, see lz; 0 is off
	LogitBias         map[int32]float32 // added to the logits of tokens
	BadWords          [][]int32         // that are not generated: the last token of each is ruled out behind the others
	Allowed           []int32           // the only tokens that are; none: all. Tokens that end an answer must be among them if they are to do so
	Seed              int64             // with the position it makes the random number of a draw
}

// XTCThreshold is that of XTC where nobody says another one, as everywhere.
const XTCThreshold = 0.1

// AdaptiveEntropy is the MinEntropy of adaptive sampling where nobody says another one: about that of a token with a probability of nine tenths
// and another one.
const AdaptiveEntropy = 0.3

// Defaults draws from the model's own distribution.
func Defaults() Params {
	return Params{Temperature: 1, TopP: 1, RepetitionPenalty: 1, XTCThreshold: XTCThreshold, DRY: DRY{Base: DRYBase, AllowedLength: DRYAllowedLength}}
}

// Greedy takes the most likely token each time.
func Greedy() Params {
	p := Defaults()
	p.Temperature = 0
	return p
}

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
		{option.TopNSigma, p.TopNSigma, 0, 100, false},
		{option.MinEntropy, p.MinEntropy, 0, 100, false},
		{option.XTCProbability, p.XTCProbability, 0, 1, false},
		{option.XTCThreshold, p.XTCThreshold, 0, 1, false},
		{option.DRYMultiplier, p.DRY.Multiplier, 0, 100, false},
		{option.LZPenalty, p.LZPenalty, 0, 100, false},
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
	switch {
	case p.TopK < 0:
		return option.Invalid(option.TopK, "is %d, must be at least 0", p.TopK)
	case p.Window < WholeContext:
		return option.Invalid(option.PenaltyWindow, "is %d, must be at least %d", p.Window, WholeContext)
	}
	if err := p.DRY.validate(); err != nil {
		return err
	}
	return p.validateTokens(vocab)
}

// validateTokens reports the first token that is none.
func (p Params) validateTokens(vocab int32) error {
	for _, token := range slices.Sorted(maps.Keys(p.LogitBias)) { // so that the same error is reported each time
		bias := p.LogitBias[token]
		if token < 0 || token >= vocab {
			return option.Invalid(option.LogitBias, "names token %d, the vocabulary has %d", token, vocab)
		}
		if math.IsNaN(float64(bias)) || math.IsInf(float64(bias), 1) {
			return option.Invalid(option.LogitBias, "of token %d is %g, must be a number or -inf", token, bias)
		}
	}
	outside := func(token int32) bool { return token < 0 || token >= vocab }
	for _, word := range p.BadWords {
		if len(word) == 0 {
			return option.Invalid(option.BadWords, "has a word without tokens")
		}
		if i := slices.IndexFunc(word, outside); i >= 0 {
			return option.Invalid(option.BadWords, "holds token %d, the vocabulary has %d", word[i], vocab)
		}
	}
	if i := slices.IndexFunc(p.Allowed, outside); i >= 0 {
		return option.Invalid(option.AllowedTokens, "holds token %d, the vocabulary has %d", p.Allowed[i], vocab)
	}
	return nil
}
