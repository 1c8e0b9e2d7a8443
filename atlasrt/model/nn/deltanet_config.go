package nn

import "github.com/atlas-inference/atlas/atlasrt/op"

// DeltaNetConfig is the shape of a model's delta nets, by the names of a HuggingFace config.json.
type DeltaNetConfig struct {
	KeyHeads   int32  `json:"linear_num_key_heads"`         // query heads, and as many key heads
	ValueHeads int32  `json:"linear_num_value_heads"`       // of which each has a state
	KeyDim     int32  `json:"linear_key_head_dim"`          // elements of a query head and of a key head
	ValueDim   int32  `json:"linear_value_head_dim"`        // elements of a value head
	Width      int32  `json:"linear_conv_kernel_dim"`       // rows that the convolution sees
	OutputGate string `json:"output_gate_type" null:"\"\""` // what z goes through before it multiplies: silu (its other name is swish) or sigmoid; empty: silu
	Tiled      bool   `json:"linear_value_heads_tiled"`     // value head h reads key head h%KeyHeads; else h/(ValueHeads/KeyHeads)
	StateType  string `json:"mamba_ssm_dtype" null:"\"\""`  // what others keep states in
	Grouped    bool   `json:"-"`                            // projections may be stored by key heads

	gate op.Gate
}

// mostState bounds the elements of a layer's state.
const mostState = 1 << 24

// Complete checks every number that sizes depend on.
func (c *DeltaNetConfig) Complete() error {
	var r ranges
	r.within("linear_num_key_heads", c.KeyHeads, 1, 1<<10)
	r.within("linear_num_value_heads", c.ValueHeads, 1, 1<<10)
	r.within("linear_key_head_dim", c.KeyDim, 2, 256)
	r.within("linear_value_head_dim", c.ValueDim, 2, 256)
	r.within("linear_conv_kernel_dim", c.Width, 1, 8)
	if c.KeyDim%2 != 0 || c.ValueDim%2 != 0 {
		r.fail("linear_key_head_dim is %d and linear_value_head_dim %d (both must be even)", c.KeyDim, c.ValueDim)
	}
	if c.KeyHeads > 0 && c.ValueHeads%c.KeyHeads != 0 {
		r.fail("linear_num_value_heads %d is no multiple of linear_num_key_heads %d", c.ValueHeads, c.KeyHeads)
	}
	if state := int64(c.ValueHeads) * int64(c.KeyDim) * int64(c.ValueDim); r.ok() && state > mostState {
		r.fail("linear_num_value_heads %d with linear_key_head_dim %d and linear_value_head_dim %d make states of %d elements (at most %d are served)",
			c.ValueHeads, c.KeyDim, c.ValueDim, state, mostState)
	}
	switch c.OutputGate {
	case "", "silu", "swish":
		c.gate = op.GateSilu
	case "sigmoid":
		c.gate = op.GateSigmoid
	default:
		r.fail("output_gate_type %q is not served (silu, swish and sigmoid are)", c.OutputGate)
	}
	return r.err()
}

// channels are the columns of the convolution: queries, keys and values.
func (c *DeltaNetConfig) channels() int32 { return 2*c.KeyHeads*c.KeyDim + c.ValueHeads*c.ValueDim }
