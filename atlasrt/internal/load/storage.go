package load

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// forms are the schemes in which GGUF's block types may be kept on a device, the best first: as they are, or repacked to another block
// type that can hold their values (gguf.Repack). Where a device has kernels for none of them, the matrix becomes bf16.
var forms = map[tensor.Type][]op.Scheme{
	tensor.Q8_0:   {op.SchemeQ8_0},
	tensor.Q4_0:   {op.SchemeQ4_0},
	tensor.Q4_1:   {op.SchemeQ4_1},
	tensor.Q5_0:   {op.SchemeQ5_0, op.SchemeQ8_0},
	tensor.Q4_K:   {op.SchemeQ4_K, op.SchemeQ4_1},
	tensor.Q6_K:   {op.SchemeQ6_K},
	tensor.IQ4_NL: {op.SchemeQ8_0},
}

// typeOf is the type of a file's tensor that holds a scheme's matrix whole; 0 where codes and scales are tensors of their own.
func typeOf(s op.Scheme) tensor.Type {
	t, _ := tensor.Parse(strings.ToUpper(s.String()))
	return t
}

// formOn is the scheme in which a set keeps a stored type.
func formOn(set Sizer, t tensor.Type) op.Scheme {
	for _, s := range forms[t] {
		if set.PackedBytes(s, 1, int32(s.Block())) > 0 {
			return s
		}
	}
	return op.SchemeBF16
}

// Storage is how a checkpoint keeps one matrix or vector: in one tensor, or in several where codes and scales are tensors of their own.
type Storage struct {
	weights.Info             // of the elements, blocks or codes
	Scheme       op.Scheme   // how the matrix is kept on the device
	Rounding     op.Rounding // how kernels may round activations before they multiply by it

	blocks    weights.Info // the tensor of block scales; no name: there is none
	blockRows int64        // rows of a block that has one scale in the checkpoint, for SchemeF8Block
	blockCols int64        // columns of such a block
	factor    weights.Info // the tensor with one scale for each row or for the matrix; no name: there is none
	divides   bool         // weights are divided by factor and not multiplied
	problem   string       // why it cannot be served; "" where it can
}

// Plain is a tensor of elements, which is kept as bf16 where it is a matrix.
func Plain(info weights.Info) Storage { return Storage{Info: info, Scheme: op.SchemeBF16} }

// converts reports whether the codes are kept in another form than the checkpoint has.
func (s Storage) converts() bool {
	return s.Type != typeOf(s.Scheme) && (s.Scheme == op.SchemeBF16 || s.Type.Quantized())
}

// served ends the message about a quantisation that is not.
const served = "served are FP8 (e4m3) with weight_scale of a tensor or its rows or with weight_scale_inv of blocks, NVFP4 of modelopt and " +
	"compressed-tensors, and GGUF files"

// Stored returns a function that finds how a checkpoint keeps the tensor of a name, and whether it has one. A matrix counts as quantised
// where its scales are in the checkpoint; of config.json only the size of blocks and the name of the method are used, since its lists of
// quantised layers often contradict the files. GGUF's blocks are kept in a form that set has kernels for.
func Stored(c weights.Checkpoint, set Sizer) func(name string) (Storage, bool) {
	all := c.Config()
	config := all.Object("quantization_config")
	f := finder{info: c.Info, method: config.StringOr("quant_method", ""), blockRows: 128, blockCols: 128}
	if f.method == "" && all.Has("quantization") { // a key of its own
		f.method = "MLX"
	}
	for _, key := range []string{"format", "quant_algo"} {
		if detail := config.StringOr(key, ""); detail != "" {
			f.method += " " + detail
		}
	}
	f.rounding = rounding(config)
	if size := config.Ints("weight_block_size"); len(size) == 2 {
		f.blockRows, f.blockCols = int64(size[0]), int64(size[1])
	}
	return func(name string) (Storage, bool) {
		s, ok := f.find(name)
		if s.Type.Quantized() {
			s.Scheme = formOn(set, s.Type)
		}
		return s, ok
	}
}

type finder struct {
	info                 func(name string) (weights.Info, bool)
	method               string // of quantisation, as config.json calls it
	blockRows, blockCols int64
	rounding             roundings
}

func (f finder) find(name string) (Storage, bool) {
	w, ok := f.info(name)
	linear, named := strings.CutSuffix(name, ".weight")
	switch {
	case ok && w.Type == tensor.F8_E4M3:
		return f.float8(linear, w), true
	case ok && w.Type == tensor.U8:
		return f.float4(linear, w, ".weight_scale_2", false), true
	case ok && !(w.Type.Quantized() || w.Type == tensor.F32 || w.Type == tensor.F16 || w.Type == tensor.BF16):
		return f.unserved(w), true
	case ok || !named:
		return Plain(w), ok
	}
	if w, ok := f.info(linear + ".weight_packed"); ok {
		return f.float4(linear, w, ".weight_global_scale", true), true
	}
	if w, ok := f.info(linear + ".qweight"); ok {
		return f.unserved(w), true
	}
	return Storage{}, false
}

// float8 looks for the scales of e4m3 weights.
func (f finder) float8(linear string, w weights.Info) Storage {
	s := Storage{Info: w, Scheme: op.SchemeF8Block, blockRows: f.blockRows, blockCols: f.blockCols}
	scale, ofBlocks := f.info(linear + ".weight_scale_inv")
	if !ofBlocks {
		var ok bool
		if scale, ok = f.info(linear + ".weight_scale"); !ok {
			s.problem = "is F8_E4M3 without a scale: neither weight_scale nor weight_scale_inv is in the checkpoint"
			return s
		}
	}
	if scale.Type != tensor.F32 && scale.Type != tensor.F16 && scale.Type != tensor.BF16 {
		s.problem = fmt.Sprintf("has scales of type %v, wanted F32, F16 or BF16", scale.Type)
		return s
	}
	rows, cols := w.Rows(), w.Cols()
	blocks := f.blockRows > 0 && f.blockCols > 0 && same(scale.Shape, divideUp(rows, f.blockRows), divideUp(cols, f.blockCols))
	switch {
	case same(scale.Shape, rows), same(scale.Shape) && !(ofBlocks && blocks):
		s.Scheme, s.factor, s.Rounding = op.SchemeF8, scale, f.rounding.rows
	case !blocks:
		s.problem = fmt.Sprintf("has scales of shape %s, wanted one, one for each of %d rows, or one for each block of %d×%d",
			tensor.FormatShape(scale.Shape), rows, f.blockRows, f.blockCols)
	case f.blockRows%op.F8BlockRows != 0 || f.blockCols%op.F8BlockCols != 0:
		s.problem = fmt.Sprintf("has a scale for each block of %d×%d, wanted multiples of %d rows and of %d columns",
			f.blockRows, f.blockCols, op.F8BlockRows, op.F8BlockCols)
	default:
		s.blocks, s.Rounding = scale, f.rounding.blocks
	}
	return s
}

// float4 looks for the scales of packed e2m1 weights.
func (f finder) float4(linear string, w weights.Info, factor string, divides bool) Storage {
	s := Storage{Info: w, Scheme: op.SchemeNVFP4, divides: divides}
	var ok bool
	if s.blocks, ok = f.info(linear + ".weight_scale"); !ok || w.Type != tensor.U8 || s.blocks.Type != tensor.F8_E4M3 {
		return f.unserved(w)
	}
	switch s.factor, ok = f.info(linear + factor); {
	case !ok:
		s.problem = "is NVFP4 without its" + strings.Replace(factor, ".", " ", 1) + ", which is not in the checkpoint"
	case s.factor.Type != tensor.F32 && s.factor.Type != tensor.F16 && s.factor.Type != tensor.BF16:
		s.problem = fmt.Sprintf("has a scale of type %v, wanted F32, F16 or BF16", s.factor.Type)
	}
	return s
}

// unserved is a matrix in a form that nothing here reads. Its problem names the method and the tensor, and what is served.
func (f finder) unserved(w weights.Info) Storage {
	method := f.method
	if method == "" {
		method = "an unknown method"
	}
	kind := w.Name[strings.LastIndex(w.Name, ".")+1:]
	return Storage{Info: w, problem: fmt.Sprintf("is quantised by %s (%s of type %v), which is not served (%s)", method, kind, w.Type, served)}
}

// same reports whether a shape is dims. Dimensions of 1 are left out on both sides: a scale may have the shape [], [1] or [1,1].
func same(shape []int64, dims ...int64) bool {
	long := func(n int64) bool { return n == 1 }
	return slices.Equal(slices.DeleteFunc(slices.Clone(shape), long), slices.DeleteFunc(dims, long))
}

func divideUp(n, by int64) int64 { return (n + by - 1) / by }

// split is the bytes of a matrix's codes and those of the block scales that follow them.
func split(scheme op.Scheme, rows, cols int64) (codes, scales int64) {
	all := scheme.RawBytes(rows, cols)
	switch scheme {
	case op.SchemeF8Block:
		codes = rows * cols
	case op.SchemeNVFP4:
		codes = rows * cols / 2
	default:
		codes = all
	}
	return codes, all - codes
}

// scaled reports whether matrices of a scheme have a Weight.Scale.
func scaled(scheme op.Scheme) bool { return scheme == op.SchemeF8 || scheme == op.SchemeNVFP4 }
