package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
)

// evalCommand measures perplexity.
type evalCommand struct {
	loadFlags
	Text   string `arg:"" type:"existingfile" help:"Text file."`
	Window int    `help:"Tokens per window; each starts afresh." default:"512"`
	Tokens int    `help:"Most tokens to read; 0: all."`
}

// Run implements the command: the mean negative log-likelihood of each token given those before it in its window.
func (c *evalCommand) Run() error {
	data, err := os.ReadFile(c.Text)
	if err != nil {
		return err
	}
	m, err := c.load(context.Background(), slog.Default())
	if err != nil {
		return err
	}
	text, err := instance.OpenText(m.Checkpoint)
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
	direct, err := m.Direct(c.Window + 1)
	if err != nil {
		return err
	}
	sum, count := 0.0, 0
	for start := 0; start+1 < len(tokens); start += c.Window {
		window := tokens[start:min(start+c.Window, len(tokens))]
		logits, err := direct.Logits(window, 0, true)
		if err != nil {
			return err
		}
		vocab := int(m.Layout.Vocab)
		for i, next := range window[1:] {
			sum += negativeLogLikelihood(logits[i*vocab:(i+1)*vocab], next)
			count++
		}
	}
	fmt.Printf("%d tokens: negative log-likelihood %.5f, perplexity %.4f\n", count, sum/float64(count), math.Exp(sum/float64(count)))
	return nil
}

// negativeLogLikelihood is -log softmax(logits)[token].
func negativeLogLikelihood(logits []float32, token int32) float64 {
	top := float64(slices.Max(logits))
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - top)
	}
	return top + math.Log(sum) - float64(logits[token])
}
