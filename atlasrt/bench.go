package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/internal/table"
)

// benchCommand measures an engine with prompts of random tokens.
type benchCommand struct {
	speculativeFlags
	engineFlags
	profileFlags
	Prompt      []int   `help:"Tokens of prompts that are timed; as many as the context holds, if that is less. 0: none." default:"8192"`
	Context     int     `help:"Tokens that each sequence has before decode is timed." default:"1024"`
	Decode      int     `help:"Tokens that each sequence generates while decode is timed." default:"64"`
	Concurrency []int   `help:"Sequences at a time." default:"1,4,16,64"`
	Acceptance  float32 `name:"force-acceptance" help:"With --speculative: each guess is right with this probability, whatever it is, from 0 to 1: so the speed can be measured that drafts of such quality would give. 0: as they are." placeholder:"P"`
	Repeat      int     `help:"Runs of each measurement, after one that is not counted; the median, the least and the most are shown." default:"3"`
	JSON        bool    `help:"Print JSON."`
}

// benchReport is what JSON holds.
type benchReport struct {
	Checkpoint   string        `json:"checkpoint"`
	Hardware     string        `json:"hardware"`
	Threads      int           `json:"threads,omitempty"` // of a CPU
	Level        int           `json:"optimization_level"`
	GraphMode    string        `json:"graph_mode"`
	BatchTokens  int           `json:"max_batch_tokens"`
	Start        []stage       `json:"start"`
	Measurements []measurement `json:"measurements"`
}

// stage is a part of the time from the start to the first tokens.
type stage struct {
	What    string  `json:"what"`
	Seconds float64 `json:"seconds"`
}

// measurement is one row of the table.
type measurement struct {
	What      string  `json:"what"`
	Sequences int     `json:"sequences"`
	Rate      spread  `json:"tokens_per_second"`
	Time      spread  `json:"milliseconds"`                     // of the prompt, or of a decode step
	Host      float64 `json:"host_microseconds,omitempty"`      // mean of the engine's own work between decode steps
	HostHalf  float64 `json:"host_half_microseconds,omitempty"` // half of the steps take less
	Drafts    float64 `json:"drafts,omitempty"`                 // of a sequence in a step with drafts
	Right     float64 `json:"drafts_right,omitempty"`           // of these, in a step
	Note      string  `json:"note,omitempty"`                   // why it was not measured
}

// Run implements the command.
func (c *benchCommand) Run() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Profile {
		return c.profile()
	}
	options := c.options()
	report := benchReport{Level: c.OptimizationLevel, GraphMode: string(options.Graphs)}
	begin := time.Now()
	lap := func(what string) {
		now := time.Now()
		report.Start = append(report.Start, stage{what, now.Sub(begin).Seconds()})
		begin = now
	}
	p, err := c.prepare(context.Background())
	if err != nil {
		return err
	}
	lap("open kernels and checkpoint")
	m, err := loadShown(context.Background(), p)
	if err != nil {
		return err
	}
	lap("load weights")
	e, err := m.Start(options)
	if err != nil {
		return err
	}
	defer e.Close()
	lap("start the engine")
	report.Checkpoint, report.Hardware, report.Threads = m.Checkpoint.String(), m.Target.Bundle.Hardware, m.Target.Threads()
	report.BatchTokens = m.Sizes.MaxBatchTokens

	context := min(c.Context, m.Sizes.MaxContext-2)
	b := newBencher(e, m.Layout.Vocab)
	first, err := b.run(1, context, 2)
	if err != nil {
		return err
	}
	report.Start = append(report.Start, stage{fmt.Sprintf("first prompt, %d tokens", context), first[0][0].Seconds()},
		stage{"second token", (first[0][1] - first[0][0]).Seconds()})

	shown := newProgress(os.Stderr)
	defer shown.Wait()
	step := shown.Steps(len(c.Prompt) + len(c.Concurrency))
	for _, tokens := range c.Prompt {
		step(fmt.Sprintf("prompt of %d", tokens))
		if tokens = min(tokens, m.Sizes.MaxContext-1); tokens < 1 {
			continue
		}
		row, err := c.prompt(b, tokens)
		if err != nil {
			return err
		}
		report.Measurements = append(report.Measurements, row)
	}
	for _, n := range c.Concurrency {
		step(fmt.Sprintf("decode of %d at a time", n))
		row, err := c.decode(b, n, context, m.Sizes)
		if err != nil {
			return err
		}
		report.Measurements = append(report.Measurements, row)
	}
	shown.Wait()
	if c.JSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	return report.print(os.Stdout)
}

// set fills in what the flags say of an engine.
func (c *benchCommand) set(o engine.Options) engine.Options {
	return c.engineFlags.set(c.draftFlags.set(o))
}

// check refuses what cannot be measured.
func (c *benchCommand) check() error {
	switch {
	case !(c.Acceptance >= 0 && c.Acceptance <= 1):
		return fmt.Errorf("--force-acceptance %g is no probability (set it from 0 to 1)", c.Acceptance)
	case c.Acceptance > 0 && !c.Speculative:
		return errors.New("--force-acceptance is for guesses, and none are made (add --speculative, or leave it out)")
	case c.Profile && c.Speculative && c.NumDrafts == 0:
		return errors.New("--profile looks at steps that all have as many guesses (add --num-drafts 1, 2 or 3, or leave --speculative out)")
	}
	return nil
}

// options let as many requests wait as are sent at once.
func (c *benchCommand) options() engine.Options {
	most := slices.Max(append(c.Concurrency, 1))
	return c.set(engine.Options{
		ForceDrafts:      c.Acceptance,
		MaxWaiting:       max(most, engine.DefaultWaiting),
		MaxWaitingTokens: max(most*c.Context, engine.DefaultWaitingTokens),
		Log:              slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
}

// prompt times one prompt at a time, of tokens that no prompt before had.
func (c *benchCommand) prompt(b *bencher, tokens int) (measurement, error) {
	row := measurement{What: fmt.Sprintf("prompt of %d", tokens), Sequences: 1}
	var milliseconds, rates []float64
	for i := range max(c.Repeat, 1) + 1 {
		b.forget()
		times, err := b.run(1, tokens, 1)
		if err != nil {
			return row, err
		}
		if i > 0 {
			milliseconds = append(milliseconds, times[0][0].Seconds()*1e3)
			rates = append(rates, float64(tokens)/times[0][0].Seconds())
		}
	}
	row.Time, row.Rate = spreadOf(milliseconds), spreadOf(rates)
	return row, nil
}

// decode times n sequences that all generate. Their prompts stay the same, so that all but the first run find them in the cache
// and begin together.
func (c *benchCommand) decode(b *bencher, n, context int, sizes instance.Sizes) (measurement, error) {
	decode := min(c.Decode, sizes.MaxContext-context)
	row := measurement{What: fmt.Sprintf("decode of %d after %d", decode, context), Sequences: n}
	stats := b.engine.Stats()
	if room := stats.BlocksTotal / ((context+decode)/sizes.BlockSize + 1); n > sizes.MaxSequences || n > room {
		row.Note = fmt.Sprintf("at most %d fit (see --max-sequences, --max-context and --memory)", min(sizes.MaxSequences, room))
		return row, nil
	}
	var milliseconds, rates []float64
	var before engine.Stats
	for i := range max(c.Repeat, 1) + 1 {
		times, err := b.run(n, context, decode)
		if err != nil {
			return row, err
		}
		if i == 0 {
			before = b.engine.Stats()
			continue
		}
		rate := together(times)
		if rate == 0 {
			row.Note = "they never all generated at once (raise --decode)"
			return row, nil
		}
		rates = append(rates, rate)
		milliseconds = append(milliseconds, float64(n)*1e3/rate)
	}
	row.Time, row.Rate = spreadOf(milliseconds), spreadOf(rates)
	after := b.engine.Stats()
	if times := float64(after.Drafting - before.Drafting); times > 0 {
		row.Drafts, row.Right = float64(after.Drafted-before.Drafted)/times, float64(after.Accepted-before.Accepted)/times
	}
	host := after.Host.Since(before.Host)
	if steps := host.Count(); steps > 0 {
		row.Host, row.HostHalf = host.Sum/float64(steps)*1e6, host.Quantile(0.5)*1e6
	}
	return row, nil
}

// print writes the report for people.
func (r *benchReport) print(w io.Writer) error {
	fmt.Fprintf(w, "%s on %s", r.Checkpoint, r.Hardware)
	if r.Threads > 0 {
		fmt.Fprintf(w, ", %d threads", r.Threads)
	}
	fmt.Fprintf(w, ", -O%d, graphs %s, steps of up to %d rows\n", r.Level, r.GraphMode, r.BatchTokens)
	total := 0.0
	start := table.New("from the start to the second token", "\ts")
	for _, s := range r.Start {
		total += s.Seconds
		start.Row(s.What, fmt.Sprintf("%.3f", s.Seconds))
	}
	start.Row("in all", fmt.Sprintf("%.3f", total))
	if err := start.Print(w); err != nil {
		return err
	}
	columns := []string{"measured", "\tsequences", "\ttok/s", "\tleast", "\tmost", "\tms", "\tleast", "\tmost", "\thost µs/step", "\thalf under"}
	drafts := slices.ContainsFunc(r.Measurements, func(m measurement) bool { return m.Drafts > 0 })
	if drafts {
		columns = append(columns, "\tdrafts", "\tright")
	}
	t := table.New(columns...)
	var notes []string
	for _, m := range r.Measurements {
		cells := []string{m.What, fmt.Sprint(m.Sequences)}
		if m.Note != "" {
			t.Row(append(cells, "–")...)
			notes = append(notes, fmt.Sprintf("%s, %d sequences: %s", m.What, m.Sequences, m.Note))
			continue
		}
		for _, v := range []float64{m.Rate.Median, m.Rate.Least, m.Rate.Most} {
			cells = append(cells, fmt.Sprintf("%.1f", v))
		}
		for _, v := range []float64{m.Time.Median, m.Time.Least, m.Time.Most} {
			cells = append(cells, fmt.Sprintf("%.2f", v))
		}
		host := []string{"", ""}
		if m.Host > 0 {
			host = []string{fmt.Sprintf("%.1f", m.Host), fmt.Sprintf("%.0f", m.HostHalf)}
		}
		if cells = append(cells, host...); drafts {
			cells = append(cells, fmt.Sprintf("%.2f", m.Drafts), fmt.Sprintf("%.2f", m.Right))
		}
		t.Row(cells...)
	}
	if err := t.Print(w); err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintln(w, table.Fit(note, table.Columns))
	}
	return nil
}
