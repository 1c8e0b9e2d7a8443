package weights

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// Tensors that hold all experts of a layer: [experts, 2·width, hidden], of each expert the gate's rows and then those of the up
// projection, and [experts, hidden, width].
const (
	stackedUp   = "experts.gate_up_proj"
	stackedDown = "experts.down_proj"
)

// unstack gives each matrix of stacked experts the name that it has where experts are tensors of their own. Nothing is copied.
func (f *folder) unstack() error {
	var layers []string // what comes before stackedUp in the names that are asked for
	for name := range f.all() {
		if layer, ok := strings.CutSuffix(name, stackedUp); ok {
			layers = append(layers, layer)
		}
	}
	slices.Sort(layers)
	for _, layer := range layers {
		up, _ := f.find(layer + stackedUp)
		down, ok := f.find(layer + stackedDown)
		if !ok {
			f.notes = append(f.notes, fmt.Sprintf("%s has no %s beside it: it is left as it is", up.Info, layer+stackedDown))
			continue
		}
		experts, ok := stacked(up.Info, down.Info)
		if !ok {
			f.notes = append(f.notes, fmt.Sprintf("%s and %s are no experts that are stacked as [experts, 2·width, hidden] and [experts, hidden, width] in bf16, f16 or f32: they are left as they are",
				up.Info, down.Info))
			continue
		}
		if f.names == nil {
			f.names = map[string]origin{}
			for _, name := range f.tensors.Names() {
				f.names[name] = origin{name: name}
			}
		}
		upName, downName := f.names[layer+stackedUp].name, f.names[layer+stackedDown].name
		delete(f.names, layer+stackedUp)
		delete(f.names, layer+stackedDown)
		for e := range experts {
			for _, x := range []struct {
				projection string
				from       origin
			}{{"gate", origin{upName, 2 * e, 2 * experts}}, {"up", origin{upName, 2*e + 1, 2 * experts}}, {"down", origin{downName, e, experts}}} {
				name := fmt.Sprintf("%sexperts.%d.%s_proj.weight", layer, e, x.projection)
				if other, ok := f.names[name]; ok {
					return fmt.Errorf("tensor %s and a part of %s would both be %s", other.name, x.from.name, name)
				}
				f.names[name] = x.from
			}
		}
	}
	return nil
}

// all gives the names that can be asked for.
func (f *folder) all() func(yield func(string) bool) {
	if f.names == nil {
		return slices.Values(f.tensors.Names())
	}
	return maps.Keys(f.names)
}

// stacked tells whether two tensors are the experts of one layer, and how many.
func stacked(up, down Info) (experts int, ok bool) {
	if len(up.Shape) != 3 || len(down.Shape) != 3 || up.Type != down.Type || !slices.Contains([]Type{tensor.BF16, tensor.F16, tensor.F32}, up.Type) {
		return 0, false
	}
	experts = int(up.Shape[0])
	return experts, experts > 0 && experts <= maxExperts && down.Shape[0] == up.Shape[0] && down.Shape[1] == up.Shape[2] && up.Shape[1] == 2*down.Shape[2]
}
