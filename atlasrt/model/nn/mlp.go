package nn

import (
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// MLP is the gated feed-forward network: down(silu(gate(x))·up(x)).
type MLP struct {
	up, down Linear

	both  op.Ptr // act [Rows,2·Intermediate]: gate and up projection
	gated op.Ptr // act [Rows,Intermediate]: silu(gate)·up
}

// NewMLP places the dense network of one layer; prefix is "model.layers.0.mlp.".
func (b *Builder) NewMLP(prefix string) *MLP { return b.newMLP(prefix, b.config.Intermediate) }

func (b *Builder) newMLP(prefix string, intermediate int32) *MLP {
	c := b.config
	return &MLP{
		up: NewLinear(b.src, c.Hidden, c.MLPBias,
			model.Part{Name: prefix + "gate_proj", Rows: intermediate},
			model.Part{Name: prefix + "up_proj", Rows: intermediate}),
		down: NewLinear(b.src, intermediate, c.MLPBias, model.Part{Name: prefix + "down_proj", Rows: c.Hidden}),
	}
}

// Place implements Body.
func (m *MLP) Place(r *Room) {
	m.both = r.Act(m.up.rows)
	m.gated = r.Act(m.up.rows / 2)
}

// Forward implements Body.
func (m *MLP) Forward(_ op.Stream, _ *model.Inputs, h *Residual) {
	h.Gate(m.up, m.both, m.gated)
	h.Add(m.down, m.gated)
}
