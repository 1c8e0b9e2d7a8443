package nn

import (
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Linear is several projections of one input, such as queries, keys and values. Their outputs lie side by side in a row. Neighbours that
// a checkpoint stores in the same scheme become one matrix, so that one launch computes them.
type Linear struct {
	pieces []piece
	rows   int32 // outputs of all pieces
}

type piece struct {
	weight op.Weight
	bias   op.Ptr
	offset int32 // columns of the output before this piece's
}

// at is the address of a piece's first output in the first row.
func (p piece) at(out op.Ptr, act op.DType) op.Ptr { return out + op.Ptr(int64(p.offset)*act.Bytes()) }

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
		named[i] = p
		named[i].Name += suffix
	}
	return named
}

// whole is the one matrix of a Linear that has no bias; false where there are several or a bias.
func (l Linear) whole() (w op.Weight, ok bool) {
	p := l.pieces[0]
	return p.weight, len(l.pieces) == 1 && p.bias == 0
}

// Forward multiplies rows of in, each as long as the matrices have columns, and writes rows of out, which hold the outputs of all pieces.
func (l Linear) Forward(ops op.Core, q op.Stream, out, in op.Ptr, rows int32, act op.DType) {
	for _, p := range l.pieces {
		ops.Linear(q, op.Linear{Out: p.at(out, act), In: in, Bias: p.bias, W: p.weight, Rows: rows, OutPitch: l.rows})
	}
}
