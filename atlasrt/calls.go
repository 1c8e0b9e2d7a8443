package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/calls"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/internal/table"
)

// callsCommand lists what a step of a model calls. `atlasc explain`, `new` and `tune` read it as JSON.
type callsCommand struct {
	Settings string   `arg:"" name:"config" help:"config.json of a model, or the folder that holds it." type:"path"`
	Hardware string   `help:"Kernels to ask, such as h200, which need not be in this machine; empty: the best that this machine can run."`
	Name     string   `help:"What the checkpoint is called, for kernels made for it; empty: kernels for any model."`
	Quant    string   `help:"How matrices are stored: ${enum}." enum:"bf16,q8_0,q4_0,q4_1,q5_0,q4_k,q4_k_m,q6_k,f8,f8block,nvfp4,nvfp4_all" default:"bf16"`
	Batch    int      `help:"Sequences of the step." default:"1"`
	Context  int      `help:"Tokens of each sequence." default:"1024"`
	Prompt   int      `help:"New tokens of each sequence: 1 decodes." default:"1"`
	Exact    bool     `help:"As with --exact of other commands."`
	AMX      bool     `name:"amx" help:"As with --amx of other commands."`
	Without  []string `help:"Processor features that are not there; all that kernels ask for are." placeholder:"A,B"`
	JSON     bool     `help:"Print JSON."`
}

// mostRows bounds the rows and tokens of a step.
const mostRows = 1 << 20

// Validate bounds the numbers; kong calls it.
func (c *callsCommand) Validate() error {
	for _, n := range []int{c.Batch, c.Context, c.Prompt} {
		if n < 1 || n > mostRows {
			return fmt.Errorf("--batch, --context and --prompt must be between 1 and %d", mostRows)
		}
	}
	switch {
	case c.Prompt > c.Context:
		return fmt.Errorf("--prompt %d is more than --context %d", c.Prompt, c.Context)
	case c.Batch*c.Prompt > mostRows || c.Batch*c.Context > 1<<30:
		return errors.New("--batch is too large for so many tokens")
	}
	return nil
}

// callsReport is what JSON holds.
type callsReport struct {
	Hardware string
	Contract string // of the generated code that the program was built from
	Calls    []calls.Call
}

// Run implements the command. A call that no kernel serves is an error.
func (c *callsCommand) Run() error {
	h := instance.Hardware{Bundles: bundles(), Name: c.Hardware, Exact: c.Exact, AMX: c.AMX}
	target, err := h.Ask(c.Without...)
	if err != nil {
		return err
	}
	report := callsReport{Hardware: target.Bundle.Hardware, Contract: target.Bundle.Contract}
	if report.Calls, err = c.calls(target.For(c.Name)); err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(report)
	}
	return report.print(os.Stdout)
}

// calls makes weights up for the config, of which only sizes are asked, and lists the step.
func (c *callsCommand) calls(target *instance.Target) ([]calls.Call, error) {
	file := c.Settings
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		file = filepath.Join(file, "config.json")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the model's config: %w", err)
	}
	config, err := weights.ParseConfig(file, text)
	if err != nil {
		return nil, err
	}
	stored, err := dummy.Parse(c.Quant)
	if err != nil {
		return nil, err
	}
	checkpoint, err := instance.Dummy(target, config, stored)
	if err != nil {
		return nil, err
	}
	kept := op.BF16
	if c.Exact {
		kept = op.F32
	}
	p, err := instance.Prepare(target, checkpoint, instance.Sizes{
		MaxContext: c.Context, MaxSequences: c.Batch, MaxBatchTokens: c.Batch * c.Prompt, KVType: kept,
	})
	if err != nil {
		return nil, err
	}
	return p.Calls(c.Batch, c.Prompt, c.Context)
}

// print writes the report for people.
func (r *callsReport) print(w io.Writer) error {
	t := table.New("operation", "of", "sizes", "\tcalls", "\tkB", "kernels and their grids")
	var bytes, flops, launches int64
	for _, c := range r.Calls {
		row := []string{c.Op, c.What, c.Sizes, fmt.Sprint(c.Count), fmt.Sprintf("%.1f", float64(c.Bytes)/1e3)}
		for _, l := range c.Launches {
			t.Row(append(row, fmt.Sprintf("%s %d×%d×%d", strings.TrimPrefix(l.Kernel, "atlas_"), l.Grid[0], l.Grid[1], l.Grid[2]))...)
			row = make([]string, len(row)) // one call, several launches
		}
		bytes, flops, launches = bytes+c.Count*c.Bytes, flops+c.Count*c.Flops, launches+c.Count*int64(len(c.Launches))
	}
	if err := t.Print(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "on %s a step moves at least %.1f MB and has %.1f GFLOP in %d launches\n", r.Hardware, float64(bytes)/1e6, float64(flops)/1e9, launches)
	return err
}
