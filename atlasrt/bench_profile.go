package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
	"github.com/atlas-inference/atlas/internal/table"
)

// profileFlags turn a benchmark into a profile.
type profileFlags struct {
	Profile bool `help:"Instead of rates, show where the time of a decode step, and of a prompt that is one step, goes: every kind of call alone, replayed over all layers' buffers. With --speculative --num-drafts, of a step with so many guesses."`
}

// profileReport is what JSON holds.
type profileReport struct {
	Checkpoint string           `json:"checkpoint"`
	Hardware   string           `json:"hardware"`
	Context    int              `json:"context"`
	Ceiling    int64            `json:"bytes_per_second"` // that memory gives, measured in the same run
	Method     string           `json:"measured_by"`
	Steps      []optest.Profile `json:"steps"`
}

// profile measures a step for each prompt, and a decode step for each number of sequences.
func (c *benchCommand) profile() error {
	if c.RecordShapes != "" {
		return errors.New("--profile and --record-shapes both look at every call: choose one")
	}
	target, err := c.hardwareFlags.open(c.name())
	if err != nil {
		return err
	}
	profiler := optest.NewProfiler(target.Set, target.Points(), target.Bundle.Activations)
	target.Set = profiler
	report := profileReport{Hardware: target.Bundle.Hardware}
	report.Ceiling, report.Method, err = optest.Ceiling(optest.Target{
		Name: report.Hardware, Device: target.Device, Set: target.Set, Act: target.Bundle.Activations, HostMemory: target.Bundle.Device == "cpu"})
	if err != nil {
		return fmt.Errorf("measuring how fast memory is: %w", err)
	}
	p, err := c.prepareOn(context.Background(), target)
	if err != nil {
		return err
	}
	m, err := p.Load(context.Background())
	if err != nil {
		return err
	}
	c.OptimizationLevel, c.GraphMode = 0, "none" // every call of every step comes by
	e, err := m.Start(c.set(engine.Options{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}))
	if err != nil {
		return err
	}
	defer e.Close()
	report.Checkpoint, report.Context = m.Checkpoint.String(), min(c.Context, m.Sizes.MaxContext-2-c.NumDrafts)
	failed := c.measure(profiler, m, newBencher(e, m.Layout.Vocab), &report)
	if failed != nil && len(report.Steps) == 0 {
		return failed
	}
	if c.JSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		return errors.Join(encoder.Encode(report), failed)
	}
	return errors.Join(report.print(os.Stdout), failed)
}

// measure appends the profile of each step to a report, up to the first that fails.
func (c *benchCommand) measure(p *optest.Profiler, m *instance.Loaded, b *bencher, report *profileReport) error {
	step := optest.Step{Drafts: c.NumDrafts, Trimmed: c.MTPVocab > 0 && c.MTPVocab < int(m.Layout.Vocab)}
	add := func(sequences, prompt, decode int) error {
		step.Sequences = sequences
		p.Expect(m.Target.Device, step)
		if _, err := b.run(sequences, prompt, decode); err != nil {
			return err
		}
		result, err := p.Result()
		if err == nil {
			report.Steps = append(report.Steps, result)
		}
		return err
	}
	for _, tokens := range c.Prompt {
		decode := 1 + 2*c.NumDrafts // behind the last token nothing is guessed
		if tokens = min(tokens, m.Sizes.MaxContext-decode, m.Sizes.MaxBatchTokens); tokens < 2 {
			continue
		}
		b.forget()
		step.Tokens, step.Draws = tokens, 1
		if err := add(1, tokens, decode); err != nil {
			return err
		}
	}
	for _, n := range c.Concurrency {
		// The first sequence must not end before the last one has begun. Where sequences have no states, a first run leaves the prompts in the cache.
		before := (n*report.Context + m.Sizes.MaxBatchTokens - 1) / m.Sizes.MaxBatchTokens
		decode := min(8+(1+c.NumDrafts)*(4+before), m.Sizes.MaxContext-report.Context)
		if _, err := b.run(n, report.Context, decode); err != nil {
			return err
		}
		step.Tokens, step.Draws = n*(1+c.NumDrafts), n*(1+c.NumDrafts)
		if err := add(n, report.Context, decode); err != nil {
			return err
		}
	}
	return nil
}

// print writes the report for people.
func (r *profileReport) print(w io.Writer) error {
	fmt.Fprintf(w, "%s on %s, where memory gives up to %.0f GB/s (%s)\n", r.Checkpoint, r.Hardware, float64(r.Ceiling)/1e9, r.Method)
	for _, step := range r.Steps {
		sum, calls := 0.0, 0
		for _, row := range step.Rows {
			sum, calls = sum+row.Total().Seconds(), calls+row.Calls
		}
		what := fmt.Sprintf("%d sequences after %d tokens", step.Sequences, r.Context)
		if step.Tokens > step.Draws {
			what = fmt.Sprintf("a prompt of %d tokens", step.Tokens)
		} else if step.Drafts > 0 {
			what += fmt.Sprintf(", each with %d guesses", step.Drafts)
		}
		fmt.Fprintf(w, "\n%s: a step takes %s µs; %d calls, each alone, take %.1f µs\n", what, microseconds(step.Time.Median), calls, sum*1e6)
		if step.Drafting.Median > 0 {
			fmt.Fprintf(w, "what is behind its draws, which counts guesses and makes new ones, takes %s µs of it\n", microseconds(step.Drafting.Median))
		}
		t := table.New("op", "sizes", "kernels", "\tcalls", "\tµs each", "\tµs", "\t% of calls", "\tGB/s", "\t% of memory", "\tTFLOP/s")
		for _, row := range step.Rows {
			t.Row(row.Op, row.Case, strings.Join(row.Kernels, ", "), fmt.Sprint(row.Calls), microseconds(row.Time.Median), microseconds(row.Total()),
				fmt.Sprintf("%.1f", 100*row.Total().Seconds()/sum), fmt.Sprintf("%.0f", row.BytesPerSecond()/1e9),
				fmt.Sprintf("%.0f", 100*row.BytesPerSecond()/float64(max(r.Ceiling, 1))), fmt.Sprintf("%.1f", row.FlopsPerSecond()/1e12))
		}
		if err := t.Print(w); err != nil {
			return err
		}
	}
	return nil
}
