package nn

import (
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Linear is several projections of one input whose outputs lie side by side. Neighbours that a checkpoint stores in the
// same scheme are one matrix, so that the input is read once.
type Linear struct {
	pieces []piece
	rows   int32 // outputs of all pieces
}

type piece struct {
	weight op.Weight
	bias   op.Ptr
	offset int32 // columns before it
}

// NewLinear loads name.weight, and name.bias where biased, of each part over cols inputs.
func NewLinear(src model.Source, cols int32, biased bool, parts ...model.Part) Linear {
	var l Linear
	for len(parts) > 0 {
		scheme, n := src.Scheme(parts[0].Name+".weight"), 1
		for n < len(parts) && src.Scheme(parts[n].Name+".weight") == scheme {
			n++
		}
		p := piece{weight: src.Matrix(cols, suffixed(parts[:n], ".weight")...), offset: l.rows}
		if biased {
			p.bias = src.Vector(suffixed(parts[:n], ".bias")...)
		}
		l.pieces = append(l.pieces, p)
		l.rows += p.weight.Rows
		parts = parts[n:]
	}
	return l
}

func suffixed(parts []model.Part, suffix string) []model.Part {
	named := make([]model.Part, len(parts))
	for i, p := range parts {
		named[i] = model.Part{Name: p.Name + suffix, Rows: p.Rows}
	}
	return named
}

// Forward multiplies rows rows of in into out, whose rows hold all outputs of all pieces.
func (l Linear) Forward(ops op.Core, q op.Stream, out, in op.Ptr, rows int32, act op.DType) {
	for _, p := range l.pieces {
		ops.Linear(q, op.Linear{Out: out + op.Ptr(int64(p.offset)*act.Bytes()), In: in, Bias: p.bias, W: p.weight, Rows: rows, OutPitch: l.rows})
	}
}
