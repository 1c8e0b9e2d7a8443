package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
)

// inspectCommand lists what a model reads from a checkpoint and how each tensor is kept.
type inspectCommand struct {
	hardwareFlags
	modelFlags
}

// Run implements the command.
func (c *inspectCommand) Run() error {
	target, err := c.hardwareFlags.open(c.name())
	if err != nil {
		return err
	}
	checkpoint, err := c.modelFlags.open(context.Background(), target)
	if err != nil {
		return err
	}
	defer checkpoint.Close()
	fmt.Println(checkpoint)
	for _, note := range checkpoint.Notes() {
		slog.Warn(note)
	}
	p, err := instance.Prepare(target, checkpoint, instance.Sizes{KVType: target.Bundle.Activations})
	if err != nil {
		return err
	}
	for _, line := range slices.Concat(p.Assumed(), p.Unread()) {
		fmt.Println(line)
	}
	table := tablewriter.NewTable(os.Stdout, tablewriter.WithHeaderAutoFormat(tw.Off))
	table.Header("tensor", "shape", "stored", "kept")
	for _, want := range p.Counter.Wants {
		info, _ := checkpoint.Info(want.Name)
		_ = table.Append(want.Name, fmt.Sprint(want.Shape), info.Type.String(), p.Counter.Kept(want.Name))
	}
	if err := table.Render(); err != nil {
		return err
	}
	text, err := c.text(checkpoint, slog.Default())
	if err != nil { // tensors alone can be listed, too
		fmt.Printf("no text: %v\n", err)
		return nil
	}
	return printSampling(os.Stdout, text.Sampling())
}
