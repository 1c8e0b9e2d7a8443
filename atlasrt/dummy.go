package main

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
)

// dummyCommand writes made-up weights as a checkpoint, to measure what reading one takes.
type dummyCommand struct {
	Settings string `arg:"" name:"config.json" help:"Settings of the model: tools/peers has those of some published ones." type:"existingfile"`
	Folder   string `arg:"" help:"The checkpoint: a new folder." type:"path"`
	Type     string `help:"How matrices are stored: ${enum}. nvfp4_all also stores the head so." enum:"bf16,f8,f8block,nvfp4,nvfp4_all" default:"bf16"`
	Dialect  string `help:"How tensors of NVFP4 are named: ${enum}." enum:"modelopt,compressed-tensors" default:"modelopt"`
}

// shardBytes is how large a file of a written checkpoint becomes.
const shardBytes = 4 << 30

// Run implements the command.
func (c *dummyCommand) Run() error {
	target, err := instance.Hardware{Bundles: bundles()}.Ask() // of which only sizes are asked
	if err != nil {
		return err
	}
	config, options, err := modelFlags{LoadDummy: c.Settings, DummyType: c.Type}.dummy()
	if err != nil {
		return err
	}
	options.Dialect = dummy.Dialect(c.Dialect)
	checkpoint, err := instance.Dummy(target, config, options)
	if err != nil {
		return err
	}
	layout := checkpoint.Layout()
	layout.ShardBytes = shardBytes
	if err := weights.Write(c.Folder, checkpoint, layout); err != nil {
		return err
	}
	fmt.Printf("%s: %v\n", c.Folder, checkpoint)
	return nil
}
