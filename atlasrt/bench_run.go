package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// spread is several runs of one measurement.
type spread struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
}

func spreadOf(values []float64) spread {
	values = slices.Sorted(slices.Values(values))
	return spread{values[len(values)/2], values[0], values[len(values)-1]}
}

// bencher sends requests of random tokens, the same ones in every process: which experts they pick decides how many bytes a
// step reads, so that times of two builds compare.
type bencher struct {
	engine  *engine.Engine
	vocab   int32
	random  *rand.Rand
	prompts [][]int32 // by sequence, kept from run to run
}

func newBencher(e *engine.Engine, vocab int32) *bencher {
	return &bencher{engine: e, vocab: vocab, random: rand.New(rand.NewPCG(1, 2))}
}

// forget makes the next run's prompts new ones.
func (b *bencher) forget() { b.prompts = nil }

// prompt is sequence i's, of so many tokens.
func (b *bencher) prompt(i, tokens int) []int32 {
	for len(b.prompts) <= i {
		b.prompts = append(b.prompts, nil)
	}
	for len(b.prompts[i]) < tokens {
		b.prompts[i] = append(b.prompts[i], b.random.Int32N(b.vocab))
	}
	return b.prompts[i][:tokens]
}

// run sends n requests at once and returns, for each, when its tokens came, counted from the start.
func (b *bencher) run(n, prompt, decode int) ([][]time.Duration, error) {
	times, errs := make([][]time.Duration, n), make([]error, n)
	var group sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	start := time.Now()
	for i := range n {
		request := engine.Request{Prompt: b.prompt(i, prompt), MaxTokens: decode, Sampling: sample.Greedy(), LogProbs: -1}
		events, err := b.engine.Submit(ctx, request)
		if err != nil {
			cancel()
			group.Wait()
			return nil, err
		}
		times[i] = make([]time.Duration, 0, decode)
		group.Go(func() {
			for e := range events.All() {
				if e.Err != nil {
					errs[i] = e.Err
				}
				times[i] = append(times[i], time.Since(start))
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return times, nil
}

// together is the tokens per second of all sequences, from when the last one began to generate to the last token but two of the
// one that ended first; 0 where there is no such time. Its last tokens may come late: the step behind them is of fewer sequences, is
// launched before they have landed, and is recorded where there was none of that size.
func together(times [][]time.Duration) float64 {
	begin, end := time.Duration(0), time.Duration(math.MaxInt64)
	for _, t := range times {
		begin, end = max(begin, t[0]), min(end, t[max(len(t)-3, 0)])
	}
	if end <= begin {
		return 0
	}
	tokens := 0
	for _, all := range times {
		for _, t := range all {
			if t > begin && t <= end {
				tokens++
			}
		}
	}
	return float64(tokens) / (end - begin).Seconds()
}
