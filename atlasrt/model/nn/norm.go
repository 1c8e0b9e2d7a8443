package nn

import (
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Norm is what a block reads the sum of all blocks before it through.
type Norm struct {
	scale op.Ptr
	cols  int32
	eps   float32
	first bool // no block has written w.X yet
}

// NewNorm loads the norm of a name.
func NewNorm(src model.Source, c *Config, name string, first bool) Norm {
	return Norm{scale: src.Vector(model.Part{Name: name, Rows: c.Hidden}), cols: c.Hidden, eps: c.Eps, first: first}
}

// Forward adds w.X to w.Residual and leaves the norm of the sum in w.Normed.
func (n Norm) Forward(ops op.Core, q op.Stream, rows int32, w *Workspace) {
	in, residual, _ := n.operands(w)
	ops.RMSNorm(q, op.RMSNorm{Out: w.Normed, In: in, Residual: residual, Scale: n.scale, Rows: rows, Cols: n.cols, Eps: n.eps})
}

// operands are what a fused kernel norms, in and residual, and where their sum goes.
func (n Norm) operands(w *Workspace) (in, residual, sum op.Ptr) {
	if n.first {
		return w.Residual, 0, 0
	}
	return w.X, w.Residual, w.Sum
}

// fused tells that a kernel with these operands is queued: the sum is the residual from now on.
func (n Norm) fused(w *Workspace) {
	if !n.first {
		w.Residual, w.Sum = w.Sum, w.Residual
	}
}
