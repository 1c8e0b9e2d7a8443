package load

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/quant"
)

// unusedScales are scales that quantised checkpoints have beside those of weights, by the ends of their names.
var unusedScales = []struct {
	what, why string
	ends      []string
}{
	{"keys and values", "they are kept in the type of the cache", []string{".k_scale", ".v_scale", ".q_scale"}},
	{"activations", "those that are rounded at all get their scales while they are computed", []string{".input_scale", ".input_global_scale", ".activation_scale"}},
}

// isUnusedScale tells scales that nothing here asks for.
func isUnusedScale(name string) bool {
	for _, scales := range unusedScales {
		if weights.EndsIn(name, scales.ends...) {
			return true
		}
	}
	return false
}

// Notes says which parts of a checkpoint's quantisation have no effect here, in one line for each.
func Notes(c weights.Checkpoint) []string {
	rules, err := quant.Read(c.Config())
	if err != nil || rules.Method == "" { // the error is that of the tensors which it concerns
		return nil
	}
	var lines []string
	names := c.Unused()
	for i, scales := range unusedScales {
		n := 0
		for _, name := range names {
			if weights.EndsIn(name, scales.ends...) {
				n++
			}
		}
		if n > 0 || i == 0 && rules.KeysAndValues {
			lines = append(lines, fmt.Sprintf("the checkpoint has a scheme for quantising %s (%d tensors of scales), which has no effect: %s", scales.what, n, scales.why))
		}
	}
	return lines
}
