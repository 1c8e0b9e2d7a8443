package load

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// roundings are how activations may be rounded before they are multiplied by FP8 weights: by weights with a scale for each block, and by
// weights with a scale for each row or for the whole matrix.
type roundings struct{ blocks, rows op.Rounding }

// rounding is what a quantization_config says about activations. Where weights alone are quantised it says nothing, and activations are
// not rounded. They are not rounded either where the checkpoint has static scales for them.
func rounding(config *weights.Config) roundings {
	both := roundings{op.RoundingE4M3x128, op.RoundingE4M3xRow}
	switch config.StringOr("quant_method", "") {
	case "fp8": // whose only other scheme is "static"
		if config.StringOr("activation_scheme", "dynamic") == "dynamic" {
			return both
		}
	case "modelopt":
		if config.StringOr("quant_algo", "") == "FP8_PER_CHANNEL_PER_TOKEN" {
			return roundings{rows: op.RoundingE4M3xRow}
		}
	case "compressed-tensors":
		groups := config.Object("config_groups")
		for i, name := range groups.Keys() {
			in := groups.Object(name).Object("input_activations")
			var said roundings
			if in.StringOr("type", "") == "float" && in.IntOr("num_bits", 0) == 8 && in.BoolOr("dynamic", false) {
				switch strategy := in.StringOr("strategy", ""); {
				case strategy == "group" && in.IntOr("group_size", 0) == op.F8BlockCols:
					said.blocks = op.RoundingE4M3x128
				case strategy == "token":
					said.rows = op.RoundingE4M3xRow
				}
			}
			if i == 0 {
				both = said
			} else if said != both {
				both = roundings{}
			}
		}
		if len(groups.Keys()) > 0 {
			return both
		}
	}
	return roundings{}
}

// Unrounded is stored without roundings of activations, for users who do not want them whatever the checkpoint says.
func Unrounded(stored func(name string) (Storage, bool)) func(name string) (Storage, bool) {
	return func(name string) (Storage, bool) {
		s, ok := stored(name)
		s.Rounding = op.RoundingNone
		return s, ok
	}
}
