package nn

import (
	"math"

	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Attention is grouped-query attention over the paged cache: several query heads share a key head and a value head.
// Source: Ainslie et al. 2023, https://arxiv.org/abs/2305.13245.
type Attention struct {
	ops          Ops
	rope         *Rope
	act          op.DType
	in, out      Linear
	qNorm, kNorm op.Ptr
	heads, kv    int32
	headDim      int32
	window       int32
	gated        bool
	scale, eps   float32

	number int    // in Inputs.Memory
	row    op.Ptr // act [Rows,in.rows]: queries, keys, values, and gates where there are any
	mixed  op.Ptr // act [Rows,heads·headDim]: what attention gives
}

// AttentionOptions are what families differ in.
type AttentionOptions struct {
	QKVBias, OutBias bool // the projections have biases: of queries, keys and values; of the output
	QKNorm           bool // each query head and key head is normalised before it is rotated
	Gated            bool // what attention gives is multiplied by a sigmoid; the rows of q_proj are those of each head's query and then of its gate
}

// NewAttention loads the attention of one layer; prefix is "model.layers.0.self_attn.".
func (b *Builder) NewAttention(layer int32, prefix string, o AttentionOptions) *Attention {
	c := b.config
	queries := model.Part{Name: prefix + "q_proj", Rows: c.Heads * c.HeadDim}
	gates := queries
	if o.Gated {
		queries.From = model.Pattern{First: 0, Each: c.HeadDim, Every: 2 * c.HeadDim}
		gates.From = model.Pattern{First: c.HeadDim, Each: c.HeadDim, Every: 2 * c.HeadDim}
	}
	parts := []model.Part{queries, {Name: prefix + "k_proj", Rows: c.KVHeads * c.HeadDim}, {Name: prefix + "v_proj", Rows: c.KVHeads * c.HeadDim}}
	if o.Gated {
		parts = append(parts, gates)
	}
	a := &Attention{
		ops:     b.ops,
		rope:    b.rope,
		act:     b.limits.Activations,
		in:      NewLinear(b.src, c.Hidden, o.QKVBias, parts...),
		out:     NewLinear(b.src, c.Heads*c.HeadDim, o.OutBias, model.Part{Name: prefix + "o_proj", Rows: c.Hidden}),
		gated:   o.Gated,
		heads:   c.Heads,
		kv:      c.KVHeads,
		headDim: c.HeadDim,
		window:  c.Window(layer),
		scale:   float32(1 / math.Sqrt(float64(c.HeadDim))),
		eps:     c.Eps,
	}
	if o.QKNorm {
		a.qNorm = b.src.Vector(model.Part{Name: prefix + "q_norm.weight", Rows: c.HeadDim, Plus: c.NormOffset})
		a.kNorm = b.src.Vector(model.Part{Name: prefix + "k_norm.weight", Rows: c.HeadDim, Plus: c.NormOffset})
	}
	return a
}

// Keep implements Mixer.
func (a *Attention) Keep(number int) model.Memory {
	a.number = number
	return model.KeysAndValues(a.kv, a.headDim)
}

// Place implements Body.
func (a *Attention) Place(r *Room) {
	a.row = r.Act(a.in.rows)
	a.mixed = r.Act(a.heads * a.headDim)
}

// Store implements Storer: the projections of queries, keys and values, rotation by the step's angles and the store to the cache.
func (a *Attention) Store(q op.Stream, in *model.Inputs, h *Residual) {
	keys, values := in.Memory[a.number][0], in.Memory[a.number][1]
	h.Project(a.in, a.row)
	a.ops.RotaryCache(q, op.RotaryCache{
		QKV: a.row, K: keys, V: values, Angles: a.rope.angles, Slots: in.Slots, QNorm: a.qNorm, KNorm: a.kNorm,
		Rows: in.Rows, QKVPitch: a.in.rows, Heads: a.heads, KVHeads: a.kv, HeadDim: a.headDim, Pairs: a.rope.pairs,
		Blocks: in.Blocks, BlockSize: in.BlockSize, Pairing: op.PairHalf, KVType: in.KVType, Eps: a.eps,
	})
}

// Forward implements Body. In this order: what Store does, attention over the cache, its gate where there is one, and the output projection.
func (a *Attention) Forward(q op.Stream, in *model.Inputs, h *Residual) {
	keys, values := in.Memory[a.number][0], in.Memory[a.number][1]
	a.Store(q, in, h)
	model.BeginLive(q)
	a.ops.PagedAttention(q, op.PagedAttention{
		Out: a.mixed, Q: a.row, K: keys, V: values, Starts: in.Starts, Lengths: in.Lengths, Tables: in.Tables,
		Rows: in.Rows, QPitch: a.in.rows, Seqs: in.Seqs, MaxBlocks: in.MaxBlocks,
		Heads: a.heads, KVHeads: a.kv, HeadDim: a.headDim, Blocks: in.Blocks, BlockSize: in.BlockSize,
		Window: a.window, KVType: in.KVType, Scale: a.scale,
	})
	model.EndLive(q)
	if a.gated {
		gates := a.row + op.Ptr(int64(a.heads+2*a.kv)*int64(a.headDim)*a.act.Bytes())
		a.ops.SigmoidGate(q, op.SigmoidGate{Out: a.mixed, In: a.mixed, Gate: gates, Rows: in.Rows, Cols: a.heads * a.headDim, GatePitch: a.in.rows})
	}
	h.Add(a.out, a.mixed)
}
