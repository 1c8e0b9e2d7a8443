package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/bench"
	"github.com/atlas-inference/atlas/atlasc/internal/emit"
	"github.com/atlas-inference/atlas/atlasc/internal/plan"
)

// costFlags ask what a model's calls cost.
type costFlags struct {
	Config    string   `help:"config.json of a model: show which kernel serves each of its calls, and what that costs." type:"existingfile" placeholder:"FILE"`
	Quant     string   `help:"Weight scheme of the model's matrices." default:"bf16" placeholder:"SCHEME"`
	Batch     int64    `help:"Sequences that decode at a time." default:"1" placeholder:"N"`
	Context   int64    `help:"Tokens of each sequence." default:"1024" placeholder:"N"`
	Prompt    int64    `help:"New tokens of each sequence: 1 decodes." default:"1" placeholder:"N"`
	Exact     bool     `help:"With the runtime's --exact."`
	Without   []string `help:"Processor features of the hardware that are not there." placeholder:"A,B"`
	Bandwidth float64  `help:"GB/s that a plain read reaches (default: of --measured, else kBandwidth of the hardware)." placeholder:"GB/S"`
	Measured  string   `help:"Measurements kept by atlasc bench --save, to show beside." type:"existingfile" placeholder:"FILE"`
}

// Validate bounds the numbers; kong calls it.
func (c *costFlags) Validate() error {
	if err := errors.Join(bound("--batch", c.Batch), bound("--context", c.Context), bound("--prompt", c.Prompt)); err != nil {
		return err
	}
	if c.Prompt > c.Context {
		return fmt.Errorf("--prompt %d is more than --context %d", c.Prompt, c.Context)
	}
	return nil
}

// reportName is what the runtime calls its report on a hardware.
func (c *costFlags) reportName(h *plan.Hardware) string {
	if c.Exact {
		return h.Name + " --exact"
	}
	return h.Name
}

// measured finds a call among measured cases: by the fields of its struct where they are kept, else by the sizes in the
// case's name.
func measured(cases []bench.Case, target string, call call) *bench.Case {
	words := []string{call.Scheme, fmt.Sprintf("%d×%d", call.Args["W.Rows"], call.Args["W.Cols"])}
	rows := fmt.Sprintf(" rows %d", call.Args["Rows"])
	i := slices.IndexFunc(cases, func(c bench.Case) bool {
		if c.Target != target || c.Op != call.Op {
			return false
		}
		if c.Args != nil {
			return sameSizes(c.Args, call.Args)
		}
		has := strings.Fields(c.Case)
		return call.Scheme != "" && slices.Contains(has, words[0]) && slices.Contains(has, words[1]) && strings.HasSuffix(c.Case, rows)
	})
	if i < 0 {
		return nil
	}
	return &cases[i]
}

// sameSizes compares the fields that decide how much a call does; pitches and the size of the whole cache do not.
func sameSizes(a, b map[string]int64) bool {
	for name, n := range b {
		if got, there := a[name]; there && got != n && !slices.Contains([]string{"OutPitch", "QPitch", "Blocks", "Edits", "Normalise"}, name) {
			return false
		}
	}
	return true
}

// bandwidth is the ceiling in bytes per second and where it comes from; 0 where nothing says. measured is nil where nothing was.
func (c *costFlags) bandwidth(h *plan.Hardware, measured *bench.File) (bytesPerSecond float64, source string) {
	if c.Bandwidth > 0 {
		return c.Bandwidth * 1e9, "--bandwidth"
	}
	if measured != nil {
		if ceiling := measured.Ceiling(c.reportName(h)); ceiling > 0 {
			return float64(ceiling), "a plain read, as measured on " + measured.Machine
		}
	}
	if k := h.Constants["kBandwidth"]; k > 0 {
		return float64(k) * 1e9, "kBandwidth of targets/" + h.File
	}
	return 0, "nothing says how fast it reads: pass --bandwidth, or --measured with a file of atlasc bench --save"
}

// run prints the costs of a model's calls.
func (c *costFlags) run(env *environment, pkg *emit.Package, set *plan.Set, op string) error {
	steps := modelSteps{config: c.Config, quant: c.Quant, set: set.Model, exact: c.Exact, without: c.Without}
	calls, err := steps.calls(env, pkg, step{c.Batch, c.Prompt, c.Context})
	if err != nil {
		return err
	}
	calls = slices.DeleteFunc(calls, func(x call) bool { return op != "" && x.Op != op })
	if len(calls) == 0 {
		return fmt.Errorf("the model does not call %s", op)
	}
	var file *bench.File
	var cases []bench.Case
	if c.Measured != "" {
		if file, err = bench.Read(c.Measured); err != nil {
			return err
		}
		cases = file.Cases()
	}
	h := pkg.Hardware
	bandwidth, source := c.bandwidth(h, file)
	fmt.Fprintf(env.stdout, "%s, %s weights, %d × %d new of %d tokens; ", c.reportName(h), c.Quant, c.Batch, c.Prompt, c.Context)
	if bandwidth > 0 {
		fmt.Fprintf(env.stdout, "ceiling %.4g GB/s (%s)\n", bandwidth/1e9, source)
	} else {
		fmt.Fprintln(env.stdout, source)
	}
	header := []string{"operation", "of", "sizes", "\tcalls", "kernel", "\tkB"}
	if bandwidth > 0 {
		header = append(header, "\tµs at ceiling")
	}
	if cases != nil {
		header = append(header, "\tµs measured", "\t% of ceiling")
	}
	t := newTable(env, header...)
	var bytes int64
	var atCeiling float64
	for _, x := range calls {
		row := []string{x.Op, x.What, x.Sizes, fmt.Sprint(x.Count), x.entry.Name, fmt.Sprintf("%.1f", float64(x.Bytes)/1e3)}
		if bandwidth > 0 {
			us := float64(x.Bytes) / bandwidth * 1e6
			row, atCeiling = append(row, fmt.Sprintf("%.2f", us)), atCeiling+us*float64(x.Count)
		}
		if m := measured(cases, c.reportName(h), x); m != nil {
			row = append(row, micros(m.Time()))
			if bandwidth > 0 {
				row = append(row, fmt.Sprintf("%.0f", 100*float64(x.Bytes)/m.Time().Seconds()/bandwidth))
			}
		}
		bytes += x.Bytes * x.Count
		t.Row(row...)
	}
	if err := t.render(); err != nil {
		return err
	}
	fmt.Fprintf(env.stdout, "all calls of a step move %.1f MB", float64(bytes)/1e6)
	if bandwidth > 0 {
		fmt.Fprintf(env.stdout, ", at the ceiling in %.0f µs", atCeiling)
	}
	fmt.Fprintln(env.stdout)
	if op != "" {
		sources(env, calls)
	}
	return nil
}

// sources prints where the kernels of calls stand.
func sources(env *environment, calls []call) {
	var seen []*plan.Entry
	for _, x := range calls {
		if !slices.Contains(seen, x.entry) {
			seen = append(seen, x.entry)
			fmt.Fprintln(env.stdout)
			explain(env.stdout, x.entry, false)
		}
	}
}
