// Package qwen3moe is the Qwen3 family with a mixture of experts in place of some or all dense networks.
// Source: https://arxiv.org/abs/2505.09388.
package qwen3moe

import (
	"errors"
	"fmt"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/model/nn"
)

// Config is a Qwen3-MoE's config.json.
type Config struct {
	nn.Config
	Experts            int32   `json:"num_experts"`                 // of each layer that has any
	LocalExperts       *int32  `json:"num_local_experts"`           // the newer name of num_experts
	TopK               int32   `json:"num_experts_per_tok"`         // experts that the router chooses for a row
	ExpertIntermediate int32   `json:"moe_intermediate_size"`       // columns of an expert's gate and of its up projection
	Normalise          bool    `json:"norm_topk_prob" null:"false"` // the weights of the chosen experts are divided by their sum
	SparseStep         int32   `json:"decoder_sparse_step"`         // every so many layers one has experts
	DenseLayers        []int32 `json:"mlp_only_layers"`             // layers that have none all the same, counted from 0
}

// defaultExperts is num_experts where a config says nothing.
const defaultExperts = 128

// ReadConfig reads and checks a config.json; file names it in errors. What it may leave out is as in Qwen3MoeConfig of
// transformers 5.24 (src/transformers/models/qwen3_moe/configuration_qwen3_moe.py), whose heads are hidden_size divided by
// num_attention_heads wide.
func ReadConfig(file string, data []byte) (*Config, error) {
	window, off := int32(4096), false
	return nn.Read(file, data, &Config{
		Config: nn.Config{
			Hidden: 2048, Layers: 24, Heads: 32, KVHeads: 4, Intermediate: 6144, Vocab: 151936, MaxPositions: 32768,
			Eps: 1e-6, Activation: "silu", Rotary: nn.Rotary{Theta: 10000},
			Windows: nn.SwitchedWindow, SlidingWindow: &window, UseSlidingWindow: &off,
			Inherent: map[string]string{"use_qk_norm": "true"},
		},
		Experts: defaultExperts, TopK: 8, ExpertIntermediate: 768, SparseStep: 1,
	})
}

// Complete fills what a config may leave out and checks it.
func (c *Config) Complete() error {
	var errs []error
	if n := c.LocalExperts; n != nil {
		if c.Experts != defaultExperts && c.Experts != *n {
			errs = append(errs, fmt.Errorf("num_experts is %d and num_local_experts, its other name, %d", c.Experts, *n))
		}
		c.Experts = *n
	}
	if c.Experts < 1 || c.Experts > 1<<14 {
		errs = append(errs, fmt.Errorf("num_experts is %d (it must be between 1 and %d)", c.Experts, 1<<14))
	}
	if c.TopK < 1 || c.TopK > min(c.Experts, 64) {
		errs = append(errs, fmt.Errorf("num_experts_per_tok is %d (it must be between 1 and %d)", c.TopK, min(c.Experts, 64)))
	}
	if c.ExpertIntermediate < 1 || c.ExpertIntermediate > 1<<19 {
		errs = append(errs, fmt.Errorf("moe_intermediate_size is %d (it must be between 1 and %d)", c.ExpertIntermediate, 1<<19))
	}
	if c.SparseStep < 1 {
		errs = append(errs, fmt.Errorf("decoder_sparse_step is %d (it must be at least 1)", c.SparseStep))
	}
	return errors.Join(append(errs, c.Config.Complete())...)
}

// sparse tells which layers have experts.
func (c *Config) sparse(layer int32) bool {
	return !slices.Contains(c.DenseLayers, layer) && (layer+1)%c.SparseStep == 0
}

// New places the weights that src gives and returns the model. Errors stay in src.
func New(ops nn.Ops, src model.Source, c *Config, limits model.Limits) model.Model {
	mixture := nn.MixtureConfig{Experts: c.Experts, TopK: c.TopK, Intermediate: c.ExpertIntermediate, Normalise: c.Normalise}
	options := nn.AttentionOptions{QKVBias: c.AttentionBias, OutBias: c.AttentionBias, QKNorm: true}
	b := nn.NewBuilder(ops, src, &c.Config, limits)
	return b.Decoder(func(layer int32, prefix string) []nn.Block {
		mixer := b.NewAttention(layer, prefix+"self_attn.", options)
		if c.sparse(layer) {
			return b.PreNorm(prefix, mixer, b.NewMixture(mixture, prefix+"mlp."))
		}
		return b.PreNorm(prefix, mixer, b.NewMLP(prefix+"mlp."))
	})
}
