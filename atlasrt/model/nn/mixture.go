package nn

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Mixture is a mixture of gated experts chosen by a softmax router, and perhaps a shared expert that every row has, times the sigmoid of a
// gate. A shared expert that is like the others is one more of them, which the router picks for every row; any other is a network beside them.
type Mixture struct {
	ops       Ops
	act       op.DType
	router    Linear
	up, down  op.Weight
	topK      int32 // picks of a row, a shared expert among them
	rides     int32 // 1: the last expert is shared
	normalise int32
	beside    *MLP   // nil: no shared expert stands beside the others
	gate      Linear // of beside

	logits    op.Ptr // act [Rows,Experts]: what the router gives
	ids       op.Ptr // i32 [Rows,TopK]: see op.Route, also for those below
	weights   op.Ptr // f32 [Rows,TopK]
	order     op.Ptr // i32 [Rows·TopK]
	starts    op.Ptr // i32 [Experts+1]
	gated     op.Ptr // act [Rows·TopK,ExpertIntermediate]: silu(gate)·up of each choice
	shared    op.Ptr // act [Rows,Hidden]: what beside gives
	gateLogit op.Ptr // act [Rows]: what gate gives
}

// NewMixture places the router and the experts of one layer; prefix is "model.layers.0.mlp.".
func (b *Builder) NewMixture(c *MixtureConfig, prefix string) *Mixture {
	m := &Mixture{ops: b.ops, act: b.limits.Activations, topK: c.TopK, normalise: flag(c.Normalise)}
	experts, router := c.Experts, []model.Part{{Name: prefix + "gate", Rows: c.Experts}}
	gate := model.Part{Name: prefix + "shared_expert_gate", Rows: 1}
	switch {
	case b.rides(c, prefix):
		m.topK, m.rides, experts, router = c.TopK+1, 1, c.Experts+1, append(router, gate)
	case c.Shared > 0:
		m.beside = b.newMLP(prefix+"shared_expert.", c.Shared)
		m.gate = NewLinear(b.src, b.config.Hidden, false, gate)
	}
	m.router = NewLinear(b.src, b.config.Hidden, false, router...)
	m.up = b.src.Experts(experts, b.config.Hidden, func(e int32) []model.Part {
		expert := c.expert(prefix, e)
		return []model.Part{{Name: expert + "gate_proj.weight", Rows: c.ExpertIntermediate}, {Name: expert + "up_proj.weight", Rows: c.ExpertIntermediate}}
	})
	m.down = b.src.Experts(experts, c.ExpertIntermediate, func(e int32) []model.Part {
		return []model.Part{{Name: c.expert(prefix, e) + "down_proj.weight", Rows: b.config.Hidden}}
	})
	return m
}

// expert is how the names of an expert's tensors begin. The shared one comes after the others.
func (c *MixtureConfig) expert(prefix string, e int32) string {
	if e == c.Experts {
		return prefix + "shared_expert."
	}
	return fmt.Sprintf("%sexperts.%d.", prefix, e)
}

// rides tells whether there is a shared expert that is as large as the others and stored as they are.
func (b *Builder) rides(c *MixtureConfig, prefix string) bool {
	if c.Shared != c.ExpertIntermediate {
		return false
	}
	for _, matrix := range []string{"gate_proj.weight", "up_proj.weight", "down_proj.weight"} {
		if b.src.Scheme(c.expert(prefix, 0)+matrix) != b.src.Scheme(c.expert(prefix, c.Experts)+matrix) {
			return false
		}
	}
	return true
}

// Place implements Body.
func (m *Mixture) Place(r *Room) {
	m.logits = r.Act(m.router.rows)
	m.ids = r.Words(m.topK)
	m.weights = r.Words(m.topK)
	m.order = r.Words(m.topK)
	m.starts = r.List(m.up.Count + 1)
	m.gated = r.Act(m.topK * m.up.Rows / 2)
	if m.beside != nil {
		m.beside.Place(r)
		m.shared = r.Act(m.beside.down.rows)
		m.gateLogit = r.Act(1)
	}
}

// Forward implements Body.
func (m *Mixture) Forward(q op.Stream, in *model.Inputs, h *Residual) {
	m.choose(q, in.Rows, h)
	if m.beside != nil {
		m.addShared(q, in.Rows, h)
	}
	h.AddExperts(op.ExpertDown{In: m.gated, IDs: m.ids, Weights: m.weights, Order: m.order, Starts: m.starts, W: m.down, TopK: m.topK})
}

// choose routes each row to experts, and leaves silu(gate(x))·up(x) of each choice in m.gated. It takes one launch where the kernel set has
// one for norm, router and experts together.
func (m *Mixture) choose(q op.Stream, rows int32, h *Residual) {
	router, whole := m.router.whole()
	if whole && h.RouteUp(op.NormRouteUp{
		Out: m.gated, IDs: m.ids, Weights: m.weights, Order: m.order, Starts: m.starts, W: m.up, Router: router,
		TopK: m.topK, Shared: m.rides, Normalise: m.normalise, Routing: op.RouteSoftmax, Factor: 1,
	}) {
		return
	}
	if !whole || !h.Route(op.NormRoute{
		IDs: m.ids, Weights: m.weights, Order: m.order, Starts: m.starts, W: router,
		TopK: m.topK, Shared: m.rides, Normalise: m.normalise, Routing: op.RouteSoftmax, Factor: 1,
	}) {
		m.router.Forward(m.ops, q, m.logits, h.Normed(), rows, m.act)
		m.ops.Route(q, op.Route{
			IDs: m.ids, Weights: m.weights, Order: m.order, Starts: m.starts, Logits: m.logits,
			Rows: rows, Experts: m.router.rows, TopK: m.topK, Shared: m.rides, Normalise: m.normalise, Routing: op.RouteSoftmax, Scale: 1,
		})
	}
	m.ops.ExpertUp(q, op.ExpertUp{Out: m.gated, In: h.Normed(), IDs: m.ids, Order: m.order, Starts: m.starts, W: m.up, Rows: rows, TopK: m.topK})
}

// addShared adds the shared expert that stands beside the others.
func (m *Mixture) addShared(q op.Stream, rows int32, h *Residual) {
	m.gate.Forward(m.ops, q, m.gateLogit, h.Normed(), rows, m.act)
	h.Gate(m.beside.up, m.beside.both, m.beside.gated)
	m.beside.down.Forward(m.ops, q, m.shared, m.beside.gated, rows, m.act)
	h.AddGated(m.shared, m.gateLogit)
}
