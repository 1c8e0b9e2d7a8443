package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/atlas-inference/atlas/atlasc/internal/bench"
	"github.com/atlas-inference/atlas/atlasc/internal/plot"
)

// benchCommand measures kernels, keeps what it measured and compares it with what it kept before.
type benchCommand struct {
	opsFlags
	Peers   string `name:"peers" help:"Times of other libraries to show beside (see tools/peers/cuda_peers.py)." type:"existingfile" placeholder:"FILE.JSON"`
	Save    string `help:"Keep the measurements in a file." type:"path" placeholder:"FILE"`
	Against string `help:"Compare with measurements kept before; exit code 1 where a case, or all together, is slower beyond noise." type:"existingfile" placeholder:"FILE"`
	Saved   string `help:"Use kept measurements instead of measuring." type:"existingfile" placeholder:"FILE"`
	Plot    string `help:"Draw a roofline per operation into a folder, as SVG." type:"path" placeholder:"DIR"`
	Runs    int    `help:"How often to measure: the least time counts, and noise is what lies between runs." default:"3"`
}

// Help explains noise; kong prints it.
func (*benchCommand) Help() string {
	return `Without --save, --against, --saved or --plot the runtime measures once and prints its own table.

A case's time is the least of all runs. Its noise is the slowest run's time by the fastest's in either file, 3 % at least.
Compare only what one machine measured, and with the same --hw, --op and --match.`
}

// Validate checks what types do not tell; kong calls it.
func (c *benchCommand) Validate() error {
	switch {
	case c.Runs < 1 || c.Runs > 100:
		return fmt.Errorf("--runs is %d (it must be between 1 and 100)", c.Runs)
	case c.Saved != "" && c.Save != "":
		return errors.New("--saved measures nothing that --save could keep")
	}
	return nil
}

func (c *benchCommand) Run(env *environment) error {
	if c.Save == "" && c.Against == "" && c.Saved == "" && c.Plot == "" {
		if c.Peers != "" {
			return c.run(env, "bench", "--peers", c.Peers)
		}
		return c.run(env, "bench")
	}
	var before *bench.File
	var err error
	if c.Against != "" { // a file that cannot be read is worth knowing before minutes of measuring
		if before, err = bench.Read(c.Against); err != nil {
			return err
		}
	}
	now, err := c.measure(env)
	if err != nil {
		return err
	}
	if c.Save != "" {
		if err := now.Write(c.Save); err != nil {
			return err
		}
	}
	if c.Plot != "" {
		if err := drawRooflines(env, now, c.Plot); err != nil {
			return err
		}
	}
	if before != nil {
		return compare(env, before, now)
	}
	return nil
}

// measure runs the runtime as often as asked, or reads what was kept.
func (c *benchCommand) measure(env *environment) (*bench.File, error) {
	if c.Saved != "" {
		return bench.Read(c.Saved)
	}
	f := &bench.File{Machine: machine(readCPUInfo())}
	flags := c.opsFlags
	flags.JSON = true
	for i := range c.Runs {
		if env.terminal {
			fmt.Fprintf(env.stderr, "run %d of %d\n", i+1, c.Runs) // whose own progress comes below
		}
		var out bytes.Buffer
		err := env.runtime(&out, flags.args("bench")...)
		if err != nil {
			return nil, err
		}
		run, err := bench.ReadRun(&out)
		if err != nil {
			return nil, err
		}
		f.Runs = append(f.Runs, run)
	}
	return f, nil
}

// machine names the processor and, where there is one, the first NVIDIA GPU.
func machine(cpuinfo string) string {
	name, processors := "unknown processor", 0
	for line := range strings.Lines(cpuinfo) {
		switch key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) {
		case "model name":
			name = strings.TrimSpace(value)
		case "processor":
			processors++
		}
	}
	name = fmt.Sprintf("%d × %s", processors, name)
	gpus, _ := filepath.Glob("/proc/driver/nvidia/gpus/*/information") // the pattern is well-formed
	if len(gpus) > 0 {
		text, _ := os.ReadFile(gpus[0])
		for line := range strings.Lines(string(text)) {
			if key, value, _ := strings.Cut(line, ":"); key == "Model" {
				name += ", " + strings.TrimSpace(value)
			}
		}
	}
	return name
}

// shown is how many of the cases that changed most a comparison prints.
const shown = 10

// compare prints how times changed; its error is an exit code where something is slower.
func compare(env *environment, before, now *bench.File) error {
	if before.Machine != now.Machine {
		return fmt.Errorf("the measurements are of different machines: %q before, %q now", before.Machine, now.Machine)
	}
	c := bench.Compare(before, now)
	if len(c.Changes) == 0 {
		return errors.New("the two have no case in common (use the same --hw, --op and --match)")
	}
	t := newTable(env, "target", "op", "case", "\tµs before", "\tµs now", "\tratio", "\tnoise", "")
	for i, x := range c.Changes {
		note := ""
		switch {
		case x.Slower():
			note = "slower"
		case x.Faster():
			note = "faster"
		}
		if i < shown || note == "slower" || i >= len(c.Changes)-3 && note == "faster" {
			t.Row(x.New.Target, x.New.Op, x.New.Case, micros(x.Old.Time()), micros(x.New.Time()), fmt.Sprintf("%.3f", x.Ratio), fmt.Sprintf("±%.1f %%", 100*(x.Noise-1)), note)
		}
	}
	if err := t.render(); err != nil {
		return err
	}
	worst := c.Changes[0]
	fmt.Fprintf(env.stdout, "%d cases: geomean ratio %.3f (noise ±%.1f %%), worst %.3f (%s %s)\n", len(c.Changes), c.Geomean, 100*(c.Noise-1), worst.Ratio, worst.New.Op, worst.New.Case)
	if c.Missing+c.Added > 0 {
		fmt.Fprintf(env.stdout, "not compared: %d cases of before, %d of now\n", c.Missing, c.Added)
	}
	if c.Regressed() {
		fmt.Fprintln(env.stdout, "slower beyond noise")
		return exitError(exitFindings)
	}
	return nil
}

func micros(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Nanoseconds())/1e3) }

// drawRooflines writes a plot per target and operation.
func drawRooflines(env *environment, f *bench.File, folder string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return fmt.Errorf("draw rooflines: %w", err)
	}
	for _, r := range rooflines(f) {
		path := filepath.Join(folder, strings.NewReplacer(" --", "-", " ", "-").Replace(r.Title)+".svg")
		if err := os.WriteFile(path, []byte(r.SVG()), 0o666); err != nil {
			return fmt.Errorf("draw rooflines: %w", err)
		}
		fmt.Fprintf(env.stdout, "wrote %s\n", path)
	}
	return nil
}

// rooflines are a plot per target and operation, in the order of the cases.
func rooflines(f *bench.File) []*plot.Roofline {
	var plots []*plot.Roofline
	for _, c := range f.Cases() {
		title := c.Target + " " + c.Op
		i := slices.IndexFunc(plots, func(r *plot.Roofline) bool { return r.Title == title })
		if i < 0 {
			i = len(plots)
			plots = append(plots, &plot.Roofline{Title: title, Ceiling: float64(f.Ceiling(c.Target))})
		}
		r := plots[i]
		group := schemeOf(c.Case)
		g := slices.Index(r.Groups, group)
		if g < 0 && group != "" {
			g = len(r.Groups)
			r.Groups = append(r.Groups, group)
		}
		r.Points = append(r.Points, plot.Point{Label: fmt.Sprintf("%s, %s µs", c.Case, micros(c.Time())), Bytes: float64(c.Bytes), BytesPerSecond: c.BytesPerSecond(), Group: max(g, 0)})
	}
	return plots
}

// schemeOf is the word of a case's name that names a weight scheme; empty where none does.
func schemeOf(name string) string {
	for word := range strings.FieldsSeq(name) {
		if slices.Contains([]string{"bf16", "q8_0", "q4_0", "q4_1", "f8", "f8block", "nvfp4", "q5_0", "q4_k", "q6_k"}, word) {
			return word
		}
	}
	return ""
}
