package nn

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Decoder is the pre-norm transformer that the Llama and Qwen families share. For each layer h += attention(norm(h)), then
// h += feed(norm(h)); the logits are head·norm(h).
type Decoder struct {
	ops       Ops
	config    *Config
	embedding op.Weight
	head      op.Weight
	norm      Norm // after the last layer
	rope      Rope
	layers    []Layer
	work      *Workspace
}

// Layer is an attention block and a feed-forward block, each with the norm that it reads the residual stream through.
type Layer struct {
	AttentionNorm Norm        // before Attention
	Attention     Attention   // mixes the rows of a sequence
	FeedNorm      Norm        // before Feed
	Feed          FeedForward // an MLP or a Mixture
}

// NewDecoder places the weights of a decoder. feed makes the feed-forward block of each layer, whose tensors have names that begin with
// prefix ("model.layers.0.mlp."). mixture is the shape of layers with experts, nil where there are none.
func NewDecoder(ops Ops, src model.Source, c *Config, o AttentionOptions, mixture *MixtureConfig, limits model.Limits,
	feed func(layer int32, prefix string) FeedForward) *Decoder {
	d := &Decoder{
		ops:       ops,
		config:    c,
		embedding: src.Matrix(c.Hidden, model.Part{Name: "model.embed_tokens.weight", Rows: c.Vocab}),
		rope:      NewRope(src, &c.Rotary),
		norm:      NewNorm(src, c, "model.norm.weight"),
		work:      NewWorkspace(src, c, mixture, limits),
	}
	for i := range c.Layers {
		prefix := fmt.Sprintf("model.layers.%d.", i)
		d.layers = append(d.layers, Layer{
			AttentionNorm: NewNorm(src, c, prefix+"input_layernorm.weight"),
			Attention:     NewAttention(src, c, i, prefix+"self_attn.", o),
			FeedNorm:      NewNorm(src, c, prefix+"post_attention_layernorm.weight"),
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
	memory := make([]model.Memory, d.config.Layers)
	for i := range memory {
		memory[i] = model.KeysAndValues(d.config.KVHeads, d.config.HeadDim)
	}
	return model.Layout{Memory: memory, Vocab: d.config.Vocab, MaxContext: d.config.MaxPositions}
}

// Forward implements model.Model.
func (d *Decoder) Forward(q op.Stream, in *model.Inputs) {
	w := *d.work // a copy, since fused kernels swap two of its buffers (see Workspace.Sum) and every step starts alike
	d.ops.Embedding(q, op.Embedding{Out: w.Residual, IDs: in.Tokens, W: d.embedding, Rows: in.Rows})
	d.rope.Angles(d.ops, q, in, w.Angles)
	for i := range d.layers {
		layer := &d.layers[i]
		layer.Attention.Forward(d.ops, q, in, in.Memory[i], d.rope, layer.AttentionNorm, &w)
		next := d.norm
		if i+1 < len(d.layers) {
			next = d.layers[i+1].AttentionNorm
		}
		layer.Feed.Forward(q, layer.FeedNorm, next, in.Rows, &w)
	}
	d.norm.Forward(d.ops, q, in.Rows, &w)
	if in.Outputs > 0 {
		d.ops.Logits(q, op.Logits{Out: in.Logits, In: w.Normed, Index: in.Index, W: d.head, Rows: in.Outputs, InRows: in.Rows})
	}
}
