package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// benchCommand measures an engine with prompts of random tokens, so that nothing is found in a cache.
type benchCommand struct {
	loadFlags
	engineFlags
	Prompt      int   `help:"Tokens of a prompt." default:"512"`
	Decode      int   `help:"Tokens to generate." default:"64"`
	Context     int   `help:"Prompt tokens before decode is timed." default:"16"`
	Concurrency []int `help:"Sequences at a time." default:"1,8,32"`
	Repeat      int   `help:"Runs of each measurement; the median, the least and the most are shown." default:"3"`
	JSON        bool  `help:"Print JSON."`
}

// measurement is one row of the table.
type measurement struct {
	What                string  `json:"what"`
	Sequences           int     `json:"sequences"`
	Median, Least, Most float64 // tokens per second
	Host                float64 `json:"host_us_per_step"` // of the engine, between reading a step's tokens and launching the next
}

// Run implements the command.
func (c *benchCommand) Run() error {
	m, err := c.load(context.Background(), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	e, err := m.Start(c.set(instance.EngineOptions{NoPrefixSharing: true}))
	if err != nil {
		return err
	}
	defer e.Close()
	b := &bencher{engine: e, vocab: m.Layout.Vocab}
	var rows []measurement
	measure := func(what string, n, prompt, decode int, rate func(bench) float64) error {
		row := measurement{What: what, Sequences: n}
		var rates []float64
		before := e.Stats()
		for range max(c.Repeat, 1) {
			r, err := b.run(n, prompt, decode)
			if err != nil {
				return err
			}
			rates = append(rates, rate(r))
		}
		after := e.Stats()
		slices.Sort(rates)
		row.Median, row.Least, row.Most = rates[len(rates)/2], rates[0], rates[len(rates)-1]
		if steps := after.DecodeHostSteps - before.DecodeHostSteps; steps > 0 {
			row.Host = float64(after.DecodeHostNanoseconds-before.DecodeHostNanoseconds) / float64(steps) / 1e3
		}
		rows = append(rows, row)
		return nil
	}
	if _, err := b.run(1, 16, 8); err != nil { // warm
		return err
	}
	if err := measure(fmt.Sprintf("prompt %d", c.Prompt), 1, c.Prompt, 1, func(r bench) float64 { return float64(c.Prompt) / r.first.Seconds() }); err != nil {
		return err
	}
	for _, n := range c.Concurrency {
		what := fmt.Sprintf("decode %d after %d", c.Decode, c.Context)
		err := measure(what, n, c.Context, c.Decode, func(r bench) float64 { return float64(n*(c.Decode-1)) / (r.last - r.first).Seconds() })
		if err != nil {
			return err
		}
	}
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(rows)
	}
	fmt.Printf("%s on %s, %d threads\n", m.Checkpoint, m.Target.Bundle.Hardware, m.Target.Threads())
	table := tablewriter.NewTable(os.Stdout, tablewriter.WithHeaderAutoFormat(tw.Off))
	table.Header("measured", "sequences", "tok/s", "least", "most", "host µs/step")
	for _, r := range rows {
		_ = table.Append(r.What, fmt.Sprint(r.Sequences), fmt.Sprintf("%.1f", r.Median), fmt.Sprintf("%.1f", r.Least), fmt.Sprintf("%.1f", r.Most), fmt.Sprintf("%.1f", r.Host))
	}
	return table.Render()
}

// bencher sends requests of random tokens.
type bencher struct {
	engine *engine.Engine
	vocab  int32
}

// bench is when, from the start, every sequence had its first token and when the last one came.
type bench struct{ first, last time.Duration }

func (b *bencher) run(n, prompt, decode int) (bench, error) {
	var result bench
	var mu sync.Mutex
	var failed error
	var group sync.WaitGroup
	start := time.Now()
	for range n {
		tokens := make([]int32, prompt)
		for i := range tokens {
			tokens[i] = rand.Int32N(b.vocab)
		}
		events, err := b.engine.Submit(context.Background(), engine.Request{Prompt: tokens, MaxTokens: decode, Sampling: sample.Greedy(), LogProbs: -1})
		if err != nil {
			return result, err
		}
		group.Go(func() {
			var first, last time.Duration
			var err error
			for e := range events {
				if err = e.Err; err != nil {
					break
				}
				last = time.Since(start)
				if first == 0 {
					first = last
				}
			}
			mu.Lock()
			defer mu.Unlock()
			result.first, result.last = max(result.first, first), max(result.last, last)
			if failed == nil {
				failed = err
			}
		})
	}
	group.Wait()
	return result, failed
}
