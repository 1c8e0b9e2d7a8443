package load

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// rounding is what a quantization_config says about activations that meet FP8 blocks. Checkpoints whose weights alone are
// quantised say nothing, or that there is nothing: their activations stay what they are.
func rounding(config *weights.Config) op.Rounding {
	dynamic := false
	switch config.StringOr("quant_method", "") {
	case "fp8": // whose only other scheme is "static"
		dynamic = config.StringOr("activation_scheme", "dynamic") == "dynamic"
	case "compressed-tensors":
		groups := config.Object("config_groups")
		for i, name := range groups.Keys() {
			in := groups.Object(name).Object("input_activations")
			dynamic = (i == 0 || dynamic) && in.StringOr("type", "") == "float" && in.IntOr("num_bits", 0) == 8 &&
				in.BoolOr("dynamic", false) && in.StringOr("strategy", "") == "group" && in.IntOr("group_size", 0) == op.F8BlockCols
		}
	}
	if dynamic {
		return op.RoundingE4M3x128
	}
	return op.RoundingNone
}

// Unrounded is stored for a user who wants activations left alone whatever the checkpoint says.
func Unrounded(stored func(name string) (Storage, bool)) func(name string) (Storage, bool) {
	return func(name string) (Storage, bool) {
		s, ok := stored(name)
		s.Rounding = op.RoundingNone
		return s, ok
	}
}
