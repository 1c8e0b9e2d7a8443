package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/atlas-inference/atlas/internal/table"
)

// planCommand answers "does it fit" before anything is loaded.
type planCommand struct {
	loadFlags
	draftFlags
	JSON bool `help:"Print JSON."`
}

// Run implements the command.
func (c *planCommand) Run() error {
	target, err := c.ask(c.name())
	if err != nil {
		return err
	}
	c.Draft = c.draftFlags
	p, err := c.prepareOn(context.Background(), target)
	if err != nil {
		return err
	}
	m, err := p.Plan()
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(m)
	}
	fmt.Printf("%s on %s\n", p.Checkpoint, p.Target.Bundle.Hardware)
	t := table.New("memory", "\tbytes", "\t")
	for _, row := range []struct {
		what  string
		bytes int64
	}{{"weights", m.Weights}, {"activations", m.Activations}, {"scratch", m.Scratch}, {"inputs", m.Inputs}, {"logits", m.Logits}, {"cache", m.Cache},
		{"states", m.States}, {"total", m.Total}, {"limit", m.Limit}} {
		t.Row(row.what, fmt.Sprint(row.bytes), formatBytes(row.bytes))
	}
	if err := t.Print(os.Stdout); err != nil {
		return err
	}
	fmt.Printf("limit: %s\n", p.Bound)
	fmt.Printf("cache: %d blocks of %d tokens (%s each) hold %d tokens: %d sequences of %d tokens at a time, %d at most\n",
		m.Blocks, p.Sizes.BlockSize, formatBytes(m.BlockBytes), m.Tokens, m.Tokens/p.Sizes.MaxContext, p.Sizes.MaxContext, p.Sizes.MaxSequences)
	if m.Slots > 0 {
		fmt.Printf("states: %d slots (%s each), one for each sequence that runs\n", m.Slots, formatBytes(m.SlotBytes))
	}
	return nil
}
