package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/contract"
	"github.com/atlas-inference/atlas/atlasc/internal/diag"
	"github.com/atlas-inference/atlas/atlasc/internal/plan"
	"github.com/atlas-inference/atlas/atlasc/internal/workload"
)

// oneToken is the step that a model's shapes are sorted by.
var oneToken = workload.Step{Sequences: 1, RowsEach: 1, Context: 1024}

// newModel writes a manifest with an entry for each shape of a model's matrices in one scheme, on the base set's bodies.
func (c *newCommand) newModel(env *environment) error {
	config, model, err := c.read()
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
	shapes, err := shapesOf(p.plan, h, config, c.Quant)
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

// read reads the model's config.json and finds a name for its folder.
func (c *newCommand) read() (*workload.Config, string, error) {
	config, err := readConfig(c.Config)
	if err != nil {
		return nil, "", err
	}
	model := c.Model
	if model == "" {
		path, err := filepath.Abs(c.Config)
		if err != nil {
			return nil, "", err
		}
		model = strings.ReplaceAll(strings.ToLower(filepath.Base(filepath.Dir(path))), "_", "-")
	}
	if err := plan.CheckModel(model); err != nil || model == plan.Base || model == "lib" {
		return nil, "", usageError{fmt.Errorf("%q is no name for a model's folder: pass --model with small letters, digits, dashes and dots", model)}
	}
	return config, model, nil
}

// readConfig reads a config.json.
func readConfig(path string) (*workload.Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the model's config: %w", err)
	}
	return workload.Read(data)
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
	workload.Call
	what  []string // of the model
	bytes int64    // that all calls of a token move
}

func (s *shape) String() string {
	return fmt.Sprintf("%s %s: %d calls a token move %.1f MB", s.Op, s.size(), s.Count, float64(s.bytes)/1e6)
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

// shapesOf lists the shapes of a model's matrices in one scheme, those that move most first. Embeddings move a row each.
func shapesOf(p *plan.Plan, h *plan.Hardware, config *workload.Config, quant string) ([]*shape, error) {
	var shapes []*shape
	for _, call := range config.Calls(quant, oneToken) {
		if call.Scheme != quant || h.Sets[0].Case(call.Op, quant) == nil || call.Op == "Embedding" {
			continue
		}
		bytes, err := callBytes(p.Contract, h, call)
		if err != nil {
			return nil, err
		}
		s := &shape{Call: call, what: []string{call.What}, bytes: bytes * call.Count}
		i := slices.IndexFunc(shapes, func(t *shape) bool { return t.Op == s.Op && t.size() == s.size() })
		if i < 0 {
			shapes = append(shapes, s)
			continue
		}
		shapes[i].what, shapes[i].bytes, shapes[i].Count = append(shapes[i].what, call.What), shapes[i].bytes+s.bytes, shapes[i].Count+s.Count
	}
	slices.SortStableFunc(shapes, func(a, b *shape) int { return cmp.Compare(b.bytes, a.bytes) })
	return shapes, nil
}

// callBytes is what a call moves on a hardware at least; an error where it has no layout for the call's scheme.
func callBytes(c *contract.Contract, h *plan.Hardware, call workload.Call) (int64, error) {
	sizes := workload.Sizes{Act: 4}
	if h.Activations == "bf16" {
		sizes.Act = 2
	}
	if call.Scheme != "" {
		layout := h.Layout(call.Scheme)
		if layout == nil {
			return 0, fmt.Errorf("hardware %s has no layout for weight scheme %s", h.Name, call.Scheme)
		}
		sizes.Packed = func(rows, cols int64) int64 {
			n, _ := layout.Size.IntAt(map[string]int64{"Rows": rows, "Cols": cols}) // it has no other names
			return n
		}
	}
	return call.Bytes(c, sizes)
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
		for _, e := range h.Sets[0].Case(s.Op, quant) {
			value, known := true, e.When == nil
			if e.When != nil {
				value, known = e.When.BoolAt(shapeValues(s))
			}
			if known && !value {
				continue // of other shapes
			}
			when := s.when()
			switch {
			case known || e.When == nil:
			case strings.Contains(e.When.Text, "||"):
				when += " && (" + e.When.Text + ")"
			default:
				when += " && " + e.When.Text
			}
			b.WriteString(e.Instance(e.Name+"_"+s.size(), when))
			if known && len(e.Needs) == 0 {
				break
			}
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
