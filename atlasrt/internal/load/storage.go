package load

import (
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/quant"
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
	Rule         quant.Rule  // what the configuration says of it

	blocks    weights.Info // the tensor of block scales; no name: there is none
	blockRows int64        // rows of a block that has one scale in the checkpoint, for SchemeF8Block
	blockCols int64        // columns of such a block
	factor    weights.Info // the tensor with one scale for each row or for the matrix; no name: there is none
	divides   bool         // weights are divided by factor and not multiplied
	quantises bool         // elements become codes and scales when they are loaded
	problem   string       // why it cannot be served; "" where it can
}

// Plain is a tensor of elements, which is kept as bf16 where it is a matrix.
func Plain(info weights.Info) Storage { return Storage{Info: info, Scheme: op.SchemeBF16} }

// converts reports whether the codes are kept in another form than the checkpoint has.
func (s Storage) converts() bool {
	return s.quantises || s.Type != typeOf(s.Scheme) && (s.Scheme == op.SchemeBF16 || s.Type.Quantized())
}

// Scales lists the tensors that hold its scales.
func (s Storage) Scales() []weights.Info {
	return slices.DeleteFunc([]weights.Info{s.blocks, s.factor}, func(i weights.Info) bool { return i.Name == "" })
}

// Problem says why it cannot be served; "" where it can.
func (s Storage) Problem() string { return s.problem }

// Form is how the tensors say that it is stored.
func (s Storage) Form() quant.Form {
	if s.quantises {
		return quant.Plain
	}
	switch s.Scheme {
	case op.SchemeF8:
		return quant.FP8
	case op.SchemeF8Block:
		return quant.FP8Blocks
	case op.SchemeNVFP4:
		return quant.NVFP4
	}
	if s.Type.Quantized() {
		return quant.Unknown // a GGUF file's blocks, of which no rule says anything
	}
	return quant.Plain
}

// Stored returns a function that finds how a checkpoint keeps the tensor of a name, and whether it has one. A matrix counts as quantised
// where its scales are in the checkpoint. What the configuration says is checked against that, and settles how activations may be rounded.
// GGUF's blocks are kept in a form that set has kernels for. What was found is kept: a matrix is asked for several times, and a mixture has
// tens of thousands. The function is for one goroutine at a time.
func Stored(c weights.Checkpoint, set Sizer) func(name string) (Storage, bool) {
	rules, err := quant.Read(c.Config())
	f := finder{info: c.Info, rules: rules, unreadable: err}
	type result struct {
		storage Storage
		ok      bool
	}
	known := map[string]*result{}
	return func(name string) (Storage, bool) {
		r := known[name]
		if r == nil {
			r = &result{}
			r.storage, r.ok = f.find(name)
			if r.storage.Type.Quantized() {
				r.storage.Scheme = formOn(set, r.storage.Type)
			}
			known[name] = r
		}
		return r.storage, r.ok
	}
}

type finder struct {
	info       func(name string) (weights.Info, bool)
	rules      *quant.Rules
	unreadable error // of the configuration
}

func (f finder) find(name string) (Storage, bool) {
	linear, named := strings.CutSuffix(name, ".weight")
	var rule quant.Rule
	if named {
		rule = f.rules.Of(linear)
	}
	s, ok := f.tensors(name, linear, rule)
	s.Rule = rule
	if ok && named && s.problem == "" {
		s.problem = f.contradiction(linear, s)
	}
	if f.unreadable != nil && s.Form() != quant.Plain {
		s.problem = "is quantised in a way that cannot be read: " + f.unreadable.Error()
	}
	return s, ok
}

// tensors finds the tensors that keep a matrix or vector.
func (f finder) tensors(name, linear string, rule quant.Rule) (Storage, bool) {
	w, ok := f.info(name)
	switch {
	case ok && w.Type == tensor.F8_E4M3:
		return f.float8(linear, w, rule), true
	case ok && w.Type == tensor.U8:
		return f.float4(linear, w, ".weight_scale_2", false, rule), true
	case ok && !(w.Type.Quantized() || isFloat(w.Type)):
		return f.unserved(linear, w, rule), true
	case ok || linear == name:
		return Plain(w), ok
	}
	if w, ok := f.info(linear + ".weight_packed"); ok {
		return f.float4(linear, w, ".weight_global_scale", true, rule), true
	}
	for _, suffix := range []string{".qweight", ".bitmask", ".weight.bitmask"} {
		if w, ok := f.info(linear + suffix); ok {
			return f.unserved(linear, w, rule), true
		}
	}
	return Storage{}, false
}

func isFloat(t tensor.Type) bool { return t == tensor.F32 || t == tensor.F16 || t == tensor.BF16 }

// ofMatrix reports whether a shape is that of one scale: all dimensions are 1, if there are any.
func ofMatrix(shape []int64) bool {
	return !slices.ContainsFunc(shape, func(n int64) bool { return n != 1 })
}

// ofRows reports whether a shape is that of a scale for each of so many rows, which may stand in a column.
func ofRows(shape []int64, rows int64) bool {
	return slices.Equal(shape, []int64{rows}) || slices.Equal(shape, []int64{rows, 1})
}

// ofBlocks reports whether a shape is that of a scale for each of rows×cols blocks. ModelOpt keeps the dimensions within blocks, as ones.
func ofBlocks(shape []int64, rows, cols int64) bool {
	return slices.Equal(shape, []int64{rows, cols}) || slices.Equal(shape, []int64{rows, 1, cols, 1})
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
