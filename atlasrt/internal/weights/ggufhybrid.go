package weights

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
)

// hybrid translates the keys of models most of whose layers keep a state in place of keys and values. Converters add 1 to the weights of
// all norms but that of the delta rule's output, and those of some architectures tile value heads.
// Source: llama.cpp, conversion/qwen.py and load_arch_hparams in src/models/qwen35moe.cpp.
func (t *translator) hybrid() {
	t.values["norm_unit_offset"] = false
	t.values["linear_value_heads_tiled"] = t.arch.tiled
	t.integer("linear_conv_kernel_dim", "ssm.conv_kernel", mustHave)
	t.integer("linear_key_head_dim", "ssm.state_size", mustHave)
	t.integer("linear_num_key_heads", "ssm.group_count", mustHave)
	t.integer("linear_num_value_heads", "ssm.time_step_rank", mustHave)
	if heads, _ := asInt(t.values["linear_num_value_heads"]); heads > 0 {
		inner, err := t.file.Int(t.prefix + "ssm.inner_size")
		if err == nil && inner%int64(heads) != 0 {
			err = fmt.Errorf("metadata key %sssm.inner_size is %d, no multiple of the %d value heads of ssm.time_step_rank", t.prefix, inner, heads)
		}
		if err != nil {
			t.problems = append(t.problems, err)
		} else {
			t.values["linear_value_head_dim"] = decimal(inner / int64(heads))
		}
	}
	if t.arch.experts {
		t.integer("shared_expert_intermediate_size", "expert_shared_feed_forward_length", mayHave)
		if t.values["shared_expert_intermediate_size"] == nil { // as llama.cpp reads it
			t.values["shared_expert_intermediate_size"] = t.values["intermediate_size"]
		}
	}
	t.predicted()
	t.layerTypes()
	t.sections()
}

// predicted takes the layers that predict further tokens off the count of layers: they come last, and are named as mtp's.
func (t *translator) predicted() {
	layers, _ := asInt(t.values["num_hidden_layers"])
	n, err := t.file.Int(t.prefix + "nextn_predict_layers")
	if !t.present(err) {
		return
	}
	if n < 0 || n >= int64(max(layers, 1)) {
		t.problems = append(t.problems, fmt.Errorf("metadata key %snextn_predict_layers is %d of %d layers", t.prefix, n, layers))
		return
	}
	if own := t.ownLayer(int64(layers)-n, int64(layers)); own != "" {
		t.problems = append(t.problems, fmt.Errorf("metadata key %snextn_predict_layers is %d of %d layers, but no layer has tensors nextn.…, which predict, and there is %s: "+
			"one of them is not of this model", t.prefix, n, layers, own))
		return
	}
	t.values["num_hidden_layers"] = decimal(int64(layers) - n)
	t.values["mtp_num_hidden_layers"] = decimal(n)
}

// ownLayer names a tensor of the layers first … last-1. It is "" where they have none, and where some of theirs predict further tokens.
func (t *translator) ownLayer(first, last int64) (own string) {
	for _, name := range t.file.Names() {
		layer, module := splitLayer(name)
		if number, err := strconv.ParseInt(layer, 10, 64); err != nil || number < first || number >= last {
			continue
		}
		if strings.HasPrefix(module, "nextn.") {
			return ""
		}
		own = name
	}
	return own
}

// layerTypes says which layers keep a state. Files list them, or give how many layers there are to one with attention.
func (t *translator) layerTypes() {
	layers, _ := asInt(t.values["num_hidden_layers"])
	if layers < 1 || layers > math.MaxUint16 {
		return // which is refused
	}
	every := int64(t.orElse("full_attention_interval", 4))
	recurrent, err := t.file.Bools(t.prefix + "attention.recurrent_layers")
	listed := t.present(err)
	switch {
	case listed && len(recurrent) < layers:
		err = fmt.Errorf("metadata key %sattention.recurrent_layers lists %d layers of %d", t.prefix, len(recurrent), layers)
	case !listed && every < 1:
		err = fmt.Errorf("metadata key %sfull_attention_interval is %d, wanted 1 or more", t.prefix, every)
	default:
		err = nil
	}
	if err != nil {
		t.problems = append(t.problems, err)
		return
	}
	types := make([]any, layers)
	for i := range types {
		types[i] = "full_attention"
		if listed && recurrent[i] || !listed && int64(i+1)%every != 0 {
			types[i] = "linear_attention"
		}
	}
	t.values["layer_types"] = types
}

// sections translates how many pairs turn by time, height and width.
func (t *translator) sections() {
	key := t.prefix + "rope.dimension_sections"
	sections, err := t.file.Ints(key)
	if errors.Is(err, gguf.ErrAbsent) {
		return
	}
	if err == nil && (len(sections) < 3 || len(sections) > 4 || len(sections) == 4 && sections[3] != 0) {
		err = fmt.Errorf("metadata key %s is %v, wanted three numbers and 0", key, sections)
	}
	if err != nil {
		t.problems = append(t.problems, err)
		return
	}
	var all []any
	for _, n := range sections[:3] {
		all = append(all, decimal(n))
	}
	scaling, ok := t.values["rope_scaling"].(map[string]any)
	if !ok {
		scaling = map[string]any{"rope_type": "default"}
		t.values["rope_parameters"] = scaling
	}
	scaling["mrope_section"] = all
}
