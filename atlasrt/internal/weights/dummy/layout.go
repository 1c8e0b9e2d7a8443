package dummy

import (
	"encoding/json"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Layout says how the checkpoint is written as one of its kind is published: settings with what they say of quantisation, and where they are
// nested the names of a model that sees images, too.
func (c *Checkpoint) Layout() weights.Layout {
	layout := weights.Layout{Config: c.config.Fresh()}
	if c.config.Fresh().Has("text_config") {
		layout.Name = func(name string) string {
			if rest, ok := strings.CutPrefix(name, "model."); ok {
				return "model.language_model." + rest
			}
			return name
		}
	}
	return layout
}

// describe adds what is said of quantisation to settings that say nothing of it.
func (o Options) describe(config *weights.Config) (*weights.Config, error) {
	added := o.quantisation()
	if added == nil || config.Has("quantization_config") {
		return config, nil
	}
	text, err := config.JSON()
	if err != nil {
		return nil, err
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	all["quantization_config"] = added
	if text, err = json.Marshal(all); err != nil {
		return nil, err
	}
	return weights.ParseConfig(config.File(), text)
}

// plain are the modules that stay in bf16, as patterns that begin anywhere: names without dots before them.
func (o Options) plain() []string {
	names := []string{"embed_tokens", "mlp.gate", "shared_expert_gate", "conv1d"}
	if !o.Whole {
		names = append(names, "lm_head", "in_proj_a", "in_proj_b", "in_proj_ba")
	}
	return names
}

// quantisation is what config.json says of a checkpoint's matrices; nil where it says nothing.
func (o Options) quantisation() map[string]any {
	each := func(before, after string) (names []any) {
		for _, name := range o.plain() {
			names = append(names, before+name+after)
		}
		return names
	}
	switch {
	case o.Scheme == op.SchemeF8, o.Scheme == op.SchemeF8Block:
		says := map[string]any{"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "modules_to_not_convert": each("", "")}
		if o.Scheme == op.SchemeF8Block {
			says["weight_block_size"] = []any{128, 128}
		}
		return says
	case o.Scheme == op.SchemeNVFP4 && o.Dialect == CompressedTensors:
		numbers := func(dynamic any) map[string]any {
			return map[string]any{"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16, "symmetric": true, "dynamic": dynamic}
		}
		group := map[string]any{"targets": []any{"Linear"}, "weights": numbers(false), "input_activations": numbers("local")}
		return map[string]any{
			"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "quantization_status": "compressed", "kv_cache_scheme": nil,
			"config_groups": map[string]any{"group_0": group}, "ignore": each("re:.*", "$"),
		}
	case o.Scheme == op.SchemeNVFP4:
		return map[string]any{
			"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16, "producer": map[string]any{"name": "modelopt", "version": "0.39.0"}, "ignore": each("*", ""),
		}
	}
	return nil
}
