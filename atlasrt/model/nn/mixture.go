package nn

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Mixture is a mixture of gated experts chosen by a softmax router.
type Mixture struct {
	ops       Ops
	act       op.DType
	router    Linear
	up, down  op.Weight
	topK      int32
	normalise int32

	logits  op.Ptr // act [Rows,Experts]: what the router gives
	ids     op.Ptr // i32 [Rows,TopK]: see op.Route, also for those below
	weights op.Ptr // f32 [Rows,TopK]
	order   op.Ptr // i32 [Rows·TopK]
	starts  op.Ptr // i32 [Experts+1]
	gated   op.Ptr // act [Rows·TopK,Intermediate]: silu(gate)·up of each choice
}

// MixtureConfig is the shape of a mixture.
type MixtureConfig struct {
	Experts      int32 // of a layer
	TopK         int32 // chosen for a row
	Intermediate int32 // columns of an expert's gate and of its up projection
	Normalise    bool  // the weights of a row's experts are divided by their sum
}

// NewMixture places the router and the experts of one layer; prefix is "model.layers.0.mlp.".
func (b *Builder) NewMixture(c MixtureConfig, prefix string) *Mixture {
	hidden := b.config.Hidden
	m := &Mixture{
		ops:    b.ops,
		act:    b.limits.Activations,
		router: NewLinear(b.src, hidden, false, model.Part{Name: prefix + "gate", Rows: c.Experts}),
		topK:   c.TopK,
	}
	m.up = b.src.Experts(c.Experts, hidden, func(e int32) []model.Part {
		expert := fmt.Sprintf("%sexperts.%d.", prefix, e)
		return []model.Part{{Name: expert + "gate_proj.weight", Rows: c.Intermediate}, {Name: expert + "up_proj.weight", Rows: c.Intermediate}}
	})
	m.down = b.src.Experts(c.Experts, c.Intermediate, func(e int32) []model.Part {
		return []model.Part{{Name: fmt.Sprintf("%sexperts.%d.down_proj.weight", prefix, e), Rows: hidden}}
	})
	if c.Normalise {
		m.normalise = 1
	}
	return m
}

// Place implements Body.
func (m *Mixture) Place(r *Room) {
	m.logits = r.Act(m.router.rows)
	m.ids = r.Words(m.topK)
	m.weights = r.Words(m.topK)
	m.order = r.Words(m.topK)
	m.starts = r.List(m.up.Count + 1)
	m.gated = r.Act(m.topK * m.up.Rows / 2)
}

// Forward implements Body.
func (m *Mixture) Forward(q op.Stream, in *model.Inputs, h *Residual) {
	m.gate(q, in.Rows, h)
	h.AddExperts(op.ExpertDown{In: m.gated, IDs: m.ids, Weights: m.weights, Order: m.order, Starts: m.starts, W: m.down, TopK: m.topK})
}

// gate routes each row to experts, and leaves silu(gate(x))·up(x) of each choice in m.gated. It takes one launch where the kernel set has
// one for norm, router and experts together.
func (m *Mixture) gate(q op.Stream, rows int32, h *Residual) {
	router, whole := m.router.whole()
	if whole && h.RouteUp(op.NormRouteUp{
		Out: m.gated, IDs: m.ids, Weights: m.weights, Order: m.order, Starts: m.starts, W: m.up, Router: router,
		TopK: m.topK, Normalise: m.normalise, Routing: op.RouteSoftmax, Factor: 1,
	}) {
		return
	}
	if !whole || !h.Route(op.NormRoute{
		IDs: m.ids, Weights: m.weights, Order: m.order, Starts: m.starts, W: router,
		TopK: m.topK, Normalise: m.normalise, Routing: op.RouteSoftmax, Factor: 1,
	}) {
		m.router.Forward(m.ops, q, m.logits, h.Normed(), rows, m.act)
		m.ops.Route(q, op.Route{
			IDs: m.ids, Weights: m.weights, Order: m.order, Starts: m.starts, Logits: m.logits,
			Rows: rows, Experts: m.router.rows, TopK: m.topK, Normalise: m.normalise, Routing: op.RouteSoftmax, Scale: 1,
		})
	}
	m.ops.ExpertUp(q, op.ExpertUp{Out: m.gated, In: h.Normed(), IDs: m.ids, Order: m.order, Starts: m.starts, W: m.up, Rows: rows, TopK: m.topK})
}
