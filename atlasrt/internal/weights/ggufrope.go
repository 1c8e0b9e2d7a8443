package weights

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// rope translates the keys of rotary embeddings as llama.cpp reads them: a factor without a type is linear, 0 is no factor,
// the original context is the file's where none is given, and what is not YaRN has a yarn_ext_factor of 0.
// Source: llama.cpp, load_hparams in src/llama-model.cpp and llama_context in src/llama-context.cpp.
func (t *translator) rope() {
	t.values["rope_theta"] = json.Number("10000")
	t.float("rope_theta", "rope.freq_base", mayHave)
	t.dimensionCount()
	kind, err := t.file.String(t.prefix + "rope.scaling.type")
	if !t.present(err) {
		kind = "linear"
	}
	factor, extrapolated := t.orElse("rope.scaling.factor", t.orElse("rope.scale_linear", 1)), 0.0
	if factor == 0 {
		factor = 1
	}
	switch kind {
	case "none", "default":
		factor = 1
	case "linear":
	case "yarn":
		extrapolated = 1
		if factor == 1 {
			t.assume("rope.scaling.type is yarn without a factor: nothing is stretched")
		}
	default:
		t.problems = append(t.problems, fmt.Errorf("metadata key %srope.scaling.type is %.40q, which is not served (served: none, linear, yarn)", t.prefix, kind))
		return
	}
	if e := t.orElse("rope.scaling.yarn_ext_factor", -1); e >= 0 {
		extrapolated = e
	}
	usual, magnitude := t.magnitude(factor, extrapolated)
	scaling := map[string]any{"rope_type": "linear", "factor": decimalFloat(factor)}
	switch {
	case extrapolated == 0 && magnitude == 1 && factor == 1:
		return
	case extrapolated != 0 || magnitude != 1:
		scaling["rope_type"] = "yarn" // which with an extrapolation of 0 is linear
		scaling["beta_fast"] = decimalFloat(t.orElse("rope.scaling.yarn_beta_fast", 32))
		scaling["beta_slow"] = decimalFloat(t.orElse("rope.scaling.yarn_beta_slow", 1))
		scaling["extrapolation_factor"] = decimalFloat(extrapolated)
		scaling["original_max_position_embeddings"] = t.values["max_position_embeddings"]
		if magnitude != usual {
			scaling["attention_factor"] = decimalFloat(magnitude)
		}
	}
	t.values["rope_scaling"] = scaling
	top := t.values
	t.values = scaling
	if scaling["rope_type"] == "yarn" {
		t.integer("original_max_position_embeddings", "rope.scaling.original_context_length", mayHave)
	}
	t.values = top
}

// magnitude is what cosines and sines are multiplied by, and what YaRN multiplies them by if a file says nothing of it.
// yarn_attn_factor is config.json's attention_factor, where converters find it; attn_factor comes on top.
func (t *translator) magnitude(factor, extrapolated float64) (usual, all float64) {
	of := func(m float64) float64 { return 0.1*m*math.Log(max(factor, 1)) + 1 }
	usual, all = of(1), 1
	if extrapolated != 0 {
		all = usual
		if m := t.orElse("rope.scaling.yarn_log_multiplier", 0); m != 0 { // config.json's mscale_all_dim, with an mscale of 1
			all = of(1) / of(m)
		}
	}
	if given := t.orElse("rope.scaling.yarn_attn_factor", all); math.Abs(given-all) > 1e-6 {
		t.assume("rope.scaling.yarn_attn_factor, %v, is taken for all that cosines and sines are multiplied by, in place of %v", given, all)
		all = given
	}
	return usual, all * t.orElse("rope.scaling.attn_factor", 1)
}

// dimensionCount translates how many elements of a head turn.
func (t *translator) dimensionCount() {
	head, _ := asInt(t.values["head_dim"])
	n, err := t.file.Int(t.prefix + "rope.dimension_count")
	if !t.present(err) || n == int64(head) {
		return
	}
	if t.arch.pairedRows {
		t.problems = append(t.problems, fmt.Errorf("metadata key %srope.dimension_count is %d, and heads have %d elements: this architecture stores rows in an order that "+
			"only whole heads define (use the HuggingFace checkpoint)", t.prefix, n, head))
		return
	}
	t.values["rotary_dim"] = decimal(n)
}

// orElse reads an optional number of the architecture.
func (t *translator) orElse(key string, otherwise float64) float64 {
	n, err := t.number(t.prefix + key)
	if !t.present(err) {
		return otherwise
	}
	f, _ := n.Float64() // it came from a number
	return f
}

func decimalFloat(f float64) json.Number { return json.Number(strconv.FormatFloat(f, 'g', -1, 64)) }
