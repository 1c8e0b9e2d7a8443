package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/diag"
	"github.com/atlas-inference/atlas/atlasc/internal/emit"
	"github.com/atlas-inference/atlas/atlasc/internal/plan"
)

type explainCommand struct {
	Target string `arg:"" help:"Hardware, or hardware/model."`
	Op     string `arg:"" optional:"" help:"Operation of package op; with --config all where it is left out."`
	costFlags
}

// Help shows both forms; kong prints it.
func (*explainCommand) Help() string {
	return `Which line of a manifest serves what:  atlasc explain h200 Linear
What a model's calls cost:             atlasc explain h200 --config config.json --quant bf16 --batch 16 --measured kept.json

A cost is the bytes that a call must move at least: buffers once, of caches and experts what is touched. The calls are those of the model's
own forward pass, which bin/atlasrt lists; it needs no such hardware. Processor features count as there unless --without names them.`
}

func (c *explainCommand) Run(env *environment) error {
	p, err := loadTarget(env.root, c.Target)
	if err != nil {
		return err
	}
	pkg, set, err := p.target(c.Target)
	if err != nil {
		return err
	}
	if c.Op != "" && p.plan.Contract.Op(c.Op) == nil {
		return usageError{fmt.Errorf("there is no operation %q (%s)", c.Op, diag.Suggest(c.Op, p.plan.Contract.Names()))}
	}
	if c.Config != "" {
		return c.costFlags.run(env, pkg, set, c.Op)
	}
	if c.Op == "" {
		return usageError{errors.New("name an operation, or pass --config")}
	}
	dispatch := set.Dispatch(c.Op)
	if dispatch == nil {
		dispatch = pkg.Hardware.Sets[0].Dispatch(c.Op) // a model's set has only what differs
	}
	if dispatch == nil || len(dispatch.Cases) == 0 {
		return fmt.Errorf("hardware %s has no kernel for operation %s, which is optional", pkg.Hardware.Name, c.Op)
	}
	for _, cs := range dispatch.Cases {
		names := make([]string, len(cs.Schemes))
		for i, k := range cs.Schemes {
			names[i] = plan.SchemeName(k)
		}
		if len(names) > 0 {
			fmt.Fprintf(env.stdout, "%s %s\n", c.Op, strings.Join(names, ", "))
		} else {
			fmt.Fprintln(env.stdout, c.Op)
		}
		choices := plan.Choices(cs.Branches)
		for i, entries := range choices {
			if len(entries) > 1 {
				fmt.Fprintf(env.stdout, "  of these the one of least cost, the first of equals:\n")
			}
			for _, e := range entries {
				explain(env.stdout, e, len(entries) == 1 && i == len(choices)-1 && (!dispatch.Op.Partial || e.Unconditional()))
			}
		}
	}
	return nil
}

// condition is what an entry asks for: its features, then its own words.
func condition(e *plan.Entry) string {
	conditions := slices.Clone(e.Needs)
	if e.When != nil {
		conditions = append(conditions, e.When.Text)
	}
	return strings.Join(conditions, " && ")
}

// explain prints one branch: its condition, its kernel, and where both come from.
func explain(w io.Writer, e *plan.Entry, last bool) {
	when := condition(e)
	if last {
		when = "otherwise"
	} else if when == "" {
		when = "always"
	}
	fmt.Fprintf(w, "  %s: %s\n", when, e.Name)
	fmt.Fprintf(w, "    %s%s\n", e.At(""), e.At("").Parameters())
	if len(e.Const) > 0 {
		var constants []string
		for _, name := range slices.Sorted(maps.Keys(e.Const)) {
			constants = append(constants, fmt.Sprintf("%s %v", name, e.Const[name]))
		}
		fmt.Fprintf(w, "    constants %s\n", strings.Join(constants, ", "))
	}
	for _, l := range e.Launches {
		grid := make([]string, len(l.Grid))
		for i, g := range l.Grid {
			grid[i] = g.Text
		}
		fmt.Fprintf(w, "    %s from %s, grid [%s]\n", l.Inst, e.Body, strings.Join(grid, ", "))
	}
	if e.Cost != nil {
		fmt.Fprintf(w, "    choice %s, cost %s\n", e.Choose, e.Cost.Text)
	}
	if e.Scratch != nil {
		fmt.Fprintf(w, "    scratch %s bytes\n", e.Scratch.Text)
	}
	if e.Order != "" {
		fmt.Fprintf(w, "    order %s\n", e.Order)
	}
	if e.Rounds != "" {
		fmt.Fprintf(w, "    activations rounded to %s\n", e.Rounds)
	}
}

// loadTarget loads the hardware of "hardware" or "hardware/model" alone: others may be incomplete.
func loadTarget(root, target string) (*project, error) {
	hardware, _, _ := strings.Cut(target, "/")
	p, err := load(root, hardware)
	if err != nil || len(p.out.Packages) > 0 {
		return p, err
	}
	folders, err := filepath.Glob(filepath.Join(p.root, plan.Kernels, "*", plan.Base))
	if err != nil {
		return nil, err
	}
	var known []string
	for _, folder := range folders {
		known = append(known, filepath.Base(filepath.Dir(folder)))
	}
	return nil, usageError{fmt.Errorf("there are no kernels for hardware %q (%s)", hardware, diag.Suggest(hardware, known))}
}

// target finds the package and set of "hardware" or "hardware/model" in a project that loadTarget loaded.
func (p *project) target(name string) (*emit.Package, *plan.Set, error) {
	_, model, _ := strings.Cut(name, "/")
	pkg := p.out.Packages[0]
	var models []string
	for _, s := range pkg.Hardware.Sets {
		models = append(models, s.Model)
		if s.Model == model || model == "" {
			return pkg, s, nil
		}
	}
	return nil, nil, usageError{fmt.Errorf("hardware %s has no kernels of its own for model %q (%s)", pkg.Hardware.Name, model, diag.Suggest(model, models))}
}
