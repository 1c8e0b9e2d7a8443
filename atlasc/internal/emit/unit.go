package emit

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/atlas-inference/atlas/atlasc/internal/plan"
	"github.com/atlas-inference/atlas/atlasc/internal/toolchain"
)

// unitData is what the template of a unit reads.
type unitData struct {
	Mark, At, Body, Op, Activations string
	Scratch                         bool
	Facts                           []constant // of the hardware
	Constants                       []constant // of the entry
	Launches                        []plan.Launch
}

type constant struct {
	Name  string
	Value any
}

// Number tells whether the constant is an integer.
func (c constant) Number() bool {
	_, ok := c.Value.(int64)
	return ok
}

// C is the value as C has it anywhere in an expression.
func (c constant) C() string {
	if n, ok := c.Value.(int64); ok && n < 0 {
		return fmt.Sprintf("(%d)", n)
	}
	return fmt.Sprint(c.Value)
}

func constants[V any](values map[string]V) []constant {
	var all []constant
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, constant{name, values[name]})
	}
	return all
}

// extensions of the units' files, by toolchain.
var extensions = map[string]string{"gcc": ".c", "nvcc": ".cu"}

// unit adds the C or CUDA file of one kernel.
func (o *Output) unit(p *Package, e *plan.Entry) error {
	h := p.Hardware
	text, err := execute("unit_"+h.Toolchain+".tmpl", unitData{
		Mark: Mark, At: e.At("").File, Body: e.Body, Op: e.Op.Name, Activations: h.Activations,
		Scratch: e.Scratch != nil, Facts: constants(h.Constants), Constants: constants(e.Const), Launches: e.Launches,
	})
	if err != nil {
		return err
	}
	u := toolchain.Unit{
		Name: "kernel " + e.Name, Source: path.Join(p.Folder(), "unit", e.ID+extensions[h.Toolchain]),
		Flags: toolchain.FeatureFlags(h.Hardware, e.Needs), At: e.At(""),
	}
	if h.Is().Threads {
		for _, l := range e.Launches {
			u.Launches = append(u.Launches, launch(h, e, &l))
		}
	}
	o.Files[u.Source] = text
	p.Units = append(p.Units, u)
	return nil
}

// launch is what an image has to know of a launch.
func launch(h *plan.Hardware, e *plan.Entry, l *plan.Launch) toolchain.Launch {
	out := toolchain.Launch{
		Entry: l.Entry, Arguments: argumentBytes(e, l), Block: l.Block, Shared: l.Shared, Cluster: l.Cluster,
		Programmatic: !l.Serial, Cooperative: l.Cooperative, L1: l.L1,
		MaxRegisters: l.MaxRegisters, MaxShared: l.MaxShared, MaxStack: max(l.MaxStack, h.Stack), At: l.At(""),
	}
	if out.MaxShared == 0 {
		out.MaxShared = h.Constants["kSharedPerBlock"]
	}
	return out
}
