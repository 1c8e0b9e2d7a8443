package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/contract"
	"github.com/atlas-inference/atlas/atlasc/internal/diag"
	"github.com/atlas-inference/atlas/atlasc/internal/emit"
	"github.com/atlas-inference/atlas/atlasc/internal/expr"
	"github.com/atlas-inference/atlas/atlasc/internal/plan"
)

// newModel writes a manifest with an entry for each shape of a model's matrices in one scheme, on the base set's bodies.
func (c *newCommand) newModel(env *environment) error {
	model, err := c.modelName()
	if err != nil {
		return err
	}
	p, err := loadTarget(env.root, c.HW)
	if err != nil {
		return err
	}
	h := p.plan.Hardware[0]
	if _, err := scheme(p.plan.Contract, c.Quant); err != nil {
		return err
	}
	if h.Layout(c.Quant) == nil {
		return fmt.Errorf("hardware %s has no kernels for weight scheme %s: add a [[layout]] and kernels for %s to kernels/%s/base/%s/kernels.toml first",
			h.Name, c.Quant, strings.Join(weightOperations(p.plan.Contract), ", "), h.Name, c.Quant)
	}
	shapes, err := c.shapes(env, p.out.Packages[0])
	if err != nil {
		return err
	}
	name := strings.Join([]string{plan.Kernels, h.Name, model, c.Quant, "kernels.toml"}, "/")
	if err := env.create(p.root, []file{{name, modelManifest(h, model, c.Quant, shapes)}}); err != nil {
		return err
	}
	if _, err := load(p.root, h.Name); err != nil {
		return err // which names the line of the manifest
	}
	for _, s := range shapes {
		fmt.Fprintf(env.stdout, "  %s\n", s)
	}
	fmt.Fprintf(env.stdout, "Change an entry's body, constants or launches, then run: atlasc build --hw %s\n", h.Name)
	return nil
}

// modelName is the name of the model's folder.
func (c *newCommand) modelName() (string, error) {
	model := c.Model
	if model == "" {
		path, err := filepath.Abs(c.Config)
		if err != nil {
			return "", err
		}
		model = strings.ReplaceAll(strings.ToLower(filepath.Base(filepath.Dir(path))), "_", "-")
	}
	if err := plan.CheckModel(model); err != nil || model == plan.Base || model == "lib" {
		return "", usageError{fmt.Errorf("%q is no name for a model's folder: pass --model with small letters, digits, dashes and dots", model)}
	}
	return model, nil
}

// scheme finds a scheme of package op by the name that manifests use.
func scheme(c *contract.Contract, name string) (contract.Constant, error) {
	var known []string
	for _, k := range c.ConstantsOf("Scheme") {
		if plan.SchemeName(k) == name {
			return k, nil
		}
		known = append(known, plan.SchemeName(k))
	}
	return contract.Constant{}, usageError{fmt.Errorf("there is no weight scheme %q (%s)", name, diag.Suggest(name, known))}
}

// weightOperations names the operations that a scheme needs kernels for.
func weightOperations(c *contract.Contract) []string {
	var names []string
	for _, op := range c.Ops {
		if op.Required && !op.Partial && op.Weight() != nil {
			names = append(names, op.Name)
		}
	}
	return names
}

// shape is a matrix, or a stack of them, that a model multiplies with.
type shape struct {
	call
	step  string   // that calls it
	what  []string // of the model
	bytes int64    // that all calls of the step move
}

func (s *shape) String() string {
	return fmt.Sprintf("%s %s: %d calls of %s move %.1f MB", s.Op, s.size(), s.Count, s.step, float64(s.bytes)/1e6)
}

func (s *shape) size() string {
	size := fmt.Sprintf("%dx%d", s.Args["W.Rows"], s.Args["W.Cols"])
	if n := s.Args["W.Count"]; n > 1 {
		size = strconv.FormatInt(n, 10) + "x" + size
	}
	return size
}

// when is the condition that holds for the shape alone.
func (s *shape) when() string {
	when := fmt.Sprintf("W.Rows == %d && W.Cols == %d", s.Args["W.Rows"], s.Args["W.Cols"])
	if n := s.Args["W.Count"]; n > 1 {
		when += fmt.Sprintf(" && W.Count == %d", n)
	}
	return when
}

// shapes lists the shapes of a model's matrices in one scheme, those that move most first: of a step that decodes, and then those that only
// a prompt has. Embeddings move a row each.
func (c *newCommand) shapes(env *environment, pkg *emit.Package) ([]*shape, error) {
	model := modelSteps{config: c.Config, quant: c.Quant, set: plan.Base}
	base := pkg.Hardware.Sets[0]
	var all []*shape
	for _, s := range []struct {
		step
		name string
	}{
		{step{c.Batch, 1, c.Context}, fmt.Sprintf("a decode step of %d", c.Batch)},
		{step{1, c.Prompt, c.Prompt}, fmt.Sprintf("a prompt of %d", c.Prompt)},
	} {
		calls, err := model.calls(env, pkg, s.step)
		if err != nil {
			return nil, err
		}
		before := len(all)
		for _, x := range calls {
			if x.Scheme != c.Quant || base.Case(x.Op, c.Quant) == nil || x.Op == "Embedding" {
				continue
			}
			of := &shape{call: x, step: s.name, what: []string{x.What}, bytes: x.Bytes * x.Count}
			switch i := slices.IndexFunc(all, func(known *shape) bool { return known.Op == of.Op && known.size() == of.size() }); {
			case i < 0:
				all = append(all, of)
			case i >= before:
				all[i].what, all[i].bytes, all[i].Count = append(all[i].what, of.What), all[i].bytes+of.bytes, all[i].Count+of.Count
			}
		}
		slices.SortStableFunc(all[before:], func(a, b *shape) int { return cmp.Compare(b.bytes, a.bytes) })
	}
	return all, nil
}

// modelManifest is a model's manifest: for each shape the entries of the base set that can serve it, in their order.
func modelManifest(h *plan.Hardware, model, quant string, shapes []*shape) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# %[1]s weights of %[2]s on %[3]s: an entry for each kernel of the base set that can serve a shape, the shapes that move most
# first. As they stand they give what the base set gives: change body, const or launches, and remove what you leave alone.
scheme = "%[1]s"
`, quant, model, h.Name)
	for _, s := range shapes {
		fmt.Fprintf(&b, "\n# %s (%s)\n", s, strings.Join(s.what, ", "))
		type covered struct {
			choice string
			cover  expr.Cover
		}
		var before []covered
		for _, e := range h.Sets[0].Case(s.Op, quant) {
			when, left := s.when(), e.When
			if left != nil {
				var possible bool
				if left, possible = left.Given(shapeValues(s)); !possible {
					continue // of other shapes
				}
			}
			cover := expr.NewCover(e.Needs, left)
			if slices.ContainsFunc(before, func(b covered) bool { return (b.choice == "" || b.choice != e.Choose) && b.cover.Covers(cover) }) {
				continue // which nothing comes to
			}
			before = append(before, covered{e.Choose, cover})
			switch {
			case left == nil:
			case strings.Contains(left.Text, "||"):
				when += " && (" + left.Text + ")"
			default:
				when += " && " + left.Text
			}
			choice := e.Choose
			if choice != "" {
				choice += "_" + s.size()
			}
			b.WriteString(e.Instance(e.Name+"_"+s.size(), when, choice))
		}
	}
	return b.String()
}

// shapeValues are the fields that a shape fixes.
func shapeValues(s *shape) map[string]int64 {
	values := map[string]int64{}
	for _, name := range []string{"W.Rows", "W.Cols", "W.Count"} {
		values[name] = s.Args[name]
	}
	return values
}
