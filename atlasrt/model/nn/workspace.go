package nn

import (
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Ops is what dense transformers ask of a kernel set.
type Ops interface {
	op.Core
	op.Attention
	op.Fused
}

// MoEOps is what transformers with experts ask of a kernel set.
type MoEOps interface {
	Ops
	op.MoE
}

// Workspace is the activations of one step: buffers for as many rows as a step may have.
//
// The residual stream h is Residual, or Residual + X after a block whose last kernel could not add to it. The next norm adds X then:
// in place, or, where it is part of a fused kernel, into Sum, which takes the place of Residual.
type Workspace struct {
	Act      op.DType // element type of activations
	Residual op.Ptr   // act [Rows,Hidden]: the residual stream
	Sum      op.Ptr   // act [Rows,Hidden]: where a fused kernel writes Residual + X
	Normed   op.Ptr   // act [Rows,Hidden]: a block's input, norm(h)
	X        op.Ptr   // act [Rows,Hidden]: a block's output that is not in Residual yet
	QKV      op.Ptr   // act [Rows,(Heads+2·KVHeads)·HeadDim]: queries, keys and values of each row
	Mixed    op.Ptr   // act [Rows,Heads·HeadDim]: the result of attention
	Angles   op.Ptr   // f32 [Rows,HeadDim]: cosines and sines of the step's positions
	Up       op.Ptr   // act [Rows,2·Intermediate]: gate and up projection
	Gated    op.Ptr   // act [Rows,Intermediate], or [Rows·TopK,expert intermediate]: silu(gate)·up

	RouterLogits  op.Ptr // act [Rows,Experts]
	ExpertIDs     op.Ptr // i32 [Rows,TopK]: see op.Route, also for those below
	ExpertWeights op.Ptr // f32 [Rows,TopK]
	ExpertOrder   op.Ptr // i32 [Rows·TopK]
	ExpertStarts  op.Ptr // i32 [Experts+1]

	apart bool // X has still to be added to Residual
	ready bool // Normed holds the next norm's result
}

// operands are the addresses for a norm: in and residual, whose sum is h (residual is 0 where in alone is), and sum, where a fused
// kernel writes h.
func (w *Workspace) operands() (in, residual, sum op.Ptr) {
	if !w.apart {
		return w.Residual, 0, 0
	}
	return w.X, w.Residual, w.Sum
}

// added says that a fused kernel with these operands is queued: the sum that it writes is the residual stream from now on.
func (w *Workspace) added() {
	if w.apart {
		w.Residual, w.Sum, w.apart = w.Sum, w.Residual, false
	}
}

// NewWorkspace takes the buffers of a decoder; mixture is nil where there are no experts.
func NewWorkspace(src model.Source, c *Config, mixture *MixtureConfig, limits model.Limits) *Workspace {
	rows := int64(limits.Rows)
	act := func(columns int32) op.Ptr { return src.Buffer(rows * int64(columns) * limits.Activations.Bytes()) }
	w := &Workspace{
		Act:      limits.Activations,
		Residual: act(c.Hidden),
		Sum:      act(c.Hidden),
		Normed:   act(c.Hidden),
		X:        act(c.Hidden),
		QKV:      act((c.Heads + 2*c.KVHeads) * c.HeadDim),
		Mixed:    act(c.Heads * c.HeadDim),
		Angles:   src.Buffer(rows * int64(c.HeadDim) * op.F32.Bytes()),
		Up:       act(2 * c.Intermediate),
	}
	gated := c.Intermediate
	if m := mixture; m != nil {
		gated = max(gated, m.TopK*m.Intermediate)
		w.RouterLogits = act(m.Experts)
		w.ExpertIDs = src.Buffer(rows * int64(m.TopK) * op.I32.Bytes())
		w.ExpertWeights = src.Buffer(rows * int64(m.TopK) * op.F32.Bytes())
		w.ExpertOrder = src.Buffer(rows * int64(m.TopK) * op.I32.Bytes())
		w.ExpertStarts = src.Buffer(int64(m.Experts+1) * op.I32.Bytes())
	}
	w.Gated = act(gated)
	return w
}
