package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
)

// opsCommand judges and times the kernels of this machine. `atlasc test` and `atlasc bench` run it.
type opsCommand struct {
	Test  opsTestCommand  `cmd:"" help:"Compare every kernel with the plain Go reference."`
	Bench opsBenchCommand `cmd:"" help:"Time every kernel at sizes of real models."`
}

// opsFlags choose kernels and cases.
type opsFlags struct {
	hardwareFlags
	Op    []string `short:"o" help:"Operations; empty: all."`
	Match string   `help:"Only cases whose name holds this."`
	JSON  bool     `help:"Print JSON."`
}

// targets are the named hardware, or all that this machine can run, each without and with --exact unless chosen.
func (f opsFlags) targets(visit func(optest.Target) error) error {
	names := []string{f.Hardware}
	if f.Hardware == "" {
		names = nil
		for _, b := range bundles() {
			if (instance.Hardware{Bundles: bundles(), Name: b.Hardware}).Runs() {
				names = append(names, b.Hardware)
			}
		}
		if len(names) == 0 {
			return fmt.Errorf("this machine can run none of the kernels that this program has (see atlasrt doctor)")
		}
	}
	exact := []bool{false, true}
	if f.Exact {
		exact = []bool{true}
	}
	for _, name := range names {
		for _, e := range exact {
			t, err := instance.Hardware{Bundles: bundles(), Name: name, Kernels: f.Kernels, Threads: f.Threads, GPU: f.GPU, Exact: e}.Open()
			if err != nil {
				return err
			}
			label := name
			if e {
				label += " --exact"
			}
			err = visit(optest.Target{
				Name: label, Device: t.Device, Set: t.Set, Act: t.Bundle.Activations, Exact: e,
				HostMemory: t.Bundle.Device == "cpu", Together: t.Bundle.Device != "cpu" && !e})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// opsTestCommand is `ops test`.
type opsTestCommand struct {
	opsFlags
	Seed    uint64 `help:"Seed of the random inputs; 0: a fresh one."`
	Short   bool   `help:"Only the quick half of the cases."`
	Verbose bool   `short:"v" help:"A line for each case."`
}

// Run implements the command. It fails where a case does.
func (c *opsTestCommand) Run() error {
	if c.Seed == 0 {
		c.Seed = freshSeed()
	}
	passed, failed, skipped := 0, 0, 0
	err := c.targets(func(t optest.Target) error {
		r, err := optest.Run(t, optest.Options{Ops: c.Op, Match: c.Match, Seed: c.Seed, Short: c.Short})
		if err != nil {
			return err
		}
		if c.JSON {
			return json.NewEncoder(os.Stdout).Encode(r)
		}
		for _, result := range r.Results {
			if c.Verbose || result.Status == optest.Fail {
				fmt.Println(t.Name, result)
			}
		}
		passed, failed, skipped = passed+r.Count(optest.Pass), failed+r.Count(optest.Fail), skipped+r.Count(optest.Skip)
		fmt.Printf("%s: %d passed, %d failed, %d skipped (seed %d)\n", t.Name, r.Count(optest.Pass), r.Count(optest.Fail), r.Count(optest.Skip), c.Seed)
		return nil
	})
	if err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d cases failed", failed, passed+failed)
	}
	return nil
}

// freshSeed makes inputs that no run had before.
func freshSeed() uint64 { return rand.Uint64() | 1 }

// opsBenchCommand is `ops bench`.
type opsBenchCommand struct{ opsFlags }

// Run implements the command. A share above 100 % is data that stayed in a cache, or a machine that was busy while the
// ceiling was measured.
func (c *opsBenchCommand) Run() error {
	return c.targets(func(t optest.Target) error {
		r, err := optest.Bench(t, optest.Options{Ops: c.Op, Match: c.Match, Seed: freshSeed()})
		if err != nil {
			return err
		}
		if c.JSON {
			return json.NewEncoder(os.Stdout).Encode(r)
		}
		fmt.Printf("%s: a plain read reaches %.1f GB/s\n", t.Name, float64(r.Ceiling)/1e9)
		table := tablewriter.NewTable(os.Stdout, tablewriter.WithHeaderAutoFormat(tw.Off))
		table.Header("op", "case", "µs", "least µs", "GB/s", "GFLOP/s", "% of read")
		for _, b := range r.Results {
			if b.Message != "" {
				_ = table.Append(b.Op, b.Case, b.Message, "", "", "", "")
				continue
			}
			_ = table.Append(b.Op, b.Case, microseconds(b.Median), microseconds(b.Min), fmt.Sprintf("%.1f", b.BytesPerSecond()/1e9),
				fmt.Sprintf("%.1f", b.FlopsPerSecond()/1e9), fmt.Sprintf("%.0f", 100*b.Share()))
		}
		return table.Render()
	})
}

func microseconds(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Nanoseconds())/1e3) }
