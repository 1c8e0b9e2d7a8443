package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/bench"
	"github.com/atlas-inference/atlas/atlasc/internal/plan"
	"github.com/atlas-inference/atlas/atlasc/internal/workload"
)

// costFlags ask what a model's calls cost.
type costFlags struct {
	Config    string  `help:"config.json of a model: show which kernel serves each of its calls, and what that costs." type:"existingfile" placeholder:"FILE"`
	Quant     string  `help:"Weight scheme of the model's matrices." default:"bf16" placeholder:"SCHEME"`
	Batch     int64   `help:"Sequences that decode at a time." default:"1" placeholder:"N"`
	Context   int64   `help:"Tokens of each sequence." default:"1024" placeholder:"N"`
	Prompt    int64   `help:"New tokens of each sequence: 1 decodes." default:"1" placeholder:"N"`
	Exact     bool    `help:"With the runtime's --exact."`
	Without   string  `help:"Processor features of the hardware that are not there." placeholder:"A,B"`
	Bandwidth float64 `help:"GB/s that a plain read reaches (default: of --measured, else kBandwidth of the hardware)." placeholder:"GB/S"`
	Measured  string  `help:"Measurements kept by atlasc bench --save, to show beside." type:"existingfile" placeholder:"FILE"`
}

// Validate bounds the numbers; kong calls it.
func (c *costFlags) Validate() error {
	for _, n := range []int64{c.Batch, c.Context, c.Prompt} {
		if n < 1 || n > 1<<24 {
			return fmt.Errorf("--batch, --context and --prompt must be between 1 and %d", 1<<24)
		}
	}
	if c.Prompt > c.Context {
		return fmt.Errorf("--prompt %d is more than --context %d", c.Prompt, c.Context)
	}
	return nil
}

// cost is a call, what serves it and what that takes.
type cost struct {
	workload.Call
	bytes    int64
	entry    *plan.Entry // nil where no kernel serves it
	perhaps  bool        // what is known does not decide between it and others
	measured *bench.Case // nil where the call was not measured
}

// costs lists what a step of a model calls of one operation; of all where it has no name.
func (c *costFlags) costs(p *project, h *plan.Hardware, set *plan.Set, op string) ([]cost, error) {
	config, err := readConfig(c.Config)
	if err != nil {
		return nil, err
	}
	if _, err := scheme(p.plan.Contract, c.Quant); err != nil {
		return nil, err
	}
	var cases []bench.Case
	if c.Measured != "" {
		f, err := bench.Read(c.Measured)
		if err != nil {
			return nil, err
		}
		cases = f.Cases()
	}
	var costs []cost
	for _, call := range config.Calls(c.Quant, workload.Step{Sequences: c.Batch, RowsEach: c.Prompt, Context: c.Context}) {
		if op != "" && call.Op != op || p.plan.Contract.Op(call.Op) == nil {
			continue
		}
		x := cost{Call: call}
		if x.entry, x.perhaps, err = c.serves(p, h, set, call); err != nil {
			return nil, err
		}
		if x.entry != nil {
			if x.bytes, err = callBytes(p.plan.Contract, h, call); err != nil {
				return nil, err
			}
		}
		x.measured = measured(cases, c.reportName(h), call, schemeValue(p, call.Scheme))
		costs = append(costs, x)
	}
	return costs, nil
}

// serves finds the entry that a set launches for a call.
func (c *costFlags) serves(p *project, h *plan.Hardware, set *plan.Set, call workload.Call) (entry *plan.Entry, perhaps bool, err error) {
	values := map[string]int64{}
	for name, n := range call.Args {
		values[name] = n
	}
	if call.Scheme != "" {
		k, err := scheme(p.plan.Contract, call.Scheme)
		if err != nil {
			return nil, false, err
		}
		values["W.Scheme"] = k.Value
	}
	for _, option := range h.Options {
		values[option] = 0
	}
	if c.Exact {
		values["exact"] = 1
	}
	for name := range h.Features {
		values[name] = 1
		if slices.Contains(strings.Split(c.Without, ","), name) {
			values[name] = 0
		}
	}
	branches := set.Case(call.Op, call.Scheme)
	if set.Dispatch(call.Op) == nil {
		branches = h.Sets[0].Case(call.Op, call.Scheme) // a model's set has only what differs
	}
	for _, e := range branches {
		if slices.ContainsFunc(e.Needs, func(need string) bool { return values[need] == 0 }) {
			continue
		}
		if e.When != nil {
			if value, known := e.When.BoolAt(values); known && !value {
				continue
			} else if !known {
				return e, true, nil
			}
		}
		return e, false, nil
	}
	return nil, false, nil
}

// reportName is what the runtime calls its report on a hardware.
func (c *costFlags) reportName(h *plan.Hardware) string {
	if c.Exact {
		return h.Name + " --exact"
	}
	return h.Name
}

// schemeValue is the number of a scheme; 0 where there is none.
func schemeValue(p *project, name string) int64 {
	for _, k := range p.plan.Contract.ConstantsOf("Scheme") {
		if plan.SchemeName(k) == name {
			return k.Value
		}
	}
	return 0
}

// measured finds a call among measured cases: by the fields of its struct where they are kept, else by the sizes in the
// case's name.
func measured(cases []bench.Case, target string, call workload.Call, scheme int64) *bench.Case {
	words := []string{call.Scheme, fmt.Sprintf("%d×%d", call.Args["W.Rows"], call.Args["W.Cols"])}
	rows := fmt.Sprintf(" rows %d", call.Args["Rows"])
	i := slices.IndexFunc(cases, func(c bench.Case) bool {
		if c.Target != target || c.Op != call.Op {
			return false
		}
		if c.Args != nil {
			return c.Args["W.Scheme"] == scheme && sameSizes(c.Args, call.Args)
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

// bandwidth is the ceiling in bytes per second and where it comes from; 0 where nothing says.
func (c *costFlags) bandwidth(h *plan.Hardware) (bytesPerSecond float64, source string, err error) {
	if c.Bandwidth > 0 {
		return c.Bandwidth * 1e9, "--bandwidth", nil
	}
	if c.Measured != "" {
		f, err := bench.Read(c.Measured)
		if err != nil {
			return 0, "", err
		}
		if ceiling := f.Ceiling(c.reportName(h)); ceiling > 0 {
			return float64(ceiling), "a plain read, as measured on " + f.Machine, nil
		}
	}
	if k := h.Constants["kBandwidth"]; k > 0 {
		return float64(k) * 1e9, "kBandwidth of targets/" + h.File, nil
	}
	return 0, "nothing says how fast it reads: pass --bandwidth, or --measured with a file of atlasc bench --save", nil
}

// run prints the costs of a model's calls.
func (c *costFlags) run(env *environment, p *project, h *plan.Hardware, set *plan.Set, op string) error {
	costs, err := c.costs(p, h, set, op)
	if err != nil {
		return err
	}
	if len(costs) == 0 {
		return fmt.Errorf("the model does not call %s", op)
	}
	bandwidth, source, err := c.bandwidth(h)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.stdout, "%s, %s weights, %d × %d new of %d tokens; ", c.reportName(h), c.Quant, c.Batch, c.Prompt, c.Context)
	if bandwidth > 0 {
		fmt.Fprintf(env.stdout, "ceiling %.4g GB/s (%s)\n", bandwidth/1e9, source)
	} else {
		fmt.Fprintln(env.stdout, source)
	}
	t := newTable(env, "operation", "what", "scheme", "sizes", "\tcalls", "kernel", "\tkB", "\tµs at ceiling", "\tµs measured", "\t% of ceiling")
	var bytes int64
	var atCeiling float64
	for _, x := range costs {
		kernel, predicted, took, share := "no kernel", "", "", ""
		if x.entry != nil {
			kernel = x.entry.Name
			if x.perhaps {
				kernel += ", if " + x.entry.When.Text
			}
			if bandwidth > 0 {
				us := float64(x.bytes) / bandwidth * 1e6
				predicted, atCeiling = fmt.Sprintf("%.2f", us), atCeiling+us*float64(x.Count)
			}
		}
		if x.measured != nil {
			took = micros(x.measured.Time())
			if bandwidth > 0 {
				share = fmt.Sprintf("%.0f", 100*float64(x.bytes)/x.measured.Time().Seconds()/bandwidth)
			}
		}
		bytes += x.bytes * x.Count
		t.Row(x.Op, x.What, x.Scheme, sizes(x.Call), fmt.Sprint(x.Count), kernel, fmt.Sprintf("%.1f", float64(x.bytes)/1e3), predicted, took, share)
	}
	if err := t.render(); err != nil {
		return err
	}
	fmt.Fprintf(env.stdout, "all calls of a step move %.1f MB", float64(bytes)/1e6)
	if bandwidth > 0 {
		fmt.Fprintf(env.stdout, ", at the ceiling in %.0f µs", atCeiling)
	}
	fmt.Fprintln(env.stdout)
	sources(env, costs, op)
	return nil
}

// sizes are what of a call a reader looks for.
func sizes(call workload.Call) string {
	if call.Args["W.Cols"] > 0 {
		s := fmt.Sprintf("%d×%d", call.Args["W.Rows"], call.Args["W.Cols"])
		if n := call.Args["W.Count"]; n > 1 {
			s = fmt.Sprintf("%d×%s", n, s)
		}
		return s
	}
	if n := cmp.Or(call.Args["Cols"], call.Args["Vocab"], call.Args["Experts"]); n > 0 {
		return fmt.Sprint(n)
	}
	if call.Args["Heads"] > 0 {
		return fmt.Sprintf("%d/%d×%d", call.Args["Heads"], call.Args["KVHeads"], call.Args["HeadDim"])
	}
	return ""
}

// sources prints where the kernels of a single operation stand.
func sources(env *environment, costs []cost, op string) {
	var seen []*plan.Entry
	for _, x := range costs {
		if op != "" && x.entry != nil && !slices.Contains(seen, x.entry) {
			seen = append(seen, x.entry)
			fmt.Fprintln(env.stdout)
			explain(env.stdout, x.entry, x.entry.Unconditional())
		}
	}
}
