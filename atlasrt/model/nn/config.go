// Package nn holds the parts that model families are made of. A part owns its weights and queues its launches; it owns
// no memory for activations, which come from a Workspace.
package nn

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Config is what the pre-norm decoders have in common, by the names of a HuggingFace config.json.
type Config struct {
	ModelType        string  `json:"model_type"`
	Hidden           int32   `json:"hidden_size"`
	Layers           int32   `json:"num_hidden_layers"`
	Heads            int32   `json:"num_attention_heads"`
	KVHeads          int32   `json:"num_key_value_heads"`
	HeadDim          int32   `json:"head_dim"`
	Intermediate     int32   `json:"intermediate_size"`
	Vocab            int32   `json:"vocab_size"`
	MaxPositions     int32   `json:"max_position_embeddings"`
	Eps              float32 `json:"rms_norm_eps"`
	Tied             bool    `json:"tie_word_embeddings"`
	Activation       string  `json:"hidden_act"`
	AttentionBias    bool    `json:"attention_bias"`
	MLPBias          bool    `json:"mlp_bias"`
	SlidingWindow    *int32  `json:"sliding_window"`
	UseSlidingWindow *bool   `json:"use_sliding_window"`
	MaxWindowLayers  int32   `json:"max_window_layers"`
	Rotary
}

// Read decodes a config.json into a family's config, which may hold defaults, and checks it.
func Read[C interface{ Complete() error }](data []byte, config C) (C, error) {
	err := json.Unmarshal(data, config)
	if err == nil {
		err = config.Complete()
	}
	if err != nil {
		err = fmt.Errorf("config.json: %w", err)
	}
	return config, err
}

// Complete fills what a config may leave out and checks every number that sizes depend on.
func (c *Config) Complete() error {
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	var errs []error
	within := func(name string, value, low, high int32) {
		if value < low || value > high {
			errs = append(errs, fmt.Errorf("%s is %d (it must be between %d and %d)", name, value, low, high))
		}
	}
	within("hidden_size", c.Hidden, 1, 1<<17)
	within("num_hidden_layers", c.Layers, 1, 4096)
	within("num_attention_heads", c.Heads, 1, 1<<12)
	within("num_key_value_heads", c.KVHeads, 1, max(c.Heads, 1))
	within("intermediate_size", c.Intermediate, 1, 1<<19)
	within("vocab_size", c.Vocab, 1, 1<<21)
	within("max_position_embeddings", c.MaxPositions, 1, 1<<27)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if c.HeadDim == 0 {
		if c.Hidden%c.Heads != 0 {
			errs = append(errs, fmt.Errorf("hidden_size %d is no multiple of num_attention_heads %d, and head_dim is not given", c.Hidden, c.Heads))
		}
		c.HeadDim = c.Hidden / c.Heads
	}
	within("head_dim", c.HeadDim, 2, 1024)
	if c.HeadDim%2 != 0 {
		errs = append(errs, fmt.Errorf("head_dim is %d (it must be even)", c.HeadDim))
	}
	if c.Heads%c.KVHeads != 0 {
		errs = append(errs, fmt.Errorf("num_attention_heads %d is no multiple of num_key_value_heads %d", c.Heads, c.KVHeads))
	}
	if !(c.Eps > 0 && c.Eps < 1) {
		errs = append(errs, fmt.Errorf("rms_norm_eps is %v (it must be between 0 and 1)", c.Eps))
	}
	if c.Activation != "" && c.Activation != "silu" {
		errs = append(errs, fmt.Errorf("hidden_act %q is not served by this family (silu is)", c.Activation))
	}
	if c.SlidingWindow != nil {
		within("sliding_window", *c.SlidingWindow, 1, 1<<27)
	}
	return errors.Join(errors.Join(errs...), c.Rotary.complete(c.HeadDim))
}

// Window is how many positions layer sees, itself included; 0 means all.
//
// Where use_sliding_window is given, the layers from max_window_layers on slide (qwen2, qwen3); otherwise all do (mistral).
func (c *Config) Window(layer int32) int32 {
	switch {
	case c.SlidingWindow == nil:
		return 0
	case c.UseSlidingWindow == nil:
		return *c.SlidingWindow
	case *c.UseSlidingWindow && layer >= c.MaxWindowLayers:
		return *c.SlidingWindow
	}
	return 0
}
