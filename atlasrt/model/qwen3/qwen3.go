// Package qwen3 is the dense Qwen3 family: a Llama whose query and key heads are normalised before they turn.
// Source: https://arxiv.org/abs/2505.09388.
package qwen3

import (
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/model/nn"
)

// Config is a Qwen3's config.json.
type Config struct{ nn.Config }

// ReadConfig reads and checks a config.json.
func ReadConfig(data []byte) (*Config, error) { return nn.Read(data, &Config{}) }

// New loads a model.
func New(ops nn.Ops, src model.Source, c *Config, limits model.Limits) model.Model {
	options := nn.AttentionOptions{QKVBias: c.AttentionBias, OutBias: c.AttentionBias, QKNorm: true}
	return nn.NewDecoder(ops, src, &c.Config, options, nil, limits, func(_ int32, prefix string) nn.FeedForward {
		return nn.NewMLP(ops, src, &c.Config, prefix)
	})
}
