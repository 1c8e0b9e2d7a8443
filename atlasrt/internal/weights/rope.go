package weights

import "maps"

// Rope gives the settings of rotary embeddings as one object, however the checkpoint writes them: rope_theta, rope_type
// ("default" when nothing is said), partial_rotary_factor, and what the type needs (factor, low_freq_factor,
// original_max_position_embeddings, …).
//
// transformers 5 writes `rope_parameters`, an object that may hold one object per layer type; before, there was a number
// `rope_theta` and, for scaled embeddings, `rope_scaling` with `type` or `rope_type`. layerType is a value of layer_types
// ("full_attention"), or empty where all layers are alike.
func (c *Config) Rope(layerType string) *Config {
	merged := map[string]any{}
	for _, key := range []string{"rope_theta", "partial_rotary_factor"} {
		c.log.read[c.prefix+key] = true
		if c.Has(key) {
			merged[key] = c.values[key]
		}
	}
	source := "rope_parameters"
	if !c.Has(source) {
		source = "rope_scaling"
	}
	maps.Copy(merged, c.Object("rope_scaling").values)
	parameters := c.Object("rope_parameters").values
	if perLayer, ok := parameters[layerType].(map[string]any); ok {
		source += "." + layerType
		parameters = perLayer
	}
	maps.Copy(merged, parameters)
	if merged["rope_type"] == nil {
		merged["rope_type"] = merged["type"]
	}
	if merged["rope_type"] == nil {
		merged["rope_type"] = "default"
	}
	return &Config{file: c.file, prefix: c.prefix + source + ".", values: merged, log: c.log}
}
