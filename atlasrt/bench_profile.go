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
	report.Checkpoint, report.Context = m.Checkpoint.String(), min(c.Context, m.Sizes.MaxContext-2)
	b := newBencher(e, m.Layout.Vocab)
	for _, tokens := range c.Prompt {
		decode := 1 + 2*c.NumDrafts // behind the last token nothing is guessed
		if tokens = min(tokens, m.Sizes.MaxContext-decode, m.Sizes.MaxBatchTokens); tokens < 2 {
			continue
		}
		b.forget()
		profiler.Expect(m.Target.Device, c.step(tokens, 1))
		if _, err := b.run(1, tokens, decode); err != nil {
			return err
		}
		step, err := profiler.Result()
		if err != nil {
			return err
		}
		report.Steps = append(report.Steps, step)
	}
	for _, n := range c.Concurrency {
		// The first run leaves the prompts in the cache, so that all sequences of the second decode together.
		decode := min(8+4*c.NumDrafts, m.Sizes.MaxContext-report.Context)
		if _, err := b.run(n, report.Context, decode); err != nil {
			return err
		}
		profiler.Expect(m.Target.Device, c.step(n*(1+c.NumDrafts), n))
		if _, err := b.run(n, report.Context, decode); err != nil {
			return err
		}
		step, err := profiler.Result()
		if err != nil {
			return err
		}
		report.Steps = append(report.Steps, step)
	}
	if c.JSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	return report.print(os.Stdout)
}

// step is one to be measured, with drafts where they are made.
func (c *benchCommand) step(tokens, sequences int) optest.Step {
	return optest.Step{Tokens: tokens, Sequences: sequences, Drafts: c.NumDrafts, Trimmed: c.MTPVocab > 0}
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
		if step.Tokens > step.Sequences*(1+step.Drafts) {
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
