package emit

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/plan"
	"github.com/atlas-inference/atlas/atlasc/internal/toolchain"
)

// unitData is what the template of a unit reads.
type unitData struct {
	Mark, At, Body, Op, Activations string
	Scratch                         bool
	Facts                           []constant // of the hardware
	Constants                       []constant // of the entry
	Launches                        []unitLaunch
}

// unitLaunch is a launch and, on a GPU, what the body's function knows of it by name.
type unitLaunch struct {
	plan.Launch
	Constants []constant
}

// constant is a value that the body knows by name. Only C++ asks for its type; what a text is, it says itself.
type constant struct{ Name, Type, C string }

// constants are integers, booleans and texts, sorted by name.
func constants[V any](values map[string]V) []constant {
	var all []constant
	for _, name := range slices.Sorted(maps.Keys(values)) {
		c := constant{name, "auto", fmt.Sprint(values[name])}
		switch v := any(values[name]).(type) {
		case int64:
			if c.Type = "int"; v != int64(int32(v)) {
				c.Type = "long long"
			}
			if v < 0 {
				c.C = "(" + c.C + ")" // anywhere in an expression
			}
		case bool:
			c.Type = "bool"
		}
		all = append(all, c)
	}
	return all
}

// declarations are C++ declarations of constants, those of a type together.
func declarations(of []constant) []string {
	var all []string
	constants := slices.SortedStableFunc(slices.Values(of), func(a, b constant) int { return strings.Compare(a.Type, b.Type) })
	for i, c := range constants {
		if i > 0 && c.Type == constants[i-1].Type && c.Type != "auto" {
			all[len(all)-1] += ", " + c.Name + " = " + c.C
			continue
		}
		all = append(all, c.Type+" "+c.Name+" = "+c.C)
	}
	return all
}

// launchConstants are plan.LaunchConstants.
func launchConstants(h *plan.Hardware, e *plan.Entry, l *plan.Launch) []constant {
	var all []constant
	for _, name := range plan.LaunchConstants {
		switch name {
		case "kThreads":
			all = append(all, constant{name, "int", fmt.Sprint(l.Threads())})
		case "kCluster":
			all = append(all, constant{name, "int", fmt.Sprint(max(1, l.Cluster[0]*l.Cluster[1]*l.Cluster[2]))})
		case "kShared":
			all = append(all, constant{name, "int", fmt.Sprint(l.Shared)})
		case "kScheme":
			for _, layout := range h.Layouts {
				if e.Op.Weight() != nil && slices.Equal(e.Schemes, []int64{layout.Scheme.Value}) {
					all = append(all, constant{name, "atlas_Scheme", layout.Scheme.C})
				}
			}
		default:
			panic("BUG: nothing says what " + name + " of a launch is")
		}
	}
	return all
}

// extensions of the units' files, by toolchain.
var extensions = map[string]string{"gcc": ".c", "nvcc": ".cu"}

// unit adds the C or CUDA file of one kernel.
func (o *Output) unit(p *Package, e *plan.Entry) error {
	h := p.Hardware
	var launches []unitLaunch
	for _, l := range e.Launches {
		launches = append(launches, unitLaunch{l, append(constants(e.Const), launchConstants(h, e, &l)...)})
	}
	text, err := execute("unit_"+h.Toolchain+".tmpl", unitData{
		Mark: Mark, At: e.At("").File, Body: e.Body, Op: e.Op.Name, Activations: h.Activations,
		Scratch: e.Scratch != nil, Facts: constants(h.Constants), Constants: constants(e.Const), Launches: launches,
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
