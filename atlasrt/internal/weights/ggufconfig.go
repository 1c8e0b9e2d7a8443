package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
)

// architecture is what HuggingFace calls a GGUF architecture.
type architecture struct {
	modelType, class string
	pairedRows       bool // Q and K rows are stored so that rotary pairs are neighbours
	experts          bool
	hybrid           bool // most layers keep a state in place of keys and values
	tiled            bool // value heads are tiled: value head h reads key head h modulo the key heads
	windows          bool // attention.sliding_window counts, for all layers; llama.cpp reads it for none of the others
}

var architectures = map[string]architecture{
	"llama":    {modelType: "llama", class: "LlamaForCausalLM", pairedRows: true},
	"mistral":  {modelType: "mistral", class: "MistralForCausalLM", pairedRows: true, windows: true},
	"qwen2":    {modelType: "qwen2", class: "Qwen2ForCausalLM"},
	"qwen3":    {modelType: "qwen3", class: "Qwen3ForCausalLM"},
	"qwen3moe": {modelType: "qwen3_moe", class: "Qwen3MoeForCausalLM", experts: true},

	"qwen3next": {modelType: "qwen3_next", class: "Qwen3NextForCausalLM", experts: true, hybrid: true},
	"qwen35":    {modelType: "qwen3_5_text", class: "Qwen3_5ForCausalLM", hybrid: true, tiled: true},
	"qwen35moe": {modelType: "qwen3_5_moe_text", class: "Qwen3_5MoeForCausalLM", experts: true, hybrid: true, tiled: true},
}

// translator turns GGUF's keys into those of config.json and keeps every error. What a class of transformers would default
// is always given: a GGUF file has its own defaults.
type translator struct {
	file     *gguf.File
	arch     architecture
	prefix   string // "llama."
	values   map[string]any
	assumed  []string
	problems []error
}

// translate gives the configuration of a GGUF file under HuggingFace's keys.
func translate(file *gguf.File) (*Config, architecture, error) {
	name, err := file.String("general.architecture")
	if err != nil {
		return nil, architecture{}, err
	}
	arch, ok := architectures[name]
	if !ok {
		return nil, arch, fmt.Errorf("GGUF architecture %.40q is not supported: use one of %s, or the HuggingFace checkpoint", name, strings.Join(slices.Sorted(maps.Keys(architectures)), ", "))
	}
	t := &translator{file: file, arch: arch, prefix: name + ".", values: map[string]any{
		"model_type":    arch.modelType,
		"architectures": []any{arch.class},
		"hidden_act":    "silu",
	}}
	if !arch.experts {
		t.refuse(t.prefix+"expert_count", 0, "has experts (Mixtral): use the HuggingFace checkpoint")
	}
	t.dimensions()
	t.rope()
	t.refuseUnserved()
	if arch.experts {
		t.integer("num_experts", "expert_count", mustHave)
		t.integer("num_experts_per_tok", "expert_used_count", mustHave)
		t.integer("moe_intermediate_size", "expert_feed_forward_length", mustHave)
		if t.values["intermediate_size"] == nil { // files of models without dense layers give only that of experts
			t.values["intermediate_size"] = t.values["moe_intermediate_size"]
		}
		t.values["norm_topk_prob"] = true // of this architecture; the file says it only where it differs
		if on, err := file.Bool(t.prefix + "expert_weights_norm"); t.present(err) {
			t.values["norm_topk_prob"] = on
		}
	}
	if arch.hybrid {
		t.hybrid()
	}
	t.fromTensors()
	t.token("bos_token_id", "tokenizer.ggml.bos_token_id")
	t.token("eos_token_id", "tokenizer.ggml.eos_token_id")
	t.token("pad_token_id", "tokenizer.ggml.padding_token_id")
	if err := errors.Join(t.problems...); err != nil {
		return nil, arch, err
	}
	config, err := newConfig("its settings", t.values) // errors get the path from those who open the file
	if err != nil {
		return nil, arch, err
	}
	config.file = file.Path()
	config.memory.metadata, config.memory.assumed = file.Unread, t.assumed
	return config, arch, nil
}

const (
	mustHave = true
	mayHave  = false
)

func (t *translator) dimensions() {
	t.integer("hidden_size", "embedding_length", mustHave)
	t.integer("num_hidden_layers", "block_count", mustHave)
	t.integer("max_position_embeddings", "context_length", mustHave)
	t.integer("intermediate_size", "feed_forward_length", !t.arch.experts)
	t.integer("num_attention_heads", "attention.head_count", mustHave)
	t.integer("num_key_value_heads", "attention.head_count_kv", mayHave)
	t.integer("head_dim", "attention.key_length", mayHave)
	t.values["sliding_window"] = nil
	if t.arch.windows {
		t.integer("sliding_window", "attention.sliding_window", mayHave)
	}
	t.float("rms_norm_eps", "attention.layer_norm_rms_epsilon", mustHave)
	heads, _ := asInt(t.values["num_attention_heads"])
	hidden, _ := asInt(t.values["hidden_size"])
	if t.values["num_key_value_heads"] == nil && heads > 0 {
		t.values["num_key_value_heads"] = decimal(int64(heads))
	}
	if t.values["head_dim"] == nil && heads > 0 {
		t.values["head_dim"] = decimal(int64(hidden / heads))
	}
	head, _ := asInt(t.values["head_dim"])
	t.refuse(t.prefix+"attention.value_length", int64(head), "differs from the length of keys, which is not supported")
}

// fromTensors adds what only the tensors say.
func (t *translator) fromTensors() {
	embedding, ok := t.file.Tensor("token_embd.weight")
	if !ok || len(embedding.Shape) != 2 {
		t.problems = append(t.problems, errors.New("tensor token_embd.weight, a matrix, is missing"))
		return
	}
	t.values["vocab_size"] = decimal(embedding.Shape[0])
	_, untied := t.file.Tensor("output.weight")
	t.values["tie_word_embeddings"] = !untied
	_, bias := t.file.Tensor("blk.0.attn_q.bias")
	t.values["attention_bias"] = bias
	_, bias = t.file.Tensor("blk.0.ffn_gate.bias")
	t.values["mlp_bias"] = bias
}

// integer translates a key of the architecture. An array of the same number for every layer counts as that number.
func (t *translator) integer(key, from string, must bool) {
	from = t.prefix + from
	n, err := t.file.Int(from)
	if all, arrayErr := t.file.Ints(from); arrayErr == nil && len(all) > 0 {
		n, err = all[0], nil
		for _, other := range all {
			if other != n {
				err = fmt.Errorf("metadata key %s differs between layers (%d and %d), which is not supported", from, n, other)
				break
			}
		}
	}
	if !must && errors.Is(err, gguf.ErrAbsent) {
		return
	}
	if err != nil {
		t.problems = append(t.problems, err)
		return
	}
	t.values[key] = decimal(n)
}

// float translates a key of the architecture.
func (t *translator) float(key, from string, must bool) {
	from = t.prefix + from
	n, err := t.number(from)
	if !must && errors.Is(err, gguf.ErrAbsent) {
		return
	}
	if err != nil {
		t.problems = append(t.problems, err)
		return
	}
	t.values[key] = n
}

// number reads a number. A float32 keeps its shortest spelling, so that 1e-5 stays 1e-5.
func (t *translator) number(key string) (json.Number, error) {
	f, err := t.file.Float(key)
	bits := 64
	if t.file.IsFloat32(key) {
		bits = 32
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, bits)), err
}

func (t *translator) token(key, from string) {
	if n, err := t.file.Int(from); t.present(err) {
		t.values[key] = decimal(n)
	}
}

// refuse keeps an error when the key is there and is not what it may be.
func (t *translator) refuse(key string, allowed int64, why string) {
	if n, err := t.file.Int(key); t.present(err) && n != allowed {
		t.problems = append(t.problems, fmt.Errorf("metadata key %s is %d: this file %s", key, n, why))
	}
}

// present reports whether a getter found its key; an error other than absence is kept.
func (t *translator) present(err error) bool {
	if err != nil && !errors.Is(err, gguf.ErrAbsent) {
		t.problems = append(t.problems, err)
	}
	return err == nil
}

// assume keeps a line about what was taken for granted.
func (t *translator) assume(format string, arguments ...any) {
	t.assumed = append(t.assumed, fmt.Sprintf(format, arguments...))
}

func decimal(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }
