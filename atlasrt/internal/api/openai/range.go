package openai

import (
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
)

// Numeric fields of both routes.
var sharedRanges = slices.Concat(api.SamplerRanges(), []api.Range{
	{Name: "temperature", Low: 0, High: 2},
	{Name: "logit_bias", Low: -100, High: 100},       // of each token
	{Name: "n", Low: 1, High: api.Most, Whole: true}, // Limits.Choices is lower
	{Name: "best_of", Low: 0, High: api.Most, Whole: true},
	{Name: "min_tokens", Low: 0, High: api.Most, Whole: true},
	{Name: "n_predict", Low: -1, High: api.MostTokens, Whole: true}, // -1 is as many as the context leaves
})

// Numeric fields of one route.
var (
	chatRanges = slices.Concat(sharedRanges, []api.Range{
		{Name: "max_tokens", Low: 1, High: api.MostTokens, Whole: true},
		{Name: "max_completion_tokens", Low: 1, High: api.MostTokens, Whole: true},
		{Name: "top_logprobs", Low: 0, High: 20, Whole: true},
		{Name: "thinking_budget", Low: -1, High: api.MostTokens, Whole: true}, // -1 is no bound, here and below
		{Name: "thinking_token_budget", Low: -1, High: api.MostTokens, Whole: true},
		{Name: "reasoning_budget", Low: -1, High: api.MostTokens, Whole: true},
		{Name: "thinking_budget_tokens", Low: -1, High: api.MostTokens, Whole: true},
		{Name: "budget_tokens", Low: 0, High: api.MostTokens, Whole: true}, // of thinking
	})
	textRanges = slices.Concat(sharedRanges, []api.Range{
		{Name: "max_tokens", Low: 0, High: api.MostTokens, Whole: true}, // 0 only scores the prompt
		{Name: "logprobs", Low: 0, High: 5, Whole: true},
	})
)
