package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// Over ten thousand steps of random engines and requests, whose drafts are right or wrong at random, every request gives its tokens, no state is
// another's, the drafter knows every token, and the books balance.
func TestRandomDrafts(t *testing.T) {
	var total Stats
	counts := map[[2]int]int{}
	for seed := uint64(0); total.Steps < 10_000; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := randomDrafts(t, seed)
			s := f.settle(t)
			if s.BlocksUsed+s.SlotsUsed > 0 || s.BlocksFree+s.BlocksCached != s.BlocksTotal || s.SlotsFree+s.SlotsCached != s.SlotsTotal {
				t.Errorf("at rest: %+v", s)
			}
			total.Steps, total.Preemptions, total.Cancelled = total.Steps+s.Steps, total.Preemptions+s.Preemptions, total.Cancelled+s.Cancelled
			total.PrefixHits, total.ReplayedFull = total.PrefixHits+s.PrefixHits, total.ReplayedFull+s.ReplayedFull
			for c, n := range f.device.counts {
				counts[c] += n
			}
		})
		if t.Failed() {
			return
		}
	}
	if total.Preemptions < 20 || total.Cancelled < 20 || total.PrefixHits < 200 || total.ReplayedFull < 1000 {
		t.Errorf("the test does not test: %+v", total)
	}
	for draws := 2; draws <= 4; draws++ {
		for n := 1; n <= draws; n++ {
			if counts[[2]int{draws, n}] == 0 {
				t.Errorf("it never came about that %d of %d draws counted", n, draws)
			}
		}
	}
}

// randomDrafts serves requests with an engine, both at random, and compares what they give.
func randomDrafts(t *testing.T, seed uint64) *fixture {
	r := rand.New(rand.NewPCG(seed, 11))
	grammars := seed%2 == 0 // which force tokens
	change := drafting(2+int(seed%3), func(c *Config, f *fixture) {
		f.drafter.loose = grammars
		c.FixedDrafts = r.IntN(2) == 0
		c.Blocks, c.ChunkTokens, c.NoPrefixSharing = 20+r.IntN(60), r.IntN(3)*r.IntN(6), r.IntN(4) == 0
		c.MaxSequences = 1 + r.IntN(12)
		c.Graphs = []GraphMode{GraphsNone, GraphsFull, GraphsFullDecodeOnly, GraphsPiecewise, GraphsFullAndPiecewise}[r.IntN(5)]
		switch r.IntN(3) {
		case 0:
			c.Device = f.graphs
		case 1:
			c.Device = f.ahead
		case 2:
			c.Device, f.device.slow = f.ahead, true
		}
	})
	if seed%4 == 1 {
		change = withStates(change)
	}
	f := newFixture(t, change)
	share := r.Float64() // of drafts that are right
	guess := rand.New(rand.NewPCG(seed, 12))
	f.drafter.right = func() bool { return guess.Float64() < share }
	common := random(r, 24)
	var requests []Request
	for range 60 {
		q := greedy(append(slices.Clone(common[:r.IntN(len(common))]), random(r, 1+r.IntN(8))...), 1+r.IntN(40))
		switch r.IntN(8) {
		case 0:
			q.Sampling.Temperature, q.Sampling.Seed = 0.3, int64(r.Uint64())
		case 1:
			q.End = random(r, 2)
		case 2:
			q.Sampling.PresencePenalty, q.Sampling.RepetitionPenalty = 0.5, 1.2
		case 3:
			q.LogProbs = 0
		case 4:
			q.MinTokens, q.End = q.MaxTokens/2, random(r, 8)
		case 5:
			q.Budget = fakeBudget(3, true)
		}
		if grammars && r.IntN(3) == 0 {
			q.Grammar = Following(fakeGrammar{seen: r.Uint32()})
		}
		requests = append(requests, q)
	}
	f.drafter.expect(requests...)
	var group sync.WaitGroup
	defer group.Wait()
	for _, q := range requests {
		cancel := -1 // behind so many tokens
		if r.IntN(6) == 0 {
			cancel = r.IntN(q.MaxTokens)
		}
		ctx, stop := context.WithCancel(t.Context())
		inbox, err := f.Submit(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			defer stop()
			var got answer
			for e := range inbox.All() {
				if e.Token >= 0 {
					got.tokens = append(got.tokens, e.Token)
				}
				if got.finish, got.err = e.Finish, e.Err; len(got.tokens) == cancel {
					stop()
				}
			}
			want := f.model.drawn(q)
			if got.finish == FinishCancelled && len(got.tokens) < len(want) {
				want = want[:len(got.tokens)]
			}
			if (got.err != nil) != (got.finish == FinishError) || got.err != nil && q.Grammar == nil || !slices.Equal(got.tokens, want) {
				t.Errorf("%+v:\ngot  %v (%v, %v)\nwant %v", q, got.tokens, got.finish, got.err, want)
			}
		})
	}
	return f
}
