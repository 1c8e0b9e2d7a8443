// Package llama is the Llama family, and two families that differ from it by their config alone: Mistral (a sliding window) and
// Qwen2 (biases on queries, keys and values). Source: Touvron et al. 2023, https://arxiv.org/abs/2302.13971.
package llama

import (
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/model/nn"
)

// Config is a Llama's config.json.
type Config struct{ nn.Config }

// ReadConfig reads and checks a config.json of a model type; file names it in errors.
func ReadConfig(file string, data []byte, modelType string) (*Config, error) {
	return nn.Read(file, data, &Config{defaults(modelType)})
}

// New places the weights that src gives and returns the model. Errors stay in src.
func New(ops nn.Ops, src model.Source, c *Config, limits model.Limits) model.Model {
	options := nn.AttentionOptions{
		QKVBias: c.AttentionBias || c.ModelType == "qwen2",
		OutBias: c.AttentionBias && c.ModelType != "qwen2",
	}
	b := nn.NewBuilder(ops, src, &c.Config, limits)
	return b.Decoder(func(layer int32, prefix string) []nn.Block {
		return b.PreNorm(prefix, b.NewAttention(layer, prefix+"self_attn.", options), b.NewMLP(prefix+"mlp."))
	})
}
