// Package nn holds the parts that model families are made of. A part owns its weights and queues its launches; it owns
// no memory for activations, which come from a Workspace.
package nn

import (
	"errors"
	"fmt"
)

// Config is what the pre-norm decoders have in common, by the names of a HuggingFace config.json. The tag `null` is what
// null means where a class allows it.
type Config struct {
	ModelType        string   `json:"model_type"`
	Hidden           int32    `json:"hidden_size"`
	Layers           int32    `json:"num_hidden_layers"`
	Heads            int32    `json:"num_attention_heads"`
	KVHeads          int32    `json:"num_key_value_heads" null:"0"` // 0: as many as Heads
	HeadDim          int32    `json:"head_dim" null:"0"`            // 0: Hidden/Heads
	Intermediate     int32    `json:"intermediate_size"`
	Vocab            int32    `json:"vocab_size"`
	MaxPositions     int32    `json:"max_position_embeddings"`
	Eps              float32  `json:"rms_norm_eps"`
	Tied             bool     `json:"tie_word_embeddings" null:"false"`
	Activation       string   `json:"hidden_act"`
	AttentionBias    bool     `json:"attention_bias" null:"false"`
	MLPBias          bool     `json:"mlp_bias" null:"false"`
	SlidingWindow    *int32   `json:"sliding_window"`
	UseSlidingWindow *bool    `json:"use_sliding_window" null:"false"`
	MaxWindowLayers  int32    `json:"max_window_layers"`
	LayerTypes       []string `json:"layer_types"`
	Rotary

	Windows  Windows           `json:"-"` // of the family's class
	Inherent map[string]string `json:"-"` // settings of kindred models, with the JSON value that says what this family does anyway
	Assumed  []string          `json:"-"` // what was taken for granted, for people

	known, ignored []string // keys
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
	if c.Activation != "silu" && c.Activation != "swish" { // two names of one function
		errs = append(errs, fmt.Errorf("hidden_act %q is not served by this family (silu is)", c.Activation))
	}
	return errors.Join(errors.Join(errs...), c.completeWindows(), c.completeRotary())
}
