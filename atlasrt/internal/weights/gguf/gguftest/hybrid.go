package gguftest

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// settings are those of a config.json that a hybrid model's conversion needs.
type settings struct {
	Kind        string    `json:"model_type"`
	Text        *settings `json:"text_config"`
	Hidden      int       `json:"hidden_size"`
	Layers      []string  `json:"layer_types"`
	Heads       int       `json:"num_attention_heads"`
	KeyValues   int       `json:"num_key_value_heads"`
	Head        int       `json:"head_dim"`
	Feed        int       `json:"intermediate_size"`
	Experts     int       `json:"num_experts"`
	Chosen      int       `json:"num_experts_per_tok"`
	ExpertFeed  int       `json:"moe_intermediate_size"`
	SharedFeed  int       `json:"shared_expert_intermediate_size"`
	Convolution int       `json:"linear_conv_kernel_dim"`
	KeyHeads    int       `json:"linear_num_key_heads"`
	ValueHeads  int       `json:"linear_num_value_heads"`
	KeyDim      int       `json:"linear_key_head_dim"`
	ValueDim    int       `json:"linear_value_head_dim"`
	Context     int       `json:"max_position_embeddings"`
	Epsilon     float32   `json:"rms_norm_eps"`
	Rope        struct {
		Theta    float32 `json:"rope_theta"`
		Partial  float32 `json:"partial_rotary_factor"`
		Sections []int32 `json:"mrope_section"`
	} `json:"rope_parameters"`
}

// architectures are llama.cpp's names.
var architectures = map[string]string{"qwen3_next": "qwen3next", "qwen3_5_text": "qwen35", "qwen3_5_moe_text": "qwen35moe"}

// Hybrid converts a checkpoint of a hybrid Qwen model as llama.cpp's converter does, its matrices as a type. plain is a checkpoint under
// HuggingFace's names that has the values of the converted one, in bf16. A head that drafts becomes the last layer. Images are left out.
// Source: llama.cpp, conversion/qwen.py.
func Hybrid(t testing.TB, folder string, kind tensor.Type) (file, plain string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s settings
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if s.Text != nil {
		s = *s.Text
	}
	c := &conversion{t: t, s: s, arch: architectures[s.Kind], kind: kind, experts: map[string][][]float32{}}
	c.readAll(filepath.Join(folder, "model.safetensors"))
	plain = t.TempDir()
	if err := os.WriteFile(filepath.Join(plain, "config.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := safetensors.Write(filepath.Join(plain, "model.safetensors"), c.plain...); err != nil {
		t.Fatal(err)
	}
	return Write(t, c.keys(), c.tensors...), plain
}

func (c *conversion) keys() map[string]any {
	s := c.s
	keys := map[string]any{
		"block_count": len(s.Layers) + c.heads, "context_length": s.Context, "embedding_length": s.Hidden, "attention.head_count": s.Heads,
		"attention.head_count_kv": s.KeyValues, "attention.key_length": s.Head, "attention.value_length": s.Head,
		"attention.layer_norm_rms_epsilon": s.Epsilon, "rope.freq_base": s.Rope.Theta, "rope.dimension_count": int(float32(s.Head) * s.Rope.Partial),
		"ssm.conv_kernel": s.Convolution, "ssm.state_size": s.KeyDim, "ssm.group_count": s.KeyHeads, "ssm.time_step_rank": s.ValueHeads,
		"ssm.inner_size": s.ValueHeads * s.ValueDim, "full_attention_interval": 4,
	}
	if s.Experts > 0 {
		keys["expert_count"], keys["expert_used_count"] = s.Experts, s.Chosen
		keys["expert_feed_forward_length"], keys["expert_shared_feed_forward_length"] = s.ExpertFeed, s.SharedFeed
	}
	if c.heads > 0 {
		keys["nextn_predict_layers"] = c.heads
	}
	if s.Feed > 0 {
		keys["feed_forward_length"] = s.Feed
	}
	if s.Rope.Sections != nil {
		keys["rope.dimension_sections"] = append(s.Rope.Sections, 0)
	}
	var recurrent []bool
	for _, layer := range s.Layers {
		recurrent = append(recurrent, layer == "linear_attention")
	}
	for range c.heads {
		recurrent = append(recurrent, false)
	}
	keys["attention.recurrent_layers"] = recurrent
	all := map[string]any{"general.architecture": c.arch}
	for key, value := range keys {
		all[c.arch+"."+key] = value
	}
	return all
}

// conversion collects the tensors of a file, and those of the checkpoint that has the same values.
type conversion struct {
	t       testing.TB
	s       settings
	arch    string
	kind    tensor.Type
	heads   int // layers that predict further tokens
	tensors []tensor.Tensor
	plain   []tensor.Tensor
	experts map[string][][]float32 // rows of stacked matrices so far, by the name of the stack
}

func (c *conversion) readAll(path string) {
	file, err := safetensors.Open(path)
	if err != nil {
		c.t.Fatal(err)
	}
	defer file.Close()
	for _, stored := range file.Names() {
		x, _ := file.Tensor(stored)
		name := strings.Replace(stored, "model.language_model.", "model.", 1)
		if strings.Contains(name, "visual.") {
			continue
		}
		if strings.HasPrefix(name, "mtp.") {
			c.heads = 1
		}
		values := make([]float32, x.Elements())
		if err := gguf.Dequantize(values, x.Type, x.Data); err != nil {
			c.t.Fatal(err)
		}
		if c.typeOf(name, x.Shape) == c.kind { // as it will be stored
			if err := gguf.Dequantize(values, c.kind, Encode(c.t, values, c.kind)); err != nil {
				c.t.Fatal(err)
			}
		}
		c.plain = append(c.plain, tensor.Tensor{Info: tensor.Info{Name: stored, Type: tensor.BF16, Shape: x.Shape}, Data: Encode(c.t, values, tensor.BF16)})
		c.convert(name, x.Shape, values)
	}
}

// typeOf is how a tensor of HuggingFace's is stored: small ones as F32.
func (c *conversion) typeOf(name string, shape []int64) tensor.Type {
	if len(shape) != 2 || strings.HasSuffix(name, ".mlp.gate.weight") || strings.HasSuffix(name, ".shared_expert_gate.weight") {
		return tensor.F32
	}
	return c.kind
}

func (c *conversion) add(name string, kind tensor.Type, values []float32, shape ...int64) {
	c.tensors = append(c.tensors, tensor.Tensor{Info: tensor.Info{Name: name, Type: kind, Shape: shape}, Data: Encode(c.t, values, kind)})
}

// modules are llama.cpp's names of HuggingFace's, inside a layer.
var modules = map[string]string{
	"input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm", "linear_attn.norm": "ssm_norm", "linear_attn.out_proj": "ssm_out",
	"linear_attn.in_proj_qkv": "attn_qkv", "linear_attn.in_proj_z": "attn_gate", "linear_attn.in_proj_b": "ssm_beta", "linear_attn.in_proj_a": "ssm_alpha",
	"linear_attn.in_proj_ba": "ssm_ba", "linear_attn.conv1d": "ssm_conv1d", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
	"self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
	"mlp.down_proj": "ffn_down", "mlp.gate": "ffn_gate_inp", "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
	"mlp.shared_expert.down_proj": "ffn_down_shexp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
	"mtp.fc": "nextn.eh_proj", "mtp.pre_fc_norm_embedding": "nextn.enorm", "mtp.pre_fc_norm_hidden": "nextn.hnorm", "mtp.norm": "nextn.shared_head_norm",
}

// convert adds what a tensor of HuggingFace's becomes.
func (c *conversion) convert(name string, shape []int64, values []float32) {
	kind := c.typeOf(name, shape)
	if strings.Contains(name, "norm") && !strings.HasSuffix(name, "linear_attn.norm.weight") {
		for i := range values {
			values[i]++
		}
	}
	name = c.predicting(name)
	layer, rest, inLayer := strings.Cut(strings.TrimPrefix(name, "model.layers."), ".")
	if !inLayer || !strings.HasPrefix(name, "model.layers.") {
		c.add(map[string]string{"lm_head.weight": "output.weight", "model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}[name], kind, values, shape...)
		return
	}
	prefix, module := "blk."+layer+".", strings.TrimSuffix(rest, ".weight")
	if _, expert, ok := strings.Cut(module, "mlp.experts."); ok {
		c.expert(prefix, expert, shape, values)
		return
	}
	values = c.tiled(module, values, int(shape[len(shape)-1]))
	switch module {
	case "linear_attn.A_log":
		for i, v := range values {
			values[i] = float32(-math.Exp(float64(v)))
		}
		c.add(prefix+"ssm_a", kind, values, shape...)
	case "linear_attn.dt_bias":
		c.add(prefix+"ssm_dt.bias", kind, values, shape...)
	case "linear_attn.conv1d":
		c.add(prefix+"ssm_conv1d.weight", kind, values, shape[0], shape[2])
	case "linear_attn.in_proj_qkvz":
		c.grouped(prefix, kind, values, int(shape[1]))
	default:
		if modules[module] == "" {
			c.t.Fatalf("no name for %s", name)
		}
		c.add(prefix+modules[module]+".weight", kind, values, shape...)
	}
}

// predicting is a name of a head's tensors as if they were those of the layer behind the last.
func (c *conversion) predicting(name string) string {
	rest, ok := strings.CutPrefix(name, "mtp.")
	if !ok {
		return name
	}
	layer := fmt.Sprintf("model.layers.%d.", len(c.s.Layers))
	if inner, ok := strings.CutPrefix(rest, "layers.0."); ok {
		return layer + inner
	}
	return layer + name
}

// expert adds a stack with its last expert: names come in alphabetical order, and there are fewer than ten experts.
func (c *conversion) expert(prefix, expert string, shape []int64, values []float32) {
	number, module, _ := strings.Cut(expert, ".")
	stack := fmt.Sprintf("%sffn_%s_exps.weight", prefix, strings.TrimSuffix(module, "_proj"))
	if n, err := strconv.Atoi(number); err != nil || n != len(c.experts[stack]) {
		c.t.Fatalf("expert %s of %s is out of order", number, stack)
	}
	c.experts[stack] = append(c.experts[stack], values)
	if len(c.experts[stack]) == c.s.Experts {
		c.add(stack, c.kind, slices.Concat(c.experts[stack]...), int64(c.s.Experts), shape[0], shape[1])
	}
}

// grouped adds the queries, keys, values and z of Qwen3-Next, whose rows are grouped by key head.
func (c *conversion) grouped(prefix string, kind tensor.Type, values []float32, cols int) {
	s := c.s
	each := s.ValueHeads / s.KeyHeads * s.ValueDim
	var q, k, v, z []float32
	for range s.KeyHeads {
		for _, part := range []struct {
			to   *[]float32
			rows int
		}{{&q, s.KeyDim}, {&k, s.KeyDim}, {&v, each}, {&z, each}} {
			*part.to = append(*part.to, values[:part.rows*cols]...)
			values = values[part.rows*cols:]
		}
	}
	qkv := slices.Concat(q, k, v)
	c.add(prefix+"attn_qkv.weight", kind, qkv, int64(len(qkv)/cols), int64(cols))
	c.add(prefix+"attn_gate.weight", kind, z, int64(len(z)/cols), int64(cols))
}

// tiled puts what belongs to value heads into the order that the converter gives it: the first value head of each key head, then
// the second ones. last is the last dimension of the tensor.
func (c *conversion) tiled(module string, values []float32, last int) []float32 {
	s := c.s
	if c.arch == "qwen3next" {
		return values
	}
	before := 0  // elements that stay
	var head int // elements of a value head
	switch module {
	case "linear_attn.A_log", "linear_attn.dt_bias":
		head = 1
	case "linear_attn.in_proj_a", "linear_attn.in_proj_b":
		head = last
	case "linear_attn.in_proj_z":
		head = s.ValueDim * last
	case "linear_attn.in_proj_qkv", "linear_attn.conv1d":
		before, head = 2*s.KeyHeads*s.KeyDim*last, s.ValueDim*last
	case "linear_attn.out_proj": // columns
		var all []float32
		for row := range slices.Chunk(values, last) {
			all = append(all, c.tile(row, s.ValueDim)...)
		}
		return all
	default:
		return values
	}
	return append(slices.Clone(values[:before]), c.tile(values[before:], head)...)
}

func (c *conversion) tile(values []float32, head int) (tiled []float32) {
	each := c.s.ValueHeads / c.s.KeyHeads
	for i := range each {
		for key := range c.s.KeyHeads {
			h := key*each + i
			tiled = append(tiled, values[h*head:(h+1)*head]...)
		}
	}
	return tiled
}
