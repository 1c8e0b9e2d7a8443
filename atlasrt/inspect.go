package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/internal/table"
)

// inspectCommand lists what a model reads from a checkpoint and how each tensor is kept, and sums up what the checkpoint is.
type inspectCommand struct {
	hardwareFlags
	modelFlags
	answerFlags
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
	p, unserved := instance.Prepare(target, checkpoint, sizes)
	if unserved == nil {
		s.serve(p)
		s.note(slices.Concat(p.Assumed(), p.Unread(), p.Quantised()))
		if err := printTensors(os.Stdout, s.tensors, c.All); err != nil {
			return err
		}
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

// printTensors lists what is read, as many layers and experts in one line as are alike.
func printTensors(w io.Writer, tensors []readTensor, all bool) error {
	if !all {
		t := table.New("tensor", "shape", "stored", "kept", "\ttensors")
		for _, g := range collapse(tensors) {
			t.Row(g.name(), g.Shape, g.Stored, g.Kept, fmt.Sprint(len(g.numbers)))
		}
		return t.Print(w)
	}
	t := table.New("tensor", "shape", "stored", "kept")
	for _, x := range tensors {
		t.Row(x.Name, x.Shape, x.Stored, x.Kept)
	}
	return t.Print(w)
}
