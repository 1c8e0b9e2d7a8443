package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/golden"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// Answers are the same with a checkpoint's head that drafts as without it: greedy, drawn and penalised ones at a time, whatever the depth.
func TestHeadsKeepTheTokens(t *testing.T) {
	for _, name := range []string{"qwen3_5_moe-mtp", "qwen3_next-mtp"} {
		t.Run(name, func(t *testing.T) {
			eachHardware(t, true, func(t *testing.T, target *instance.Target) {
				want := answersWithDrafts(t, target, name, 0, engine.Options{})
				for drafts := 1; drafts <= 3; drafts++ {
					for _, fixed := range []bool{true, false} {
						got := answersWithDrafts(t, target, name, drafts, engine.Options{FixedDrafts: fixed})
						for i := range want {
							if !slices.Equal(got[i], want[i]) {
								t.Errorf("%d drafts, fixed %t, request %d:\ngot  %v\nwant %v", drafts, fixed, i, got[i], want[i])
							}
						}
					}
				}
			})
		})
	}
}

// answersWithDrafts asks a few requests at a time of a golden checkpoint.
func answersWithDrafts(t *testing.T, target *instance.Target, name string, drafts int, o engine.Options) [][]int32 {
	t.Helper()
	sizes := smallSizes()
	sizes.Drafts, sizes.MaxBatchTokens = drafts, 40 // so that prompts come in chunks
	m := placeSized(t, target, opened(t, testdata.Shared(t, "golden/"+name)), sizes)
	defer m.Close()
	e, err := m.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	prompt := golden.Read(t, name).Tokens
	var requests []engine.Request
	for i := range 6 {
		r := engine.Request{Prompt: prompt[:len(prompt)-i], MaxTokens: 40 + i, Sampling: sample.Greedy(), LogProbs: -1}
		switch i % 3 {
		case 1:
			r.Sampling = sample.Defaults()
			r.Sampling.Seed = int64(i)
		case 2:
			r.Sampling.FrequencyPenalty = 0.7
		}
		requests = append(requests, r)
	}
	inbox, err := e.Submit(t.Context(), requests...)
	if err != nil {
		t.Fatal(err)
	}
	answers := make([][]int32, len(requests))
	for event := range inbox.All() {
		if event.Err != nil {
			t.Fatal(fmt.Errorf("%d drafts, request %d: %w", drafts, event.Request, event.Err))
		}
		answers[event.Request] = append(answers[event.Request], event.Token)
	}
	if s := e.Stats(); drafts > 0 && s.Drafted == 0 {
		t.Errorf("%d drafts: none was computed, so that the test does not test", drafts)
	}
	return answers
}
