package main

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// answer is the tokens of a request and the bits of the log-probabilities of the five likeliest at each step.
type answer struct {
	tokens []int32
	bits   []uint32
}

// ask submits a request that must come to its end.
func ask(t *testing.T, e *engine.Engine, prompt []int32, tokens int) <-chan answer {
	t.Helper()
	events, err := e.Submit(context.Background(), engine.Request{Prompt: prompt, MaxTokens: tokens, Sampling: sample.Greedy(), LogProbs: 5})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan answer, 1)
	go func() {
		var a answer
		for event := range events {
			if event.Err != nil {
				t.Error(event.Err)
			}
			if event.LogProb == nil {
				continue
			}
			a.tokens = append(a.tokens, event.Token)
			a.bits = append(a.bits, math.Float32bits(event.LogProb.LogProb))
			for _, top := range event.LogProb.Top {
				a.bits = append(a.bits, uint32(top.Token), math.Float32bits(top.LogProb))
			}
		}
		done <- a
	}()
	return done
}

// The same prompt gives the same tokens and the same bits whatever else the engine does.
func TestAnswersDoNotDependOnCircumstances(t *testing.T) {
	path := testdata.Cache(t, smollm2)
	conversations, _ := smollm2Golden(t)
	const tokens = 24
	for _, exact := range []bool{false, true} {
		eachHardware(t, exact, func(t *testing.T, target *instance.Target) {
			m := place(t, target, path, exact)
			start := func(change func(*engine.Config)) *engine.Engine {
				c := engine.Config{
					Device: target.Device, Set: target.Set, Model: m.Model, ScratchBytes: m.Scratch, KVType: m.Sizes.KVType, BlockSize: 16,
					Blocks: 256, MaxBatchTokens: m.Sizes.MaxBatchTokens, MaxSequences: m.Sizes.MaxSequences, MaxContext: m.Sizes.MaxContext,
				}
				change(&c)
				e, err := engine.New(c)
				if err != nil {
					t.Fatal(err)
				}
				return e
			}
			var want []answer
			alone := start(func(c *engine.Config) { c.NoGraphs, c.NoPrefixSharing = true, true })
			for _, c := range conversations {
				want = append(want, <-ask(t, alone, c.Prompt, tokens))
			}
			if err := alone.Close(); err != nil {
				t.Fatal(err)
			}
			cases := []struct {
				name   string
				change func(*engine.Config)
				cancel bool // a neighbour is cancelled
				check  func(engine.Stats) bool
			}{
				{"batch of 8", func(*engine.Config) {}, false, func(s engine.Stats) bool { return s.PrefixHits > 0 }},
				{"chunks of 3", func(c *engine.Config) { c.ChunkTokens = 3 }, false, nil},
				{"preempted", func(c *engine.Config) { c.Blocks, c.NoPrefixSharing = 33, true }, false, func(s engine.Stats) bool { return s.Preemptions > 0 }},
				{"cancelled neighbour", func(*engine.Config) {}, true, func(s engine.Stats) bool { return s.Cancelled > 0 }},
			}
			for _, c := range cases {
				e := start(c.change)
				if c.cancel {
					ctx, cancel := context.WithCancel(context.Background())
					events, err := e.Submit(ctx, engine.Request{Prompt: conversations[0].Prompt, MaxTokens: 200, Sampling: sample.Greedy(), LogProbs: -1})
					if err != nil {
						t.Fatal(err)
					}
					go func() {
						for range 5 {
							<-events
						}
						cancel()
					}()
				}
				var answers []<-chan answer
				for i := range 8 {
					answers = append(answers, ask(t, e, conversations[i%len(conversations)].Prompt, tokens))
				}
				for i, a := range answers {
					got, want := <-a, want[i%len(conversations)]
					if !slices.Equal(got.tokens, want.tokens) {
						t.Errorf("%s, request %d:\n got %v\nwant %v", c.name, i, got.tokens, want.tokens)
					} else if !slices.Equal(got.bits, want.bits) {
						t.Errorf("%s, request %d: the tokens agree, the bits of their log-probabilities do not", c.name, i)
					}
				}
				if stats := e.Stats(); c.check != nil && !c.check(stats) {
					t.Errorf("%s did not happen: %+v", c.name, stats)
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
