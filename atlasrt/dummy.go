package main

import (
	"context"
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// dummyCommand writes the weights of --load-dummy as a checkpoint, to measure what reading one takes.
type dummyCommand struct {
	Settings string `arg:"" name:"config.json" help:"Settings of the model." type:"existingfile"`
	Folder   string `arg:"" help:"The checkpoint: a new folder." type:"path"`
	Type     string `help:"How matrices are stored." enum:"bf16,f8,f8block,nvfp4" default:"bf16"`
}

// shardBytes is how large a file of a written checkpoint becomes.
const shardBytes = 4 << 30

// Run implements the command.
func (c *dummyCommand) Run() error {
	target, err := hardwareFlags{}.open("")
	if err != nil {
		return err
	}
	checkpoint, err := modelFlags{LoadDummy: c.Settings, DummyType: c.Type}.open(context.Background(), target)
	if err != nil {
		return err
	}
	if err := weights.Write(c.Folder, checkpoint, shardBytes); err != nil {
		return err
	}
	fmt.Printf("%s: %v\n", c.Folder, checkpoint)
	return nil
}
