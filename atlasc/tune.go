package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/emit"
	"github.com/atlas-inference/atlas/atlasc/internal/plan"
	"github.com/atlas-inference/atlas/atlasc/internal/tune"
)

// tuneCommand measures which kernel serves a shape best, and writes that down.
type tuneCommand struct {
	Target string  `arg:"" help:"Hardware: the one of this machine."`
	Op     string  `name:"op" short:"o" help:"Only this operation." placeholder:"NAME"`
	Shapes string  `help:"Shapes that atlasrt serve or bench noted with --record-shapes." type:"existingfile" placeholder:"FILE"`
	Config string  `help:"config.json of a model whose shapes to take instead." type:"existingfile" placeholder:"FILE"`
	Quant  string  `help:"With --config: weight scheme of the matrices." default:"bf16" placeholder:"SCHEME"`
	Rows   []int64 `help:"With --config: sequences of a step, of which each has one new token." default:"1,2,4,8,16,32,64,512"`

	Context int64 `help:"With --config: tokens of each sequence." default:"1024" placeholder:"N"`
	Replay  bool  `help:"Write the tables again from what was measured on this machine before, without measuring."`
}

// Help explains what is tuned; kong prints it.
func (*tuneCommand) Help() string {
	return `For every shape, kernels of the base set that share operation, weight scheme and order are launched in turns, whatever
their conditions say. One that gives the same bits and is faster beyond noise, twice, gets the shape: an entry of
kernels/HARDWARE/base/SCHEME/tuned.toml, which comes before all others. tuned.json beside it holds every time, with its share of
what a plain read reaches. Both are committed. Tuning starts from the untuned set each time; it covers operations with a weight.`
}

// Validate checks what types do not tell; kong calls it.
func (c *tuneCommand) Validate() error {
	if given := c.Shapes != "" || c.Config != ""; given == c.Replay || c.Shapes != "" && c.Config != "" {
		return errors.New("give one of --shapes, --config and --replay")
	}
	for _, n := range c.Rows {
		if n < 1 || n > 1<<16 {
			return fmt.Errorf("--rows: %d is not between 1 and %d", n, 1<<16)
		}
	}
	return bound("--context", c.Context)
}

func (c *tuneCommand) Run(env *environment) error {
	p, err := loadTarget(env.root, c.Target)
	if err != nil {
		return err
	}
	h := p.plan.Hardware[0]
	if c.Target != h.Name {
		return usageError{errors.New("the base set is what is tuned: name a hardware alone")}
	}
	if c.Replay {
		return replay(env, p, h)
	}
	shapes, err := c.shapes(env, p.out.Packages[0])
	if err != nil {
		return err
	}
	tuner := &tuner{project: p, hardware: h, cpuinfo: readCPUInfo()}
	var trials []tune.Trial
	for _, s := range shapes {
		if c.Op != "" && s.Op != c.Op {
			continue
		}
		if t, ok := tuner.trial(s); ok {
			trials = append(trials, t)
		}
	}
	if len(trials) == 0 {
		return errors.New("no shape has two kernels to choose from: operations with a weight do, where entries share an order")
	}
	report, err := tuner.measure(env, trials)
	if err != nil {
		return err
	}
	won := slices.DeleteFunc(slices.Clone(trials), func(t tune.Trial) bool { return !wins(report, t) })
	if len(won) > 0 { // whatever disturbed the machine may have disturbed all rounds of a shape
		again, err := tuner.measure(env, won)
		if err != nil {
			return err
		}
		report.Confirm(again)
	}
	return tuner.keep(env, report)
}

// wins tells whether another kernel than the set's own was faster for a trial's shape.
func wins(report *tune.Report, t tune.Trial) bool {
	return slices.ContainsFunc(report.Tried, func(tried tune.Tried) bool {
		c, measured := tune.Choose(tried)
		return measured && c.Kernel != c.Own && c.Op == t.Shape.Op && maps.Equal(c.Args, t.Shape.Args)
	})
}

// shapes are those that were recorded, or those of a model.
func (c *tuneCommand) shapes(env *environment, pkg *emit.Package) ([]tune.Shape, error) {
	if c.Shapes != "" {
		text, err := os.ReadFile(c.Shapes)
		if err != nil {
			return nil, fmt.Errorf("read shapes: %w", err)
		}
		var list tune.Shapes
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, fmt.Errorf("%s holds no shapes (atlasrt serve --record-shapes writes them): %w", c.Shapes, err)
		}
		return list.Shapes, nil
	}
	steps := modelSteps{config: c.Config, quant: c.Quant, set: plan.Base}
	var list []tune.Shape
	for _, rows := range c.Rows {
		calls, err := steps.calls(env, pkg, step{rows, 1, c.Context})
		if err != nil {
			return nil, err
		}
		for _, call := range calls {
			if call.Scheme != "" {
				list = append(list, call.Shape)
			}
		}
	}
	return list, nil
}

// tuner finds the kernels that may serve shapes on one hardware.
type tuner struct {
	*project
	hardware *plan.Hardware
	cpuinfo  string
	seen     []string // shapes that have a trial
}

// schemeOf is the name of a shape's weight scheme; empty where it has none.
func (t *tuner) schemeOf(s tune.Shape) string {
	for _, k := range t.plan.Contract.ConstantsOf("Scheme") {
		if k.Value == s.Args["W.Scheme"] {
			return plan.SchemeName(k)
		}
	}
	return ""
}

// untuned are the entries that serve a shape's operation and scheme, but for those that tuning has written.
func (t *tuner) untuned(op, scheme string) []*plan.Entry {
	return slices.DeleteFunc(slices.Clone(t.hardware.Sets[0].Case(op, scheme)), func(e *plan.Entry) bool {
		return strings.HasSuffix(e.File(), "/"+tunedTable)
	})
}

// trial makes the trial of a shape, where more than one kernel may serve it and none of the shapes before was the same.
func (t *tuner) trial(s tune.Shape) (tune.Trial, bool) {
	out := tune.Trial{Shape: s}
	key := fmt.Sprint(s.Op, s.Args)
	scheme := t.schemeOf(s)
	op := t.plan.Contract.Op(s.Op)
	if op == nil || op.Weight() == nil || scheme == "" || s.Op == "Embedding" || s.Op == "Pack" || s.Op == "Unpack" || slices.Contains(t.seen, key) {
		return out, false
	}
	t.seen = append(t.seen, key)
	values := t.values(s)
	var own *plan.Entry
	entries := t.untuned(s.Op, scheme)
	for _, e := range entries {
		if holds(e, values) {
			own = e
			break
		}
	}
	if own == nil {
		return out, false
	}
	for _, e := range append([]*plan.Entry{own}, entries...) {
		has := !slices.ContainsFunc(e.Needs, func(need string) bool { return values[need] == 0 })
		if e == own && len(out.Candidates) > 0 || e != own && (own.Order == "" || e.Order != own.Order || !has) {
			continue
		}
		if c, ok := candidate(e, values); ok {
			out.Candidates = append(out.Candidates, c)
		}
	}
	return out, len(out.Candidates) > 1 && out.Candidates[0].Kernel == own.Name
}

// values are what a shape's expressions may ask: fields, options that are off, and features of this machine.
func (t *tuner) values(s tune.Shape) map[string]int64 {
	values := map[string]int64{}
	for name, n := range s.Args {
		values[name] = n
	}
	for _, option := range t.hardware.Options {
		values[option] = 0
	}
	present := processorFeatures(t.cpuinfo)
	for name, f := range t.hardware.Features {
		values[name] = 1
		if slices.ContainsFunc(f.CPU, func(cpu string) bool { return !slices.Contains(present, cpu) }) {
			values[name] = 0
		}
	}
	return values
}

// holds tells whether an entry serves a call.
func holds(e *plan.Entry, values map[string]int64) bool {
	if slices.ContainsFunc(e.Needs, func(need string) bool { return values[need] == 0 }) {
		return false
	}
	if e.When == nil {
		return true
	}
	value, known := e.When.BoolAt(values)
	return known && value
}

// candidate evaluates an entry's launches; false where a size is not known.
func candidate(e *plan.Entry, values map[string]int64) (tune.Candidate, bool) {
	out, sound := tune.Candidate{Kernel: e.Name, Scratch: -1}, true
	if e.Scratch != nil {
		out.Scratch, sound = e.Scratch.IntAt(values)
	}
	for i := range e.Launches {
		l := &e.Launches[i]
		launch := tune.Launch{Entry: l.Entry, Grid: [3]uint32{1, 1, 1}, Padding: emit.TilePadding(e)}
		for j, g := range l.Grid {
			n, known := g.IntAt(values)
			sound = sound && known && n >= 0 && n < 1<<31
			launch.Grid[j] = uint32(n)
		}
		for _, t := range l.Tiles {
			tile := tune.Tile{Field: t.Field, Box: t.Box}
			var known [3]bool
			tile.Rows, known[0] = t.Rows.IntAt(values)
			tile.Cols, known[1] = t.Cols.IntAt(values)
			tile.Pitch, known[2] = t.Pitch.IntAt(values)
			sound = sound && known == [3]bool{true, true, true}
			launch.Tiles = append(launch.Tiles, tile)
		}
		out.Launches = append(out.Launches, launch)
	}
	return out, sound
}

// measure lets the runtime try.
func (t *tuner) measure(env *environment, trials []tune.Trial) (*tune.Report, error) {
	text, err := json.Marshal(trials)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp("", "atlasc-tune-*.json")
	if err != nil {
		return nil, fmt.Errorf("write trials: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("write trials: %w", err)
	}
	var out bytes.Buffer
	flags := opsFlags{HW: t.hardware.Name}
	if err := env.runtime(&out, flags.args("tune", "--trials", f.Name())...); err != nil {
		return nil, err
	}
	report := &tune.Report{}
	if err := json.Unmarshal(out.Bytes(), report); err != nil {
		return nil, fmt.Errorf("read what the runtime measured: %w", err)
	}
	return report, nil
}
