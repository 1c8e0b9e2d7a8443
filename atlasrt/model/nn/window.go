package nn

import (
	"fmt"
	"slices"
	"strings"
)

// Windows tells which layers of a family's configuration class slide where layer_types does not say it.
type Windows int

// The rules of transformers' classes.
const (
	NoWindows      Windows = iota // none, whatever the config says
	AlwaysWindows                 // all, where sliding_window is given
	SwitchedWindow                // all, where use_sliding_window is true
	LaterWindows                  // those from max_window_layers on, where use_sliding_window is true
)

// Window is how many positions layer sees, itself included; 0 means all.
func (c *Config) Window(layer int32) int32 {
	switch {
	case c.SlidingWindow == nil:
		return 0
	case len(c.LayerTypes) > 0 && c.LayerTypes[layer] != SlidingAttention:
		return 0
	case len(c.LayerTypes) == 0 && c.Windows == LaterWindows && layer < c.MaxWindowLayers:
		return 0
	}
	return *c.SlidingWindow
}

// The values of layer_types.
const (
	SlidingAttention = "sliding_attention" // sees a window of positions
	FullAttention    = "full_attention"    // sees all positions
	LinearAttention  = "linear_attention"  // keeps a state in place of keys and values
)

// completeWindows decides whether there is a window, and checks what is said about layers.
func (c *Config) completeWindows() error {
	if n := len(c.LayerTypes); n > 0 && n != int(c.Layers) {
		return fmt.Errorf("layer_types has %d entries (num_hidden_layers is %d)", n, c.Layers)
	}
	served := []string{FullAttention, SlidingAttention}
	if c.Linear {
		served = []string{FullAttention, LinearAttention}
	}
	for _, kind := range c.LayerTypes {
		if !slices.Contains(served, kind) {
			return fmt.Errorf("layer_types has %q, which this family does not serve (%s are)", kind, strings.Join(served, " and "))
		}
	}
	sliding := slices.Contains(c.LayerTypes, SlidingAttention)
	if c.Windows == NoWindows {
		if sliding {
			return fmt.Errorf("layer_types has %q, and model_type %q has no sliding window", SlidingAttention, c.ModelType)
		}
		c.SlidingWindow = nil
		c.ignored = append(c.ignored, "sliding_window", "use_sliding_window", "max_window_layers")
		return nil
	}
	if c.Windows != LaterWindows && c.SlidingWindow != nil && slices.Contains(c.LayerTypes, FullAttention) {
		c.assume("layer_types outweighs the rule of model_type %s that all layers slide", c.ModelType)
	}
	if on := c.UseSlidingWindow; on != nil && !*on {
		if c.Windows == AlwaysWindows && c.SlidingWindow != nil {
			c.assume("use_sliding_window is false, so no layer slides, though model_type %s does not know the key", c.ModelType)
		}
		c.SlidingWindow = nil
	}
	if w := c.SlidingWindow; w != nil && *w == 0 {
		c.assume("sliding_window is 0, so no layer slides")
		c.SlidingWindow = nil
	}
	if w := c.SlidingWindow; w != nil && (*w < 1 || *w > 1<<27) {
		return fmt.Errorf("sliding_window is %d (it must be between 1 and %d)", *w, 1<<27)
	}
	if c.Windows != LaterWindows && c.SlidingWindow != nil {
		c.ignored = append(c.ignored, "max_window_layers")
	}
	if sliding && c.SlidingWindow == nil {
		return fmt.Errorf("layer_types has %q, but sliding_window and use_sliding_window give no window", SlidingAttention)
	}
	return nil
}
