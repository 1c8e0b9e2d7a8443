package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/internal/table"
)

// planCommand answers "does it fit" before anything is loaded.
type planCommand struct {
	speculativeFlags
	JSON bool `help:"Print JSON."`
}

// Run implements the command.
func (c *planCommand) Run() error {
	target, err := c.ask(c.name())
	if err != nil {
		return err
	}
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
	share, err := p.DraftShare(m)
	if err != nil {
		return err
	}
	columns, drafted := []string{"memory", "\tbytes", "\t"}, p.Sizes.Drafts > 0
	if drafted {
		columns = append(columns, "\tfor drafts")
	}
	t := table.New(columns...)
	lines := func(m engine.Memory) []int64 {
		return []int64{m.Weights, m.Activations, m.Scratch, m.Inputs, m.Logits, m.Cache, m.States, m.Total, m.Limit}
	}
	names, all, drafts := []string{"weights", "activations", "scratch", "inputs", "logits", "cache", "states", "total", "limit"}, lines(m), lines(share)
	for i, name := range names {
		row := []string{name, fmt.Sprint(all[i]), formatBytes(all[i])}
		if drafted && name != "limit" {
			row = append(row, formatBytes(drafts[i]))
		}
		t.Row(row...)
	}
	if err := t.Print(os.Stdout); err != nil {
		return err
	}
	fmt.Printf("limit: %s\n", p.Bound)
	fmt.Printf("cache: %d blocks of %d tokens (%s each) hold %d tokens: %d sequences of %d tokens at a time, %d at most\n",
		m.Blocks, p.Sizes.BlockSize, formatBytes(m.BlockBytes), m.Tokens, m.Tokens/p.Sizes.MaxContext, p.Sizes.MaxContext, p.Sizes.MaxSequences)
	if drafted {
		fmt.Printf("drafts: up to %d of a sequence in a step\n", p.Sizes.Drafts)
	}
	if m.Slots > 0 {
		fmt.Printf("states: %d slots (%s each), one for each sequence that runs\n", m.Slots, formatBytes(m.SlotBytes))
	}
	return nil
}
