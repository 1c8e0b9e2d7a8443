package instance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// mostBiases bounds the names in one line.
const mostBiases = 2

// leaveOut looks for biases of projections that the settings turn off. Those of a HuggingFace checkpoint are left out, as
// transformers does, and the settings' reader notes it; a GGUF file has no such setting, so its tensors count.
func leaveOut(c weights.Checkpoint, wants []weights.Want) error {
	var left []string
	for _, want := range wants {
		name, linear := strings.CutSuffix(want.Name, "_proj.weight")
		name += "_proj.bias"
		if _, stored := c.Info(name); linear && stored && !slices.ContainsFunc(wants, func(w weights.Want) bool { return w.Name == name }) {
			left = append(left, name)
		}
	}
	switch config := c.Config(); {
	case len(left) == 0:
	case config.Translated():
		return fmt.Errorf("biases are not served for model_type %q: %s", config.StringOr("model_type", ""), weights.Listed(left, mostBiases))
	default:
		config.Assume("biases are left out, as attention_bias, mlp_bias or the model_type say: %s", weights.Listed(left, mostBiases))
	}
	return nil
}
