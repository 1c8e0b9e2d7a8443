package main

import (
	"math"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/golden"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// What closes thoughts comes at the budget on all hardware, however a token is drawn and whatever is asked against it; what comes before is
// what comes without a budget.
func TestT060ThoughtsAreClosed(t *testing.T) {
	path := testdata.Cache(t, smollm2)
	conversations := golden.SmolLM2(t)
	const budget, tokens, never = 6, 12, 3
	closes := &sample.Budget{Most: budget, Closing: []int32{11, 29, 11}, Within: true, Shut: sample.TokenMark(never)}
	cases := []struct {
		name   string
		change func(*sample.Params)
	}{
		{"greedy", func(p *sample.Params) { p.Temperature = 0 }},
		{"cold", func(p *sample.Params) { p.Temperature = 0.01 }},
		{"drawn", func(p *sample.Params) { p.Temperature = 0.7 }},
		{"hot, of few", func(p *sample.Params) { p.Temperature, p.TopK, p.TopP, p.MinP = 2, 20, 0.9, 0.01 }},
		{"penalised", func(p *sample.Params) { p.RepetitionPenalty, p.FrequencyPenalty, p.PresencePenalty = 1.5, 2, 2 }},
		{"ruled out", func(p *sample.Params) { p.LogitBias = map[int32]float32{11: float32(math.Inf(-1)), 29: -100, 40: 1e30} }},
	}
	eachHardware(t, false, func(t *testing.T, target *instance.Target) {
		m := place(t, target, path, false)
		e := startEngine(t, target, m, ahead)
		defer e.Close()
		for i, c := range cases {
			p := sample.Defaults()
			p.Seed = 5
			c.change(&p)
			prompt := conversations[i%len(conversations)].Prompt[:20]
			generate := func(closes *sample.Budget) (all []int32) {
				events, err := e.Submit(t.Context(), engine.Request{Prompt: prompt, MaxTokens: tokens, Sampling: p, LogProbs: -1, Budget: closes})
				if err != nil {
					t.Fatal(err)
				}
				for event := range events.All() {
					all = append(all, event.Token)
				}
				return all
			}
			free, got := generate(nil), generate(closes)
			if want := slices.Concat(free[:budget], closes.Closing); len(got) != tokens || !slices.Equal(got[:len(want)], want) {
				t.Errorf("%s: got %v, want it to begin with %v", c.name, got, want)
			}
		}
	})
}
