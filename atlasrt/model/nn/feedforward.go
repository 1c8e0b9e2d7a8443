package nn

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// FeedForward is a block that works on each row by itself: h += feed(norm(h)), where h is the residual stream in w. next is the norm of
// the block behind it, which a fused kernel may compute as well.
type FeedForward interface {
	Forward(q op.Stream, norm, next Norm, rows int32, w *Workspace)
}

// MLP is the gated feed-forward network: down(silu(gate(x))·up(x)).
type MLP struct {
	ops          Ops
	up, down     Linear
	intermediate int32
}

// NewMLP places the dense network of one layer; prefix is "model.layers.0.mlp.".
func NewMLP(ops Ops, src model.Source, c *Config, prefix string) *MLP {
	return &MLP{
		ops: ops,
		up: NewLinear(src, c.Hidden, c.MLPBias,
			model.Part{Name: prefix + "gate_proj", Rows: c.Intermediate},
			model.Part{Name: prefix + "up_proj", Rows: c.Intermediate}),
		down:         NewLinear(src, c.Intermediate, c.MLPBias, model.Part{Name: prefix + "down_proj", Rows: c.Hidden}),
		intermediate: c.Intermediate,
	}
}

// Forward implements FeedForward.
func (m *MLP) Forward(q op.Stream, norm, _ Norm, rows int32, w *Workspace) {
	m.gate(q, norm, rows, w)
	m.down.ForwardAdded(m.ops, q, w.Gated, rows, w)
}

// gate leaves silu(gate(x))·up(x) in w.Gated, where x = norm(h). It tries kernels in this order: norm, product and gate in one launch;
// a norm, then product and gate in one; and each by itself.
func (m *MLP) gate(q op.Stream, norm Norm, rows int32, w *Workspace) {
	matrix, whole := m.up.whole()
	if whole {
		in, residual, sum := w.operands()
		if m.ops.GatedLinear(q, op.GatedLinear{Out: w.Gated, Sum: sum, In: in, Residual: residual, Scale: norm.scale, W: matrix, Rows: rows, Eps: norm.eps}) {
			w.added()
			return
		}
	}
	norm.Forward(m.ops, q, rows, w)
	if whole && m.ops.GatedLinear(q, op.GatedLinear{Out: w.Gated, In: w.Normed, W: matrix, Rows: rows}) {
		return
	}
	m.up.Forward(m.ops, q, w.Up, w.Normed, rows, w.Act)
	m.ops.SwiGLU(q, op.SwiGLU{Out: w.Gated, In: w.Up, Rows: rows, Cols: m.intermediate})
}

// Mixture is a mixture of gated experts chosen by a softmax router.
type Mixture struct {
	ops       MoEOps
	router    Linear
	up, down  op.Weight
	experts   int32
	topK      int32
	normalise int32
}

// MixtureConfig is the shape of a mixture.
type MixtureConfig struct {
	Experts      int32 // of a layer
	TopK         int32 // chosen for a row
	Intermediate int32 // columns of an expert's gate and of its up projection
	Normalise    bool  // the weights of a row's experts are divided by their sum
}

// NewMixture places the router and the experts of one layer; prefix is "model.layers.0.mlp.".
func NewMixture(ops MoEOps, src model.Source, hidden int32, c MixtureConfig, prefix string) *Mixture {
	m := &Mixture{
		ops:     ops,
		router:  NewLinear(src, hidden, false, model.Part{Name: prefix + "gate", Rows: c.Experts}),
		experts: c.Experts,
		topK:    c.TopK,
	}
	m.up = src.Experts(c.Experts, hidden, func(e int32) []model.Part {
		expert := fmt.Sprintf("%sexperts.%d.", prefix, e)
		return []model.Part{{Name: expert + "gate_proj.weight", Rows: c.Intermediate}, {Name: expert + "up_proj.weight", Rows: c.Intermediate}}
	})
	m.down = src.Experts(c.Experts, c.Intermediate, func(e int32) []model.Part {
		return []model.Part{{Name: fmt.Sprintf("%sexperts.%d.down_proj.weight", prefix, e), Rows: hidden}}
	})
	if c.Normalise {
		m.normalise = 1
	}
	return m
}

// Forward implements FeedForward.
func (m *Mixture) Forward(q op.Stream, norm, next Norm, rows int32, w *Workspace) {
	m.gate(q, norm, rows, w)
	if m.ops.ExpertDownNorm(q, op.ExpertDownNorm{
		Out: w.Residual, Normed: w.Normed, In: w.Gated, IDs: w.ExpertIDs, Weights: w.ExpertWeights, Order: w.ExpertOrder, Starts: w.ExpertStarts,
		Scale: next.scale, W: m.down, Rows: rows, TopK: m.topK, Eps: next.eps,
	}) {
		w.ready = true
		return
	}
	if m.ops.ExpertDownAdd(q, op.ExpertDownAdd{
		Out: w.Residual, In: w.Gated, IDs: w.ExpertIDs, Weights: w.ExpertWeights, Order: w.ExpertOrder, Starts: w.ExpertStarts,
		W: m.down, Rows: rows, TopK: m.topK,
	}) {
		return
	}
	m.ops.ExpertDown(q, op.ExpertDown{
		Out: w.X, In: w.Gated, IDs: w.ExpertIDs, Weights: w.ExpertWeights, Order: w.ExpertOrder, Starts: w.ExpertStarts,
		W: m.down, Rows: rows, TopK: m.topK,
	})
	w.apart = true
}

// gate routes each row to experts, and leaves silu(gate(x))·up(x) of each choice in w.Gated. It takes one launch where the kernel set has
// one for norm, router and experts together.
func (m *Mixture) gate(q op.Stream, norm Norm, rows int32, w *Workspace) {
	if router, whole := m.router.whole(); whole {
		in, residual, sum := w.operands()
		if m.ops.NormRouteUp(q, op.NormRouteUp{
			Out: w.Gated, Sum: sum, IDs: w.ExpertIDs, Weights: w.ExpertWeights, Order: w.ExpertOrder, Starts: w.ExpertStarts,
			In: in, Residual: residual, Scale: norm.scale, W: m.up, Router: router,
			Rows: rows, TopK: m.topK, Normalise: m.normalise, Routing: op.RouteSoftmax, Factor: 1, Eps: norm.eps,
		}) {
			w.added()
			return
		}
	}
	m.route(q, norm, rows, w)
	m.ops.ExpertUp(q, op.ExpertUp{Out: w.Gated, In: w.Normed, IDs: w.ExpertIDs, Order: w.ExpertOrder, Starts: w.ExpertStarts, W: m.up, Rows: rows, TopK: m.topK})
}

// route leaves the experts' input in w.Normed, and the choices of experts in the Expert lists of w.
func (m *Mixture) route(q op.Stream, norm Norm, rows int32, w *Workspace) {
	if matrix, whole := m.router.whole(); whole {
		in, residual, sum := w.operands()
		if m.ops.NormRoute(q, op.NormRoute{
			Normed: w.Normed, Sum: sum, IDs: w.ExpertIDs, Weights: w.ExpertWeights, Order: w.ExpertOrder, Starts: w.ExpertStarts,
			In: in, Residual: residual, Scale: norm.scale, W: matrix,
			Rows: rows, TopK: m.topK, Normalise: m.normalise, Routing: op.RouteSoftmax, Factor: 1, Eps: norm.eps,
		}) {
			w.added()
			return
		}
	}
	norm.Forward(m.ops, q, rows, w)
	m.router.Forward(m.ops, q, w.RouterLogits, w.Normed, rows, w.Act)
	m.ops.Route(q, op.Route{
		IDs: w.ExpertIDs, Weights: w.ExpertWeights, Order: w.ExpertOrder, Starts: w.ExpertStarts, Logits: w.RouterLogits,
		Rows: rows, Experts: m.experts, TopK: m.topK, Normalise: m.normalise, Routing: op.RouteSoftmax, Scale: 1,
	})
}
