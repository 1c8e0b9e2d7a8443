package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

func TestPromptLogProbs(t *testing.T) {
	cases := []struct {
		chunk int
		ahead bool
	}{{0, false}, {3, false}, {0, true}, {3, true}}
	for _, test := range cases {
		t.Run(fmt.Sprintf("chunk %d, ahead %v", test.chunk, test.ahead), func(t *testing.T) {
			f := newFixture(t, func(c *Config, f *fixture) {
				if c.ChunkTokens, c.MaxOutputs = test.chunk, 16; test.ahead {
					c.Device = f.ahead
				}
			})
			prompt := random(rand.New(rand.NewPCG(3, 5)), 50)
			f.ask(t, greedy(prompt, 1)) // in the cache now, which must not hide rows
			other := f.submit(t, greedy([]int32{1}, 60))
			r := greedy(prompt, 3)
			r.PromptLogProbs, r.LogProbs = true, 1
			got := f.ask(t, r)
			if len(got.prompt) != len(prompt)-1 || got.cached != 0 {
				t.Fatalf("got %d entries and %d cached tokens, want %d and 0", len(got.prompt), got.cached, len(prompt)-1)
			}
			for i, l := range got.prompt {
				if want := sample.LogProbs(f.model.logits(prompt[:i+1]), prompt[i+1], 1); !sameLogProb(l, want) {
					t.Errorf("prompt token %d: got %+v, want %+v", i+1, l, want)
				}
			}
			if want := f.model.greedy(prompt, 3); !slices.Equal(got.tokens, want) {
				t.Errorf("tokens: got %v, want %v", got.tokens, want)
			}
			read(other)
		})
	}
}

// An older request takes the blocks of a prompt that is being scored: it starts over, and each entry comes once.
func TestPreemptedPromptLogProbs(t *testing.T) {
	f := newFixture(t, func(c *Config, _ *fixture) { c.Blocks, c.MaxSequences, c.MaxOutputs = 20, 2, 2 })
	prompt := random(rand.New(rand.NewPCG(3, 6)), 70)
	r := greedy(prompt, 3)
	r.PromptLogProbs = true
	inboxes := f.together(t, greedy([]int32{1, 2, 3}, 60), r)
	got := read(inboxes[1])
	preempted(t, f)
	if len(got.prompt) != len(prompt)-1 {
		t.Fatalf("got %d entries, want %d", len(got.prompt), len(prompt)-1)
	}
	for i, l := range got.prompt {
		if want := sample.LogProbs(f.model.logits(prompt[:i+1]), prompt[i+1], 0); !sameLogProb(l, want) {
			t.Errorf("prompt token %d: got %+v, want %+v", i+1, l, want)
		}
	}
	read(inboxes[0])
}
