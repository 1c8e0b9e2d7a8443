package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
	"github.com/atlas-inference/atlas/internal/table"
)

// opsBenchCommand is `ops bench`.
type opsBenchCommand struct {
	opsFlags
	Peers string `help:"Times of other libraries to show beside, as tools/peers/cuda_peers.py writes them." type:"existingfile" placeholder:"FILE.JSON"`
}

// longScratch is what the largest cases on GPUs may ask for.
const longScratch = 2 << 30

// Run implements the command. A share above 100 % is data that stayed in a cache, or a machine that was busy while the
// ceiling was measured.
func (c *opsBenchCommand) Run() error {
	theirs, err := readPeers(c.Peers)
	if err != nil {
		return err
	}
	choices, err := c.choices(c.modes)
	if err != nil {
		return err
	}
	for _, h := range choices {
		if err := c.bench(h, theirs); err != nil {
			return err
		}
	}
	return nil
}

// bench times kernels in one mode, and shows theirs beside.
func (c *opsBenchCommand) bench(h choice, theirs peers) (err error) {
	t, err := h.target()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Device.Close()) }()
	if !t.HostMemory {
		t.Scratch = longScratch
	}
	shown := newProgress(os.Stderr)
	r, err := optest.Bench(t, optest.Options{Ops: c.Op, Match: c.Match, Seed: freshSeed(), Progress: shown.Cases()})
	shown.Wait()
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	fmt.Printf("%s: memory gives up to %.1f GB/s (%s)\n", t.Name, float64(r.Ceiling)/1e9, r.Method)
	if !r.Replayed {
		return queuedTable(r).Print(os.Stdout)
	}
	if err := replayedTable(r, theirs).Print(os.Stdout); err != nil {
		return err
	}
	theirs.slower(os.Stdout, r)
	return nil
}

// modes leave --exact out on GPUs unless it is asked for: what is tuned there is the other one.
func (c *opsBenchCommand) modes(b *bundle.Bundle) []bool {
	if b.Device != "cpu" {
		return []bool{c.Exact}
	}
	return c.opsFlags.modes(b)
}

// queuedTable is of launches that were timed as they are queued.
func queuedTable(r optest.BenchReport) *table.Table {
	t := table.New("op", "case", "\tµs", "\tleast µs", "\tGB/s", "\tGFLOP/s", "\t% of read")
	for _, b := range r.Results {
		if b.Message != "" {
			t.Row(b.Op, b.Case+": "+b.Message)
			continue
		}
		t.Row(b.Op, b.Case, microseconds(b.Cold.Median), microseconds(b.Cold.Min), fmt.Sprintf("%.1f", b.BytesPerSecond()/1e9),
			fmt.Sprintf("%.1f", b.FlopsPerSecond()/1e9), fmt.Sprintf("%.0f", 100*b.Share()))
	}
	return t
}

// replayedTable is of launches out of a recorded step: rates are of the cold ones, where there are any.
func replayedTable(r optest.BenchReport, theirs peers) *table.Table {
	header := []string{"op", "case", "\tµs cold", "\tleast", "\tµs warm", "\tleast", "\tGB/s", "\tTFLOP/s", "\t% of memory"}
	if theirs != nil {
		header = append(header, "peer", "\tµs cold", "\tµs warm", "\tpeer/ours")
	}
	t := table.New(header...)
	for _, b := range r.Results {
		row := []string{b.Op, b.Case + ": " + b.Message, "", "", "", "", "", "", ""}
		if b.Message == "" {
			row = []string{b.Op, b.Case, microseconds(b.Cold.Median), microseconds(b.Cold.Min), microseconds(b.Warm.Median), microseconds(b.Warm.Min),
				fmt.Sprintf("%.0f", b.BytesPerSecond()/1e9), fmt.Sprintf("%.1f", b.FlopsPerSecond()/1e12), fmt.Sprintf("%.0f", 100*b.Share())}
		}
		if theirs != nil {
			row = append(row, theirs.columns(b)...)
		}
		t.Row(row...)
	}
	return t
}

// microseconds is empty for what was not measured.
func microseconds(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < 100*time.Microsecond:
		return fmt.Sprintf("%.2f", float64(d.Nanoseconds())/1e3)
	}
	return fmt.Sprintf("%.1f", float64(d.Nanoseconds())/1e3)
}
