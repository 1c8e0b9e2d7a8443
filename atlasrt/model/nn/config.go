// Package nn holds the parts that model families are made of, and the settings that their configs share.
//
// A model is a list of blocks, each an addition to the residual stream. A block's body (an attention, a network) owns its weights and queues
// its launches; it reads and writes the stream through Residual alone, and shares memory for activations with all other bodies.
package nn

import "errors"

// Config is what the pre-norm decoders have in common, by the names of a HuggingFace config.json. The tag `null` says what a null
// in the file means; a setting without the tag may not be null.
type Config struct {
	ModelType        string   `json:"model_type"`                       // "llama", "qwen3", …
	Hidden           int32    `json:"hidden_size"`                      // columns of the residual stream
	Layers           int32    `json:"num_hidden_layers"`                // each an attention and a feed-forward block
	Heads            int32    `json:"num_attention_heads"`              // query heads
	KVHeads          int32    `json:"num_key_value_heads" null:"0"`     // key heads, and as many value heads; 0: as many as Heads
	HeadDim          int32    `json:"head_dim" null:"0"`                // elements of a head; 0: Hidden/Heads
	Intermediate     int32    `json:"intermediate_size"`                // columns of the gate and of the up projection
	Vocab            int32    `json:"vocab_size"`                       // token ids
	MaxPositions     int32    `json:"max_position_embeddings"`          // the longest context that the model is meant for
	Eps              float32  `json:"rms_norm_eps"`                     // of every norm
	Tied             bool     `json:"tie_word_embeddings" null:"false"` // the embedding is the output matrix, too
	Activation       string   `json:"hidden_act"`                       // of the gate: only silu is served
	AttentionBias    bool     `json:"attention_bias" null:"false"`      // the projections of attention have biases
	MLPBias          bool     `json:"mlp_bias" null:"false"`            // the projections of the dense network have biases
	SlidingWindow    *int32   `json:"sliding_window"`                   // positions that a token sees, itself included; nil: all
	UseSlidingWindow *bool    `json:"use_sliding_window" null:"false"`  // whether SlidingWindow is in force
	MaxWindowLayers  int32    `json:"max_window_layers"`                // the first layers, which have no window: see LaterWindows
	LayerTypes       []string `json:"layer_types"`                      // by layer: full_attention, sliding_attention or linear_attention
	Rotary

	Windows    Windows           `json:"-"` // the rule of the family's configuration class
	Linear     bool              `json:"-"` // layer_types may have linear_attention
	NormOffset float32           `json:"-"` // is added to the scales of all norms of blocks, queries and keys
	Inherent   map[string]string `json:"-"` // keys that may be given with this JSON value alone, since the family always does so
	Assumed    []string          `json:"-"` // sentences about what the file leaves open and how it was read

	known, ignored []string // keys: those that have a field, and those of them that have no effect here
}

// Complete fills what a config may leave out and checks every number that sizes depend on.
func (c *Config) Complete() error {
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	var r ranges
	r.within("hidden_size", c.Hidden, 1, 1<<17)
	r.within("num_hidden_layers", c.Layers, 1, MostLayers)
	r.within("num_attention_heads", c.Heads, 1, 1<<12)
	r.within("num_key_value_heads", c.KVHeads, 1, max(c.Heads, 1))
	r.within("intermediate_size", c.Intermediate, 1, 1<<19)
	r.within("vocab_size", c.Vocab, 1, 1<<21)
	r.within("max_position_embeddings", c.MaxPositions, 1, 1<<27)
	if !r.ok() {
		return r.err()
	}
	if c.HeadDim == 0 {
		if c.Hidden%c.Heads != 0 {
			r.fail("hidden_size %d is no multiple of num_attention_heads %d, and head_dim is not given", c.Hidden, c.Heads)
		}
		c.HeadDim = c.Hidden / c.Heads
	}
	r.within("head_dim", c.HeadDim, 2, 1024)
	if c.HeadDim%2 != 0 {
		r.fail("head_dim is %d (it must be even)", c.HeadDim)
	}
	if c.Heads%c.KVHeads != 0 {
		r.fail("num_attention_heads %d is no multiple of num_key_value_heads %d", c.Heads, c.KVHeads)
	}
	if !(c.Eps > 0 && c.Eps < 1) {
		r.fail("rms_norm_eps is %v (it must be between 0 and 1)", c.Eps)
	}
	if c.Activation != "silu" && c.Activation != "swish" { // two names of one function
		r.fail("hidden_act %q is not served by this family (silu is)", c.Activation)
	}
	return errors.Join(r.err(), c.completeWindows(), c.completeRotary())
}
