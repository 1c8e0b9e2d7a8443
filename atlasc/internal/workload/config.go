// Package workload lists the calls that a model makes, from its config.json, and the bytes that a call must move.
//
// It knows sizes only: of the families that share one decoder, dense or with experts. What a call needs besides its
// struct (how long the sequences are, how many experts are chosen) is an estimate that says so.
package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Config is what of a config.json decides the sizes of calls.
type Config struct {
	ModelType          string  `json:"model_type"`
	Hidden             int64   `json:"hidden_size"`
	Layers             int64   `json:"num_hidden_layers"`
	Heads              int64   `json:"num_attention_heads"`
	KVHeads            int64   `json:"num_key_value_heads"`
	HeadDim            int64   `json:"head_dim"`
	Intermediate       int64   `json:"intermediate_size"`
	Vocab              int64   `json:"vocab_size"`
	Experts            int64   `json:"num_experts"`
	LocalExperts       int64   `json:"num_local_experts"`
	TopK               int64   `json:"num_experts_per_tok"`
	ExpertIntermediate int64   `json:"moe_intermediate_size"`
	SparseStep         int64   `json:"decoder_sparse_step"`
	DenseLayers        []int64 `json:"mlp_only_layers"`
}

// Families are the model types whose calls are known.
var families = []string{"llama", "mistral", "qwen2", "qwen3", "qwen3_moe"}

// Read decodes and checks a config.json.
func Read(data []byte) (*Config, error) {
	c := &Config{SparseStep: 1}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	if !slices.Contains(families, c.ModelType) {
		return nil, fmt.Errorf("config.json: the calls of model_type %q are not known (known: %v)", c.ModelType, families)
	}
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.Experts == 0 {
		c.Experts = c.LocalExperts
	}
	if c.HeadDim == 0 && c.Heads > 0 {
		c.HeadDim = c.Hidden / c.Heads
	}
	var errs []error
	within := func(name string, value, low, high int64) {
		if value < low || value > high {
			errs = append(errs, fmt.Errorf("config.json: %s is %d (it must be between %d and %d)", name, value, low, high))
		}
	}
	within("hidden_size", c.Hidden, 1, 1<<17)
	within("num_hidden_layers", c.Layers, 1, 4096)
	within("num_attention_heads", c.Heads, 1, 1<<12)
	within("num_key_value_heads", c.KVHeads, 1, max(c.Heads, 1))
	within("head_dim", c.HeadDim, 2, 1024)
	within("vocab_size", c.Vocab, 1, 1<<21)
	within("decoder_sparse_step", c.SparseStep, 1, 4096)
	within("num_experts", c.Experts, 0, 1<<14)
	if c.Experts > 0 {
		within("num_experts_per_tok", c.TopK, 1, min(c.Experts, 64))
		within("moe_intermediate_size", c.ExpertIntermediate, 1, 1<<19)
	}
	if c.Experts == 0 || len(c.DenseLayers) > 0 || c.SparseStep > 1 {
		within("intermediate_size", c.Intermediate, 1, 1<<19)
	}
	return c, errors.Join(errs...)
}

// sparseLayers counts the layers with experts.
func (c *Config) sparseLayers() int64 {
	n := int64(0)
	for layer := range c.Layers {
		if c.Experts > 0 && !slices.Contains(c.DenseLayers, layer) && (layer+1)%c.SparseStep == 0 {
			n++
		}
	}
	return n
}
