package weights

import "maps"

// Text gives the settings of the text model: those in text_config where there is one, and those around it where it says nothing. How
// weights are quantised and whether the head is tied is said around it; what text_config says of the head is often wrong and does not count.
func (c *Config) Text() *Config {
	text, ok := c.values[textName].(map[string]any)
	if !ok {
		return c
	}
	merged := *c
	merged.values, merged.nested = maps.Clone(c.values), map[string]bool{}
	delete(merged.values, textName)
	for key, value := range text {
		outer := key == "quantization_config" && c.Has(key)
		if value != nil && key != tieName && !outer {
			merged.values[key], merged.nested[key] = value, true
		}
	}
	return &merged
}
