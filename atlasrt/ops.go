package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
)

// opsCommand judges and times the kernels of this machine. `atlasc test` and `atlasc bench` run it.
type opsCommand struct {
	Test  opsTestCommand  `cmd:"" help:"Compare every kernel with the plain Go reference."`
	Tune  opsTuneCommand  `cmd:"" help:"Measure kernels for given shapes against each other; atlasc tune runs it."`
	Bench opsBenchCommand `cmd:"" help:"Time every kernel at sizes of real models."`
}

// opsFlags choose kernels and cases.
type opsFlags struct {
	hardwareFlags
	Op    []string `short:"o" help:"Operations; empty: all."`
	Match string   `help:"Only cases whose name holds this."`
	JSON  bool     `help:"Print JSON."`
}

// choice is kernels in one mode, to be opened.
type choice struct {
	instance.Hardware
	bundle *bundle.Bundle
}

// choices are the named hardware, or all that this machine can run, each in every mode that modes lists for it. There is at least one.
func (f opsFlags) choices(modes func(*bundle.Bundle) []bool) ([]choice, error) {
	var list []choice
	for _, b := range bundles() {
		h := f.hardware()
		h.Name = b.Hardware
		if b.Hardware != f.Hardware && (f.Hardware != "" || !h.Runs()) {
			continue
		}
		for _, h.Exact = range modes(b) {
			list = append(list, choice{h, b})
		}
	}
	switch {
	case len(list) > 0:
		return list, nil
	case f.Hardware != "":
		_, err := f.open("") // which says what there is
		return nil, err
	}
	return nil, fmt.Errorf("this machine can run none of the kernels that this program has (see atlasrt doctor)")
}

// target opens the kernels. The caller closes the target's device.
func (c choice) target() (optest.Target, error) {
	t, err := c.Open()
	if err != nil {
		return optest.Target{}, err
	}
	b, rounds := c.bundle, map[op.Kernel]string{}
	for i, k := range b.Kernels {
		if k.Rounds != "" {
			rounds[t.Kernels[i]] = k.Rounds
		}
	}
	label := b.Hardware
	if c.Exact {
		label += " --exact"
	}
	if c.AMX && b.Device == "cpu" {
		label += " --amx"
	}
	return optest.Target{
		Name: label, Device: t.Device, Set: t.Set, Act: b.Activations, Exact: c.Exact, Rounds: rounds, Persistent: b.IsPersistent(),
		HostMemory: b.Device == "cpu", Together: b.Device != "cpu" && !c.Exact,
	}, nil
}

// modes are without and with --exact.
func (f opsFlags) modes(*bundle.Bundle) []bool {
	if f.Exact {
		return []bool{true}
	}
	return []bool{false, true}
}

// opsTestCommand is `ops test`.
type opsTestCommand struct {
	opsFlags
	Seed     uint64        `help:"Seed of the random inputs; 0: a fresh one."`
	Short    bool          `help:"Only the quick half of the cases."`
	Verbose  bool          `short:"v" help:"A line for each case."`
	Patience time.Duration `help:"A case that takes longer is an error: a kernel may wait for itself." default:"2m"`
}

// Run implements the command. It fails where a case does, or does not end: what waits for that is left behind, and ends with the process.
func (c *opsTestCommand) Run() error {
	ended := make(chan error, 2)
	go func() {
		ended <- c.run(func(op, name string) {
			ended <- fmt.Errorf("%s %s is not done after %v: a kernel may wait for itself (give slow machines more --patience)", op, name, c.Patience)
		})
	}()
	return <-ended
}

// run calls late for a case that does not end in time.
func (c *opsTestCommand) run(late func(op, name string)) (err error) {
	if c.Seed == 0 {
		c.Seed = freshSeed()
	}
	choices, err := c.choices(c.modes)
	if err != nil {
		return err
	}
	var targets []optest.Target
	defer func() {
		for _, t := range targets {
			err = errors.Join(err, t.Device.Close())
		}
	}()
	for _, h := range choices {
		t, err := h.target()
		if err != nil {
			return err
		}
		targets = append(targets, t)
	}
	shown := newProgress(os.Stderr)
	reports, err := optest.Run(targets, optest.Options{
		Ops: c.Op, Match: c.Match, Seed: c.Seed, Short: c.Short, Late: late, Patience: c.Patience, Progress: shown.Cases(),
	})
	shown.Wait()
	if err != nil {
		return err
	}
	passed, failed := 0, 0
	for _, r := range reports {
		passed, failed = passed+r.Count(optest.Pass), failed+r.Count(optest.Fail)
		if err := c.print(r); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d cases failed", failed, passed+failed)
	}
	return nil
}

// print shows the report of one target.
func (c *opsTestCommand) print(r optest.Report) error {
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	for _, result := range r.Results {
		if c.Verbose || result.Status == optest.Fail {
			fmt.Println(r.Target, result)
		}
	}
	fmt.Printf("%s: %d passed, %d failed, %d skipped (seed %d)\n", r.Target, r.Count(optest.Pass), r.Count(optest.Fail), r.Count(optest.Skip), c.Seed)
	return nil
}

// freshSeed makes inputs that no run had before.
func freshSeed() uint64 { return rand.Uint64() | 1 }
