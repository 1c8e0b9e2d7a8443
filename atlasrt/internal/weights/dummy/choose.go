package dummy

import (
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Dialect is how a checkpoint names the tensors of an NVFP4 matrix, and how config.json says that it is one.
type Dialect string

// Dialects.
const (
	ModelOpt          Dialect = "modelopt"           // weight, weight_scale, weight_scale_2 and input_scale; the zero value is this, too
	CompressedTensors Dialect = "compressed-tensors" // weight_packed, weight_scale, weight_global_scale and input_global_scale
)

// blocks are the types of GGUF's files that hold a scheme's matrices whole.
var blocks = map[op.Scheme]weights.Type{
	op.SchemeQ8_0: tensor.Q8_0, op.SchemeQ4_0: tensor.Q4_0, op.SchemeQ4_1: tensor.Q4_1,
	op.SchemeQ5_0: tensor.Q5_0, op.SchemeQ4_K: tensor.Q4_K, op.SchemeQ6_K: tensor.Q6_K,
}

// choose picks how a tensor is stored: as the scheme says if the want allows it, else as the want's first type.
func (o Options) choose(want weights.Want, scheme op.Scheme) []recipe {
	plain := func(t weights.Type) []recipe {
		return []recipe{{Info: weights.Info{Name: want.Name, Type: t, Shape: want.Shape}, offset: want.Plus}}
	}
	switch {
	case len(want.Types) > 0:
		return plain(want.Types[0])
	case len(want.Shape) < 2:
		return plain(tensor.F32)
	}
	cols := want.Shape[len(want.Shape)-1]
	if t, ok := blocks[scheme]; ok && cols%scheme.Block() == 0 && !strings.HasSuffix(want.Name, ".mlp.gate.weight") {
		return plain(t)
	}
	linear, ok := strings.CutSuffix(want.Name, ".weight")
	if !ok || !o.quantises(linear) || len(want.Shape) != 2 || cols <= 0 || cols%scheme.Block() != 0 {
		return plain(tensor.BF16)
	}
	return o.matrix(linear, scheme, want.Shape[0], cols)
}

// linears end the names of the matrices that published checkpoints quantise to FP8 or NVFP4.
var linears = []string{"_proj", ".in_proj_qkv", ".in_proj_z", ".in_proj_qkvz"}

// others end the names of matrices that they keep in bf16 and that Options.Whole quantises.
var others = []string{"lm_head", ".in_proj_a", ".in_proj_b", ".in_proj_ba"}

// quantises reports whether a matrix is stored in FP8 or NVFP4 where others are.
func (o Options) quantises(linear string) bool {
	return weights.EndsIn(linear, linears...) || o.Whole && weights.EndsIn(linear, others...)
}

// matrix lists the tensors that hold a matrix of a scheme whose codes and scales are tensors of their own; of others, that of bf16.
func (o Options) matrix(linear string, scheme op.Scheme, rows, cols int64) []recipe {
	tensorOf := func(suffix string, t weights.Type, shape ...int64) recipe {
		return recipe{Info: weights.Info{Name: linear + suffix, Type: t, Shape: shape}}
	}
	constant := func(suffix string, value float32, shape ...int64) recipe {
		r := tensorOf(suffix, tensor.F32, shape...)
		r.constant = value
		return r
	}
	columns := spread(linear+".weight", cols)
	switch scheme {
	case op.SchemeF8:
		return []recipe{tensorOf(".weight", tensor.F8_E4M3, rows, cols), constant(".weight_scale", scale(spreadF8, columns))}
	case op.SchemeF8Block:
		return []recipe{tensorOf(".weight", tensor.F8_E4M3, rows, cols), constant(".weight_scale_inv", scale(spreadF8, columns), (rows+127)/128, (cols+127)/128)}
	case op.SchemeNVFP4:
		codes, factor, input := tensorOf(".weight", tensor.U8, rows, cols/2), constant(".weight_scale_2", scale(spreadFP4, columns)), constant(".input_scale", inputScale)
		if o.Dialect == CompressedTensors { // which divides by its scales
			codes.Name = linear + ".weight_packed"
			factor, input = constant(".weight_global_scale", 1/factor.constant, 1), constant(".input_global_scale", 1/input.constant, 1)
		}
		return []recipe{codes, tensorOf(".weight_scale", tensor.F8_E4M3, rows, cols/16), factor, input}
	}
	return []recipe{tensorOf(".weight", tensor.BF16, rows, cols)}
}

// inputScale is the scale of activations up to 5.25: 6·448 times as small.
const inputScale = 1.0 / 512
