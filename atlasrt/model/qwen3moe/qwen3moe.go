// Package qwen3moe is the Qwen3 family with a mixture of experts in place of some or all dense networks.
// Source: https://arxiv.org/abs/2505.09388.
package qwen3moe

import (
	"errors"

	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/model/nn"
)

// Config is a Qwen3-MoE's config.json.
type Config struct {
	nn.Config
	nn.MixtureConfig
}

// defaultExperts is num_experts where a config says nothing.
const defaultExperts = 128

// ReadConfig reads and checks a config.json, whose model type is qwen3_moe; file names it in errors. What it may leave out is as in Qwen3MoeConfig of
// transformers 5.24 (src/transformers/models/qwen3_moe/configuration_qwen3_moe.py), whose heads are hidden_size divided by
// num_attention_heads wide.
func ReadConfig(file string, data []byte, _ string) (*Config, error) {
	window, off := int32(4096), false
	return nn.Read(file, data, &Config{
		Config: nn.Config{
			Hidden: 2048, Layers: 24, Heads: 32, KVHeads: 4, Intermediate: 6144, Vocab: 151936, MaxPositions: 32768,
			Eps: 1e-6, Activation: "silu", Rotary: nn.Rotary{Theta: 10000},
			Windows: nn.SwitchedWindow, SlidingWindow: &window, UseSlidingWindow: &off,
			Inherent: map[string]string{"use_qk_norm": "true"},
		},
		MixtureConfig: nn.MixtureConfig{Experts: defaultExperts, TopK: 8, ExpertIntermediate: 768, SparseStep: 1},
	})
}

// Complete fills what a config may leave out and checks it.
func (c *Config) Complete() error {
	return errors.Join(c.MixtureConfig.Complete(defaultExperts, c.Layers), c.Config.Complete())
}

// New places the weights that src gives and returns the model. Errors stay in src.
func New(ops nn.Ops, src model.Source, c *Config, limits model.Limits) model.Model {
	options := nn.AttentionOptions{QKVBias: c.AttentionBias, OutBias: c.AttentionBias, QKNorm: true}
	b := nn.NewBuilder(ops, src, &c.Config, limits)
	return b.Decoder(func(layer int32, prefix string) []nn.Block {
		mixer := b.NewAttention(layer, prefix+"self_attn.", options)
		if c.Sparse(layer) {
			return b.PreNorm(prefix, mixer, b.NewMixture(&c.MixtureConfig, prefix+"mlp."))
		}
		return b.PreNorm(prefix, mixer, b.NewMLP(prefix+"mlp."))
	})
}
