package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// inspectCommand lists what a model reads from a checkpoint and how each tensor is kept, and sums up what the checkpoint is.
type inspectCommand struct {
	hardwareFlags
	modelFlags
	answerFlags
	draftFlags
	All bool `help:"A line for each tensor, not one for those that differ in their layer or expert alone."`
}

// Run implements the command. A checkpoint that cannot be served is described all the same, before the error.
func (c *inspectCommand) Run() error {
	target, err := c.ask(c.name())
	if err != nil {
		return err
	}
	checkpoint, err := c.modelFlags.open(context.Background(), target)
	if err != nil {
		return err
	}
	defer checkpoint.Close()
	for _, note := range checkpoint.Notes() {
		slog.Warn(note)
	}
	s, unreadable := summarize(c.name(), checkpoint)
	sizes, err := sizeFlags{KVType: "auto"}.sizes(c.Exact) // as serve has them
	if err != nil {
		return err
	}
	drafts, err := c.drafting()
	if err != nil {
		return err
	}
	sizes = drafts.set(sizes)
	p, unserved := instance.Prepare(target, checkpoint, sizes)
	if unserved == nil {
		s.serve(p)
		s.note(slices.Concat(p.Assumed(), p.Unread(), p.Quantised()))
	}
	if err := c.describe(target, checkpoint, p, sizes.Drafts); err != nil && unserved == nil {
		return err // else unserved says why
	}
	text, err := c.text(c.modelFlags, checkpoint, slog.Default())
	if err != nil { // tensors alone can be described, too
		s.row("text", "none: "+err.Error())
	} else {
		s.speak(text)
		fmt.Println()
		if err := printAnswers(os.Stdout, text, text.Sampling()); err != nil {
			return err
		}
	}
	if unserved != nil {
		s.row("served", "no")
	}
	fmt.Println()
	return errors.Join(s.table.Print(os.Stdout), unreadable, unserved)
}

// describe prints what a model, with so many drafts, reads from a checkpoint, also where it cannot be served and p is nil.
func (c *inspectCommand) describe(target *instance.Target, checkpoint weights.Checkpoint, p *instance.Prepared, drafts int) error {
	counter, err := instance.Wants(target, checkpoint, drafts)
	if err != nil {
		return err
	}
	matrices, err := describeMatrices(target, counter, p)
	if err != nil {
		return err
	}
	if err := printTensors(os.Stdout, tensorTitles, describeTensors(checkpoint, counter), c.All, wholly); err != nil {
		return err
	}
	fmt.Println()
	return printTensors(os.Stdout, matrixTitles, matrices, c.All, layersBelow)
}
