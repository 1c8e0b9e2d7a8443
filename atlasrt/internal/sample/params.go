// Package sample says how tokens are chosen: checked parameters, the sparse edits that they make to logits, and
// log-probabilities.
//
// It computes on the host only what the device does not: op.Sample draws the tokens.
package sample

import (
	"fmt"
	"math"
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

// FieldError names the parameter that is out of range.
type FieldError struct{ Field, Reason string }

func (e *FieldError) Error() string { return e.Field + " " + e.Reason }

// Validate reports the first parameter out of range as a *FieldError; vocab is the number of token ids.
func (p Params) Validate(vocab int32) error {
	ranges := []struct {
		field    string
		value    float32
		low, top float32
		open     bool // low itself is refused
	}{
		{"temperature", p.Temperature, 0, 100, false},
		{"top_p", p.TopP, 0, 1, false},
		{"min_p", p.MinP, 0, 1, false},
		{"repetition_penalty", p.RepetitionPenalty, 0, 100, true},
		{"frequency_penalty", p.FrequencyPenalty, -100, 100, false},
		{"presence_penalty", p.PresencePenalty, -100, 100, false},
	}
	for _, r := range ranges {
		switch {
		case r.open && !(r.value > r.low && r.value <= r.top):
			return &FieldError{r.field, fmt.Sprintf("is %g, must be more than %g and at most %g", r.value, r.low, r.top)}
		case !(r.value >= r.low && r.value <= r.top):
			return &FieldError{r.field, fmt.Sprintf("is %g, must be from %g to %g", r.value, r.low, r.top)}
		}
	}
	if p.TopK < 0 {
		return &FieldError{"top_k", fmt.Sprintf("is %d, must be at least 0", p.TopK)}
	}
	for token, bias := range p.LogitBias {
		if token < 0 || token >= vocab {
			return &FieldError{"logit_bias", fmt.Sprintf("names token %d, the vocabulary has %d", token, vocab)}
		}
		if math.IsNaN(float64(bias)) || math.IsInf(float64(bias), 1) {
			return &FieldError{"logit_bias", fmt.Sprintf("of token %d is %g, must be a number or -inf", token, bias)}
		}
	}
	return nil
}
