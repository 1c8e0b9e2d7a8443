package nn

import (
	"math"

	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Attention is grouped-query attention over the paged cache: several query heads share a key head and a value head.
// Source: Ainslie et al. 2023, https://arxiv.org/abs/2305.13245.
type Attention struct {
	qkv, out     Linear
	qNorm, kNorm op.Ptr
	heads, kv    int32
	headDim      int32
	window       int32
	scale, eps   float32
}

// AttentionOptions are what families differ in.
type AttentionOptions struct {
	QKVBias, OutBias bool // the projections have biases: of queries, keys and values; of the output
	QKNorm           bool // each query head and key head is normalised before it is rotated
}

// NewAttention loads the attention of one layer; prefix is "model.layers.0.self_attn.".
func NewAttention(src model.Source, c *Config, layer int32, prefix string, o AttentionOptions) Attention {
	a := Attention{
		qkv: NewLinear(src, c.Hidden, o.QKVBias,
			model.Part{Name: prefix + "q_proj", Rows: c.Heads * c.HeadDim},
			model.Part{Name: prefix + "k_proj", Rows: c.KVHeads * c.HeadDim},
			model.Part{Name: prefix + "v_proj", Rows: c.KVHeads * c.HeadDim}),
		out:     NewLinear(src, c.Heads*c.HeadDim, o.OutBias, model.Part{Name: prefix + "o_proj", Rows: c.Hidden}),
		heads:   c.Heads,
		kv:      c.KVHeads,
		headDim: c.HeadDim,
		window:  c.Window(layer),
		scale:   float32(1 / math.Sqrt(float64(c.HeadDim))),
		eps:     c.Eps,
	}
	if o.QKNorm {
		a.qNorm = src.Vector(model.Part{Name: prefix + "q_norm.weight", Rows: c.HeadDim})
		a.kNorm = src.Vector(model.Part{Name: prefix + "k_norm.weight", Rows: c.HeadDim})
	}
	return a
}

// Forward adds attention(norm(h)) to h, the residual stream in w. In this order: the projections of queries, keys and values, rotation by
// the step's w.Angles and the store to the cache, attention over the cache, and the output projection.
func (a *Attention) Forward(ops Ops, q op.Stream, in *model.Inputs, memory []op.Ptr, rope Rope, norm Norm, w *Workspace) {
	a.qkv.ForwardNormed(ops, q, w.QKV, norm, in.Rows, w)
	ops.RotaryCache(q, op.RotaryCache{
		QKV: w.QKV, K: memory[0], V: memory[1], Angles: w.Angles, Slots: in.Slots, QNorm: a.qNorm, KNorm: a.kNorm,
		Rows: in.Rows, QKVPitch: (a.heads + 2*a.kv) * a.headDim, Heads: a.heads, KVHeads: a.kv, HeadDim: a.headDim, Pairs: rope.Pairs,
		Blocks: in.Blocks, BlockSize: in.BlockSize, Pairing: op.PairHalf, KVType: in.KVType, Eps: a.eps,
	})
	model.BeginLive(q)
	ops.PagedAttention(q, op.PagedAttention{
		Out: w.Mixed, Q: w.QKV, K: memory[0], V: memory[1], Starts: in.Starts, Lengths: in.Lengths, Tables: in.Tables,
		Rows: in.Rows, QPitch: (a.heads + 2*a.kv) * a.headDim, Seqs: in.Seqs, MaxBlocks: in.MaxBlocks,
		Heads: a.heads, KVHeads: a.kv, HeadDim: a.headDim, Blocks: in.Blocks, BlockSize: in.BlockSize,
		Window: a.window, KVType: in.KVType, Scale: a.scale,
	})
	model.EndLive(q)
	a.out.ForwardAdded(ops, q, w.Mixed, in.Rows, w)
}
