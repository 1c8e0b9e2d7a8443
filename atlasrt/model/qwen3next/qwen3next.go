// Package qwen3next is the hybrid Qwen family: Qwen3-Next, and Qwen3.5 and its successors of the same shape. Most layers are gated delta nets,
// which keep a state of one size, and every fourth is attention with an output gate. Source: the configs and weights that Qwen publishes.
package qwen3next

import (
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/model/nn"
)

// New places the weights that src gives and returns the model. Errors stay in src.
func New(ops nn.Ops, src model.Source, c *Config, limits model.Limits) model.Model {
	return c.decoder(nn.NewBuilder(ops, src, &c.Config, limits))
}

// NewDrafting is New for a model that drafts with the head of its checkpoint: the tokens of draftable, which are in order, alone, or all where
// it is nil. The drafter is nil where there is no head.
func NewDrafting(ops nn.DraftOps, src model.Source, c *Config, limits model.Limits, draftable []int32) (model.Model, model.Drafter) {
	b := nn.NewBuilder(ops, src, &c.Config, limits)
	d := c.decoder(b)
	if !src.Has(HeadTensor) {
		return d, nil
	}
	names := nn.MTPNames{EmbeddingNorm: "mtp.pre_fc_norm_embedding.weight", HiddenNorm: "mtp.pre_fc_norm_hidden.weight", Join: headJoin, Norm: "mtp.norm.weight",
		Head: "mtp.lm_head.weight"}
	const prefix, layer = "mtp.layers.0.", 0
	return d, b.NewMTP(ops, d, names, draftable, b.PreNorm(prefix, c.attention(b, layer, prefix), c.feed(b, c.mixture != nil, prefix)))
}

// headJoin is the matrix that every head has, whatever its layer is.
const headJoin = "mtp.fc"

// HeadTensor is a tensor that every checkpoint with a head has, and none without.
const HeadTensor = headJoin + ".weight"

func (c *Config) decoder(b *nn.Builder) *nn.Decoder {
	return b.Decoder(func(layer int32, prefix string) []nn.Block {
		var mixer nn.Mixer
		if c.recurrent(layer) {
			mixer = b.NewDeltaNet(&c.DeltaNetConfig, prefix+"linear_attn.")
		} else {
			mixer = c.attention(b, layer, prefix)
		}
		return b.PreNorm(prefix, mixer, c.feed(b, c.mixture != nil && c.mixture.Sparse(layer), prefix))
	})
}

func (c *Config) attention(b *nn.Builder, layer int32, prefix string) nn.Mixer {
	options := nn.AttentionOptions{QKVBias: c.AttentionBias, OutBias: c.AttentionBias, QKNorm: true, Gated: true}
	return b.NewAttention(layer, prefix+"self_attn.", options)
}

func (c *Config) feed(b *nn.Builder, sparse bool, prefix string) nn.Body {
	if sparse {
		return b.NewMixture(c.mixture, prefix+"mlp.")
	}
	return b.NewMLP(prefix + "mlp.")
}
