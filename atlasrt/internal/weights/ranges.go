package weights

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
)

// ranges bounds the sizes of a model, wherever in the configuration they stand, so that nothing later multiplies or
// allocates by a number that no model has. The upper ends are far above every known model.
var ranges = map[string]struct{ low, high float64 }{
	"hidden_size":             {1, 1 << 20},
	"intermediate_size":       {0, 1 << 24},
	"moe_intermediate_size":   {0, 1 << 24},
	"num_hidden_layers":       {1, 4096},
	"depth":                   {0, 4096},
	"num_attention_heads":     {1, 4096},
	"num_key_value_heads":     {1, 4096},
	"num_heads":               {1, 4096},
	"head_dim":                {1, 1 << 16},
	"vocab_size":              {1, 1 << 24},
	"num_experts":             {0, 1 << 16},
	"num_local_experts":       {0, 1 << 16},
	"n_routed_experts":        {0, 1 << 16},
	"num_experts_per_tok":     {0, 4096},
	"max_position_embeddings": {1, 1 << 31},
	"sliding_window":          {0, 1 << 31},
	"rms_norm_eps":            {0, 1},
	"layer_norm_epsilon":      {0, 1},
	"rope_theta":              {1e-6, 1e18},
	"partial_rotary_factor":   {0, 1},
}

// checkRanges checks the numbers of this object and of those inside it. Values of another type are the getters' business.
func (c *Config) checkRanges() error {
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(c.values)) {
		switch value := c.values[key].(type) {
		case map[string]any:
			if err := (&Config{file: c.file, prefix: c.prefix + key + ".", values: value}).checkRanges(); err != nil {
				problems = append(problems, err)
			}
		case json.Number:
			limit, ok := ranges[key]
			if f, _ := number(value); ok && !(f >= limit.low && f <= limit.high) {
				problems = append(problems, c.problem(key, "is %s, wanted a number from %s to %s", value, inFull(limit.low), inFull(limit.high)))
			}
		}
	}
	heads, hasHeads := asInt(c.values["num_attention_heads"])
	groups, hasGroups := asInt(c.values["num_key_value_heads"])
	if hasHeads && hasGroups && groups > 0 && heads%groups != 0 {
		problems = append(problems, c.problem("num_key_value_heads", "is %d, which does not divide num_attention_heads, %d", groups, heads))
	}
	return errors.Join(problems...)
}

// inFull writes a number without an exponent.
func inFull(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
