package load

import (
	"fmt"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/quant"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// defaultBlock is the rows and the columns of a block of FP8 where the configuration says nothing.
const defaultBlock = 128

// float8 looks for the scales of e4m3 weights.
func (f finder) float8(linear string, w weights.Info, rule quant.Rule) Storage {
	s := Storage{Info: w, Scheme: op.SchemeF8Block, blockRows: defaultBlock, blockCols: defaultBlock}
	if size := rule.Block; size != [2]int{} {
		s.blockRows, s.blockCols = int64(size[0]), int64(size[1])
	}
	scale, inverse := f.info(linear + ".weight_scale_inv")
	other, alone := f.info(linear + ".weight_scale")
	switch {
	case inverse && alone:
		s.problem = fmt.Sprintf("is F8_E4M3 with two scales: %v and %v", scale, other)
		return s
	case !inverse && !alone:
		if _, ok := f.info(linear + ".qscale_weight"); ok {
			return f.unserved(linear, w, rule)
		}
		s.problem = fmt.Sprintf("is F8_E4M3 without a scale: neither weight_scale nor weight_scale_inv is in the checkpoint (its configuration says: %v)", rule)
		return s
	case !inverse:
		scale = other
	}
	if scale.Type == tensor.U8 || scale.Type == tensor.F8_E8M0 {
		return f.unserved(linear, w, rule)
	}
	if !isFloat(scale.Type) {
		s.problem = fmt.Sprintf("has scales of type %v, wanted F32, F16 or BF16", scale.Type)
		return s
	}
	rows, cols := w.Rows(), w.Cols()
	down, across := divideUp(rows, s.blockRows), divideUp(cols, s.blockCols)
	single := ofMatrix(scale.Shape)
	only := single && down*across == 1 && (inverse || rule.Form == quant.FP8Blocks && len(scale.Shape) > 1) // that of the only block
	switch {
	case single && !only, !single && ofRows(scale.Shape, rows):
		if s.Scheme, s.factor = op.SchemeF8, scale; rule.PerRow {
			s.Rounding = op.RoundingE4M3xRow
		}
	case !only && !ofBlocks(scale.Shape, down, across):
		s.problem = fmt.Sprintf("has scales of shape %s, wanted one, one for each of %[2]d rows ([%[2]d] or [%[2]d, 1]), or one for each block of %d×%d ([%d, %d])",
			tensor.FormatShape(scale.Shape), rows, s.blockRows, s.blockCols, down, across)
	case s.blockRows%op.F8BlockRows != 0 || s.blockCols%op.F8BlockCols != 0:
		s.problem = fmt.Sprintf("has a scale for each block of %d×%d, wanted multiples of %d rows and of %d columns",
			s.blockRows, s.blockCols, op.F8BlockRows, op.F8BlockCols)
	default:
		if s.blocks = scale; rule.Per128 {
			s.Rounding = op.RoundingE4M3x128
		}
	}
	return s
}

// float4 looks for the scales of packed e2m1 weights.
func (f finder) float4(linear string, w weights.Info, factor string, divides bool, rule quant.Rule) Storage {
	s := Storage{Info: w, Scheme: op.SchemeNVFP4, divides: divides}
	var ok bool
	if s.blocks, ok = f.info(linear + ".weight_scale"); !ok || w.Type != tensor.U8 || s.blocks.Type != tensor.F8_E4M3 {
		return f.unserved(linear, w, rule)
	}
	switch s.factor, ok = f.info(linear + factor); {
	case !ok:
		s.problem = "is NVFP4 without its" + strings.Replace(factor, ".", " ", 1) + ", which is not in the checkpoint"
	case !isFloat(s.factor.Type):
		s.problem = fmt.Sprintf("has a scale of type %v, wanted F32, F16 or BF16", s.factor.Type)
	}
	return s
}

// served ends the message about a quantisation that is not.
const served = "served are FP8 (e4m3) with weight_scale of a tensor or its rows or with weight_scale_inv of blocks, NVFP4 of modelopt and " +
	"compressed-tensors, and GGUF files"

// unserved is a matrix in a form that nothing here reads. Its problem names the form, the method and the tensor, and what is served.
func (f finder) unserved(linear string, w weights.Info, rule quant.Rule) Storage {
	method := f.rules.Method
	if method == "" {
		method = "an unknown method"
	}
	kind := w.Name[strings.LastIndex(w.Name, ".")+1:]
	return Storage{Info: w, problem: fmt.Sprintf("is %squantised by %s (%s of type %v), which is not served (%s)", f.guess(linear, w, rule), method, kind, w.Type, served)}
}

// guess names the form of weights that are not served, as far as the tensors and the configuration tell it.
func (f finder) guess(linear string, w weights.Info, rule quant.Rule) string {
	scale, _ := f.info(linear + ".weight_scale")
	if scale.Name == "" {
		scale, _ = f.info(linear + ".weight_scale_inv")
	}
	powers := scale.Type == tensor.U8 || scale.Type == tensor.F8_E8M0
	_, mistral := f.info(linear + ".qscale_weight")
	switch {
	case strings.HasSuffix(w.Name, ".bitmask"):
		return "2:4 sparse, "
	case w.Type == tensor.U8 && powers:
		return quant.MXFP4.String() + ", "
	case w.Type == tensor.F8_E4M3 && powers:
		return quant.MXFP8.String() + ", "
	case w.Type == tensor.I8:
		return quant.Int8.String() + ", "
	case mistral:
		return "FP8 as Mistral names its scales, "
	case rule.Form > quant.NVFP4 && rule.Form != quant.Other:
		return rule.Form.String() + ", "
	}
	return ""
}

// contradiction says where the tensors of a matrix and what is said of it cannot both be right; "" where they can. That a list leaves out a
// matrix, or names one too many, changes no weight: the tensors count.
func (f finder) contradiction(linear string, s Storage) string {
	stored, said := s.Form(), s.Rule.Form
	switch {
	case stored == quant.Plain && len(s.Shape) > 1:
		for _, suffix := range []string{".weight_scale", ".weight_scale_inv", ".weight_scale_2", ".weight_packed", ".weight_global_scale"} {
			if scale, ok := f.info(linear + suffix); ok {
				return fmt.Sprintf("is %v, and beside it is %v, which belongs to quantised weights (its configuration says: %v): one of them is not of this checkpoint", s.Type, scale, s.Rule)
			}
		}
	case stored == quant.Plain, stored == quant.Unknown, said == quant.Unknown, said == quant.Plain, said == quant.Other:
	case (stored == quant.NVFP4) != (said == quant.NVFP4) || said > quant.NVFP4:
		return fmt.Sprintf("is %v by its tensors, and %v: one of them is not of this checkpoint", stored, s.Rule)
	case stored == quant.NVFP4 && s.Rule.Group != 0 && s.Rule.Group != int(op.SchemeNVFP4.Block()):
		return fmt.Sprintf("is %v by its tensors, of which %d columns share a scale, and by %s so do %d columns", stored, op.SchemeNVFP4.Block(), s.Rule.By, s.Rule.Group)
	}
	return ""
}
