package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
)

// opsTuneCommand is `ops tune`, which `atlasc tune` runs.
type opsTuneCommand struct {
	hardwareFlags
	Trials string `help:"Shapes and candidates, as atlasc tune writes them." type:"existingfile" required:"" placeholder:"FILE.JSON"`
}

// tuneReport is what it prints.
type tuneReport struct {
	Hardware string
	Features []string // that this machine's processor has
	Tried    []optest.Tried
}

// Run implements the command.
func (c *opsTuneCommand) Run() error {
	text, err := os.ReadFile(c.Trials)
	if err != nil {
		return fmt.Errorf("read trials: %w", err)
	}
	var trials []optest.Trial
	if err := json.Unmarshal(text, &trials); err != nil {
		return fmt.Errorf("%s holds no trials: %w", c.Trials, err)
	}
	t, err := c.open("")
	if err != nil {
		return err
	}
	defer t.Device.Close()
	report := tuneReport{Hardware: t.Bundle.Hardware}
	if report.Features, err = (instance.Hardware{GPU: c.GPU}).Features(t.Bundle.Device); err != nil {
		return err
	}
	slices.Sort(report.Features)
	report.Tried, err = optest.Tune(optest.Target{
		Name: t.Bundle.Hardware, Device: t.Device, Set: t.Set, Act: t.Bundle.Activations, Exact: c.Exact, HostMemory: t.Bundle.Device == "cpu",
	}, trials, t.Points(), freshSeed())
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}
