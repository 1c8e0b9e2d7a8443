package llama

import "github.com/atlas-inference/atlas/atlasrt/model/nn"

// defaults are what a config.json may leave out. They are those of LlamaConfig, MistralConfig and Qwen2Config in
// transformers 5.24 (src/transformers/models/*/configuration_*.py); rope_theta is that of RotaryEmbeddingConfigMixin.
func defaults(modelType string) nn.Config {
	switch modelType {
	case "mistral":
		window := int32(4096)
		return nn.Config{
			Hidden: 4096, Layers: 32, Heads: 32, KVHeads: 8, Intermediate: 14336, Vocab: 32000, MaxPositions: 131072,
			Eps: 1e-6, Activation: "silu", Rotary: nn.Rotary{Theta: 10000},
			Windows: nn.AlwaysWindows, SlidingWindow: &window,
		}
	case "qwen2":
		window, off := int32(4096), false
		return nn.Config{
			Hidden: 4096, Layers: 32, Heads: 32, KVHeads: 32, Intermediate: 22016, Vocab: 151936, MaxPositions: 32768,
			Eps: 1e-6, Activation: "silu", Rotary: nn.Rotary{Theta: 10000},
			Windows: nn.LaterWindows, SlidingWindow: &window, UseSlidingWindow: &off, MaxWindowLayers: 28,
			Inherent: map[string]string{"qkv_bias": "true"},
		}
	}
	return nn.Config{
		Hidden: 4096, Layers: 32, Heads: 32, Intermediate: 11008, Vocab: 32000, MaxPositions: 2048,
		Eps: 1e-6, Activation: "silu", Rotary: nn.Rotary{Theta: 10000},
		Windows: nn.NoWindows,
	}
}
