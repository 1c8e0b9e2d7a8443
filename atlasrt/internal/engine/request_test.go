package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/option"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

func TestSubmitRefuses(t *testing.T) {
	f := newFixture(t, func(c *Config, _ *fixture) { c.Blocks, c.MaxContext = 20, 100 })
	with := func(change func(*Request)) Request {
		r := greedy([]int32{1, 2}, 4)
		change(&r)
		return r
	}
	cases := []struct {
		name    string
		request Request
		want    error
	}{
		{"empty prompt", with(func(r *Request) { r.Prompt = nil }), option.Invalid(option.Prompt, "")},
		{"token outside", with(func(r *Request) { r.Prompt = []int32{fakeVocab} }), option.Invalid(option.Prompt, "")},
		{"negative token", with(func(r *Request) { r.Prompt = []int32{-1} }), option.Invalid(option.Prompt, "")},
		{"no tokens wanted", with(func(r *Request) { r.MaxTokens = 0 }), option.Invalid(option.MaxTokens, "")},
		{"min over max", with(func(r *Request) { r.MinTokens = 5 }), option.Invalid(option.MinTokens, "")},
		{"end outside", with(func(r *Request) { r.End = []int32{-1} }), option.Invalid(option.StopTokens, "")},
		{"too many ends", with(func(r *Request) { r.End = make([]int32, MaxEnds+1) }), option.Invalid(option.StopTokens, "")},
		{"too many log-probabilities", with(func(r *Request) { r.LogProbs = MaxLogProbs + 1 }), option.Invalid(option.TopLogProbs, "")},
		{"sampling", with(func(r *Request) { r.Sampling.TopP = 2 }), option.Invalid(option.TopP, "")},
		{"budget below nothing", with(func(r *Request) { r.Budget = &sample.Budget{Most: -1} }), option.Invalid(option.ThinkingBudget, "")},
		{"close without a mark", with(func(r *Request) { r.Budget = &sample.Budget{Closing: []int32{1}} }), option.Invalid(option.ThinkingBudget, "")},
		{"close with nothing", with(func(r *Request) { r.Budget = &sample.Budget{Shut: sample.TokenMark(1)} }), option.Invalid(option.ThinkingBudget, "")},
		{"close outside", with(func(r *Request) { r.Budget = &sample.Budget{Shut: sample.TokenMark(1), Closing: []int32{fakeVocab}} }), option.Invalid(option.ThinkingBudget, "")},
		{"over the context", with(func(r *Request) { r.MaxTokens = 99 }), &TooLong{Tokens: 101, Limit: 100}},
		{"largest int", with(func(r *Request) { r.MaxTokens = math.MaxInt }), &TooLong{Tokens: 2 + 1<<30, Limit: 100}},
		{"over the pool", with(func(r *Request) { r.MaxTokens = 80 }), &TooLong{Tokens: 82, Limit: 81}},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			_, err := f.Submit(t.Context(), test.request)
			var bad *option.Error
			if want, ok := test.want.(*option.Error); ok {
				if !errors.As(err, &bad) || bad.Option != want.Option || bad.Reason == "" {
					t.Errorf("got %v, want an error about %s", err, want.Option)
				}
			} else if fmt.Sprintf("%T %v", err, err) != fmt.Sprintf("%T %v", test.want, test.want) {
				t.Errorf("got %T %v, want %T %v", err, err, test.want, test.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Submit(ctx, greedy([]int32{1}, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that ended: got %v, want %v", err, context.Canceled)
	}
	if s := f.Stats(); s.Running+s.Waiting != 0 || s.Steps != 0 {
		t.Errorf("after refusals: %+v", s)
	}
}
