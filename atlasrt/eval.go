package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/internal/table"
)

// evalCommand measures perplexity, or how far the default kernels are from the exact ones.
type evalCommand struct {
	loadFlags
	Text         string `arg:"" type:"existingfile" help:"Text file."`
	Window       int    `help:"Tokens per window; each starts afresh." default:"512"`
	Skip         int    `help:"Tokens at the start of each window that are read and not counted."`
	Tokens       int    `help:"Most tokens to read; 0: all."`
	AgainstExact bool   `help:"Run the text with the kernels of --exact as well, and say how far the default ones are from them."`
	JSON         bool   `name:"json" help:"With --against-exact: JSON in place of a table."`
}

// Run implements the command. What is counted is each token given those before it in its window.
func (c *evalCommand) Run() error {
	if c.AgainstExact && c.Exact {
		return errors.New("--against-exact compares the default kernels with the exact ones (leave --exact out)")
	}
	data, err := os.ReadFile(c.Text)
	if err != nil {
		return err
	}
	m, err := c.load(context.Background(), slog.Default(), noDrafts)
	if err != nil {
		return err
	}
	text, err := instance.OpenText(m.Checkpoint) // a text is read as it is, without sampling or ends
	if err != nil {
		return err
	}
	tokens := text.Tokenizer.Encode(string(data), false)
	if c.Tokens > 0 && len(tokens) > c.Tokens {
		tokens = tokens[:c.Tokens]
	}
	if c.Window < 2 || len(tokens) < 2 {
		return fmt.Errorf("the text has %d tokens and the window %d: both must be at least 2", len(tokens), c.Window)
	}
	if last := min(c.Window, len(tokens)) - 1; c.Skip < 0 || c.Skip >= last {
		return fmt.Errorf("--skip is %d: it must be at least 0, and less than the %d tokens of a window that have others before them", c.Skip, last)
	}
	direct, err := m.Direct(c.Window + 1)
	if err != nil {
		return err
	}
	vocab := int(m.Layout.Vocab)
	if c.AgainstExact {
		exact, err := c.exactly()
		if err != nil {
			return fmt.Errorf("the exact kernels: %w", err)
		}
		all, err := c.compare(tokens, vocab, exact, direct)
		if err != nil {
			return err
		}
		return c.print(os.Stdout, m.Target, compared(all))
	}
	sum, count := 0.0, 0
	err = c.windows(tokens, func(window []int32) error {
		logits, err := direct.Logits(window, 0, true)
		if err != nil {
			return err
		}
		for i, next := range window[1:] {
			if i < c.Skip {
				continue
			}
			row := logits[i*vocab : (i+1)*vocab]
			sum += normaliser(row) - float64(row[next])
			count++
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Printf("%d tokens: negative log-likelihood %.5f, perplexity %.4f\n", count, sum/float64(count), math.Exp(sum/float64(count)))
	return nil
}

// windows cuts tokens; a last window with nothing to count is left out.
func (c *evalCommand) windows(tokens []int32, visit func(window []int32) error) error {
	for start := 0; start+1+c.Skip < len(tokens); start += c.Window {
		if err := visit(tokens[start:min(start+c.Window, len(tokens))]); err != nil {
			return err
		}
	}
	return nil
}

// exactly loads the model once more, with the exact kernels of the same hardware.
func (c *evalCommand) exactly() (*engine.Direct, error) {
	flags := c.loadFlags
	flags.Exact, flags.RecordShapes = true, ""
	m, err := flags.load(context.Background(), slog.New(slog.DiscardHandler), noDrafts) // what there is to say has been said
	if err != nil {
		return nil, err
	}
	return m.Direct(c.Window + 1)
}

// compare runs the windows through two kernel sets.
func (c *evalCommand) compare(tokens []int32, vocab int, exact, direct *engine.Direct) ([]scored, error) {
	var all []scored
	err := c.windows(tokens, func(window []int32) error {
		right, err := exact.Logits(window, 0, true)
		if err != nil {
			return err
		}
		judged, err := direct.Logits(window, 0, true)
		if err != nil {
			return err
		}
		all = append(all, score(right[c.Skip*vocab:], judged[c.Skip*vocab:], vocab, window[1+c.Skip:])...)
		return nil
	})
	return all, err
}

func (c *evalCommand) print(w io.Writer, target *instance.Target, r comparison) error {
	if c.JSON {
		return json.NewEncoder(w).Encode(r)
	}
	fmt.Fprintf(w, "%s on %s: the default kernels beside those of --exact, %d tokens in windows of %d\n", c.checkpoint(), target.Bundle.Hardware, r.Tokens, c.Window)
	t := table.New("\tKL, mean", "\t99 %", "\tmost", "\tsame top token", "\tperplexity", "\texact")
	t.Row(fmt.Sprintf("%.5f ± %.5f", r.MeanKL, r.KLError), fmt.Sprintf("%.4f", r.KL99), fmt.Sprintf("%.4f", r.MaxKL),
		fmt.Sprintf("%.2f %%", 100*r.SameTop), fmt.Sprintf("%.4f", r.Perplexity), fmt.Sprintf("%.4f", r.PerplexityRef))
	return t.Print(w)
}

// checkpoint is what the report calls the model.
func (c *evalCommand) checkpoint() string {
	if c.LoadDummy != "" {
		return c.LoadDummy
	}
	return c.Model
}
