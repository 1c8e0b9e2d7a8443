package nn

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Decoder is the pre-norm transformer that Llama, Qwen3 and their kin share: h += attention(norm(h)); h += feed(norm(h)).
type Decoder struct {
	ops       Ops
	config    *Config
	embedding op.Weight
	head      op.Weight
	norm      op.Ptr // after the last layer
	rope      Rope
	layers    []Layer
	work      *Workspace
}

// Layer is one block of a Decoder.
type Layer struct {
	AttentionNorm op.Ptr
	Attention     Attention
	FeedNorm      op.Ptr
	Feed          FeedForward
}

// NewDecoder loads a decoder whose layers differ by attention options and by what feed makes for each.
func NewDecoder(ops Ops, src model.Source, c *Config, o AttentionOptions, mixture *MixtureConfig, limits model.Limits,
	feed func(layer int32, prefix string) FeedForward) *Decoder {
	d := &Decoder{
		ops:       ops,
		config:    c,
		embedding: src.Matrix(c.Hidden, model.Part{Name: "model.embed_tokens.weight", Rows: c.Vocab}),
		rope:      NewRope(src, &c.Rotary, c.HeadDim),
		norm:      src.Vector(model.Part{Name: "model.norm.weight", Rows: c.Hidden}),
		work:      NewWorkspace(src, c, mixture, limits),
	}
	for i := range c.Layers {
		prefix := fmt.Sprintf("model.layers.%d.", i)
		d.layers = append(d.layers, Layer{
			AttentionNorm: src.Vector(model.Part{Name: prefix + "input_layernorm.weight", Rows: c.Hidden}),
			Attention:     NewAttention(src, c, i, prefix+"self_attn.", o),
			FeedNorm:      src.Vector(model.Part{Name: prefix + "post_attention_layernorm.weight", Rows: c.Hidden}),
			Feed:          feed(i, prefix+"mlp."),
		})
	}
	d.head = d.embedding
	if !c.Tied {
		d.head = src.Matrix(c.Hidden, model.Part{Name: "lm_head.weight", Rows: c.Vocab})
	}
	return d
}

// Layout implements model.Model.
func (d *Decoder) Layout() model.Layout {
	kv := make([]model.KV, d.config.Layers)
	for i := range kv {
		kv[i] = model.KV{Heads: d.config.KVHeads, HeadDim: d.config.HeadDim}
	}
	return model.Layout{KV: kv, Vocab: d.config.Vocab, MaxContext: d.config.MaxPositions}
}

// Forward implements model.Model.
func (d *Decoder) Forward(q op.Stream, in *model.Inputs) {
	w := d.work
	d.ops.Embedding(q, op.Embedding{Out: w.Residual, IDs: in.Tokens, W: d.embedding, Rows: in.Rows})
	d.rope.Angles(d.ops, q, in, w.Angles)
	d.first(q, d.layers[0].AttentionNorm, in.Rows)
	for i := range d.layers {
		layer := &d.layers[i]
		layer.Attention.Forward(d.ops, q, in, in.Cache[i], d.rope, w)
		d.add(q, layer.FeedNorm, in.Rows)
		layer.Feed.Forward(q, in.Rows, w)
		d.add(q, d.normAfter(i), in.Rows)
	}
	if in.Outputs > 0 {
		d.ops.Logits(q, op.Logits{Out: in.Logits, In: w.X, Index: in.Index, W: d.head, Rows: in.Outputs, InRows: in.Rows})
	}
}

// normAfter is the norm that the next block reads through.
func (d *Decoder) normAfter(layer int) op.Ptr {
	if layer+1 < len(d.layers) {
		return d.layers[layer+1].AttentionNorm
	}
	return d.norm
}

// first normalises the residual as it is.
func (d *Decoder) first(q op.Stream, scale op.Ptr, rows int32) {
	d.ops.RMSNorm(q, op.RMSNorm{Out: d.work.X, In: d.work.Residual, Scale: scale, Rows: rows, Cols: d.config.Hidden, Eps: d.config.Eps})
}

// add adds a block's output to the residual and normalises the sum.
func (d *Decoder) add(q op.Stream, scale op.Ptr, rows int32) {
	d.ops.RMSNorm(q, op.RMSNorm{Out: d.work.X, In: d.work.X, Residual: d.work.Residual, Scale: scale, Rows: rows, Cols: d.config.Hidden, Eps: d.config.Eps})
}
