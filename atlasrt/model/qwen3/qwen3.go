// Package qwen3 is the dense Qwen3 family: a Llama whose query and key heads are normalised before they turn.
// Source: https://arxiv.org/abs/2505.09388.
package qwen3

import (
	"errors"

	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/model/nn"
)

// Config is a Qwen3's config.json.
type Config struct{ nn.Config }

// ReadConfig reads and checks a config.json, whose model type is qwen3; file names it in errors. What it may leave out is as in Qwen3Config of
// transformers 5.24 (src/transformers/models/qwen3/configuration_qwen3.py). A head_dim of null is refused, as it is there.
func ReadConfig(file string, data []byte, _ string) (*Config, error) {
	window, off := int32(4096), false
	return nn.Read(file, data, &Config{nn.Config{
		Hidden: 4096, Layers: 32, Heads: 32, KVHeads: 32, HeadDim: 128, Intermediate: 22016, Vocab: 151936, MaxPositions: 32768,
		Eps: 1e-6, Activation: "silu", Rotary: nn.Rotary{Theta: 10000},
		Windows: nn.LaterWindows, SlidingWindow: &window, UseSlidingWindow: &off, MaxWindowLayers: 28,
		Inherent: map[string]string{"use_qk_norm": "true"},
	}})
}

// Complete fills what a config may leave out and checks it.
func (c *Config) Complete() error {
	if c.HeadDim == 0 {
		return errors.New("head_dim is null or 0 (give a number, or leave it out for 128)")
	}
	return c.Config.Complete()
}

// New places the weights that src gives and returns the model. Errors stay in src.
func New(ops nn.Ops, src model.Source, c *Config, limits model.Limits) model.Model {
	options := nn.AttentionOptions{QKVBias: c.AttentionBias, OutBias: c.AttentionBias, QKNorm: true}
	b := nn.NewBuilder(ops, src, &c.Config, limits)
	return b.Decoder(func(layer int32, prefix string) []nn.Block {
		return b.PreNorm(prefix, b.NewAttention(layer, prefix+"self_attn.", options), b.NewMLP(prefix+"mlp."))
	})
}
