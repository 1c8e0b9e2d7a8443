// Package qwen3next is the hybrid Qwen family: Qwen3-Next, and Qwen3.5 and its successors of the same shape. Most layers are gated delta nets,
// which keep a state of one size, and every fourth is attention with an output gate. Source: the configs and weights that Qwen publishes.
package qwen3next

import (
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/model/nn"
)

// New places the weights that src gives and returns the model. Errors stay in src.
func New(ops nn.Ops, src model.Source, c *Config, limits model.Limits) model.Model {
	options := nn.AttentionOptions{QKVBias: c.AttentionBias, OutBias: c.AttentionBias, QKNorm: true, Gated: true}
	b := nn.NewBuilder(ops, src, &c.Config, limits)
	return b.Decoder(func(layer int32, prefix string) []nn.Block {
		var mixer nn.Mixer
		if c.recurrent(layer) {
			mixer = b.NewDeltaNet(&c.DeltaNetConfig, prefix+"linear_attn.")
		} else {
			mixer = b.NewAttention(layer, prefix+"self_attn.", options)
		}
		if m := c.mixture; m != nil && m.Sparse(layer) {
			return b.PreNorm(prefix, mixer, b.NewMixture(m, prefix+"mlp."))
		}
		return b.PreNorm(prefix, mixer, b.NewMLP(prefix+"mlp."))
	})
}
