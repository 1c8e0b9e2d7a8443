package nn

import (
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Norm is the RMSNorm through which a block reads the residual stream.
type Norm struct {
	scale op.Ptr
	cols  int32
	eps   float32
}

// NewNorm places the scale of a norm; name is its tensor's.
func NewNorm(src model.Source, c *Config, name string) Norm {
	return Norm{scale: src.Vector(model.Part{Name: name, Rows: c.Hidden}), cols: c.Hidden, eps: c.Eps}
}

// Forward leaves norm(h) in w.Normed, where h is the residual stream in w. It queues nothing where a fused kernel has done so already.
func (n Norm) Forward(ops op.Core, q op.Stream, rows int32, w *Workspace) {
	if w.ready {
		w.ready = false
		return
	}
	in, residual, _ := w.operands()
	ops.RMSNorm(q, op.RMSNorm{Out: w.Normed, In: in, Residual: residual, Scale: n.scale, Rows: rows, Cols: n.cols, Eps: n.eps})
	w.apart = false
}
