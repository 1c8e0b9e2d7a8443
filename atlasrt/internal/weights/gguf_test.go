package weights

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf/gguftest"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// ggufTensor is a tensor of float32 whose elements count up from 0.
type ggufTensor struct {
	name  string
	shape []int64 // row-major
}

// writeGGUF writes a file with these keys.
func writeGGUF(t testing.TB, keys map[string]any, tensors ...ggufTensor) string {
	t.Helper()
	var all []tensor.Tensor
	for _, x := range tensors {
		info := Info{Name: x.name, Type: tensor.F32, Shape: x.shape}
		values := make([]float32, info.Elements())
		for i := range values {
			values[i] = float32(i)
		}
		all = append(all, Tensor{Info: info, Data: gguftest.Encode(t, values, tensor.F32)})
	}
	return gguftest.Write(t, keys, all...)
}

func firstColumn(t *testing.T, c Checkpoint, name string) []float32 {
	t.Helper()
	x, err := c.Tensor(name)
	if err != nil {
		t.Fatal(err)
	}
	var column []float32
	row := len(x.Data) / int(x.Shape[0])
	for i := 0; i < len(x.Data); i += row {
		column = append(column, math.Float32frombits(binary.LittleEndian.Uint32(x.Data[i:])))
	}
	return column
}

var llamaKeys = map[string]any{
	"general.architecture": "llama", "llama.block_count": 1, "llama.embedding_length": 8, "llama.attention.head_count": 2,
	"llama.attention.head_count_kv": 1, "llama.feed_forward_length": 16, "llama.context_length": 128,
	"llama.attention.layer_norm_rms_epsilon": float32(1e-5), "llama.rope.freq_base": float32(500000),
}

func with(keys map[string]any, more map[string]any) map[string]any {
	all := maps.Clone(keys)
	maps.Copy(all, more)
	return all
}

var embedding = ggufTensor{"token_embd.weight", []int64{10, 8}}

func TestGGUFRowsAreUnpermuted(t *testing.T) {
	tensors := []ggufTensor{embedding, {"blk.0.attn_q.weight", []int64{8, 8}}, {"blk.0.attn_q.bias", []int64{8}},
		{"blk.0.attn_k.weight", []int64{4, 8}}, {"blk.0.attn_v.weight", []int64{4, 8}}, {"rope_freqs.weight", []int64{2}}}
	c, err := Open(writeGGUF(t, llamaKeys, tensors...))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// In the file the rows of a head of 4 are HuggingFace's 0, 2, 1, 3.
	cases := []struct{ name, want string }{
		{"model.layers.0.self_attn.q_proj.weight", "[0 16 8 24 32 48 40 56]"},
		{"model.layers.0.self_attn.q_proj.bias", "[0 2 1 3 4 6 5 7]"},
		{"model.layers.0.self_attn.k_proj.weight", "[0 16 8 24]"},
		{"model.layers.0.self_attn.v_proj.weight", "[0 8 16 24]"},
		{"rope_freqs.weight", "[0 1]"},
	}
	for _, cc := range cases {
		if got := fmt.Sprint(firstColumn(t, c, cc.name)); got != cc.want {
			t.Errorf("%s: first column %s, want %s", cc.name, got, cc.want)
		}
	}
	if got := fmt.Sprint(c.Unused()); got != "[model.embed_tokens.weight]" {
		t.Errorf("unused: %s", got)
	}

	plain := map[string]any{}
	for key, value := range llamaKeys {
		plain[strings.Replace(key, "llama.", "qwen2.", 1)] = value
	}
	plain["general.architecture"] = "qwen2"
	q, err := Open(writeGGUF(t, plain, tensors...))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if got := fmt.Sprint(firstColumn(t, q, "model.layers.0.self_attn.q_proj.bias")); got != "[0 1 2 3 4 5 6 7]" {
		t.Errorf("qwen2 bias: %s, want it as stored", got)
	}
	if !q.Config().Bool("attention_bias") || !q.Config().Bool("tie_word_embeddings") {
		t.Error("qwen2: want attention_bias and tie_word_embeddings")
	}
}

func TestGGUFRowsThatAreNoPairs(t *testing.T) {
	c, err := Open(writeGGUF(t, llamaKeys, embedding, ggufTensor{"blk.0.attn_q.weight", []int64{6, 8}}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Tensor("model.layers.0.self_attn.q_proj.weight"); !matches(err, "not divided into pairs by 2 heads") {
		t.Errorf("got %v", err)
	}
}

// Tensors without elements or dimensions are read; what is empty need not be used.
func TestGGUFOddTensors(t *testing.T) {
	c, err := Open(writeGGUF(t, llamaKeys, embedding, ggufTensor{"empty", []int64{0, 3}}, ggufTensor{"blk.0.attn_q.weight", []int64{0, 8}},
		ggufTensor{"blk.0.attn_k.weight", nil}, ggufTensor{"scale", nil}, ggufTensor{"blk.0.ffn_up_exps.weight", []int64{0, 2, 2}}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, name := range []string{"model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight"} {
		if _, err := c.Tensor(name); !matches(err, "not divided into pairs by") {
			t.Errorf("%s: got %v, want an error about its rows", name, err)
		}
	}
	if x, err := c.Tensor("scale"); err != nil || x.String() != "scale F32 []" || len(x.Data) != 4 {
		t.Errorf("scale: %v, %d bytes, %v", x.Info, len(x.Data), err)
	}
	if err := CheckUsed(c, func(name string) bool { return name == "model.embed_tokens.weight" }); err != nil {
		t.Errorf("a tensor without elements must be used: %v", err)
	}
}

// Whatever a file holds, opening it ends, and so does reading all that it offers.
func FuzzOpenGGUF(f *testing.F) {
	for _, keys := range []map[string]any{llamaKeys, with(llamaKeys, map[string]any{"split.count": 1, "split.no": 0, "general.type": "model"}),
		with(llamaKeys, map[string]any{"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": []string{"a", ""}, "tokenizer.ggml.scores": []float32{0, -1},
			"tokenizer.ggml.eos_token_ids": []int32{1, 7}, "tokenizer.ggml.bos_token_id": []int32{1}, "tokenizer.ggml.seperator_token_id": -1}),
		hybridMetadata("qwen3next", map[string]any{"attention.recurrent_layers": []bool{true, true, false}, "rope.dimension_sections": []int32{1, 0, 0, 0}})} {
		f.Add([]byte(text(f, writeGGUF(f, keys, embedding, ggufTensor{"blk.0.attn_q.weight", []int64{8, 8}}, ggufTensor{"blk.0.ffn_up_exps.weight", []int64{3, 4, 8}},
			ggufTensor{"blk.0.ssm_ba.weight", []int64{8, 1}}, ggufTensor{"blk.1.ffn_gate_up_exps.weight", []int64{2, 4, 1}}))))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Open(path)
		if err != nil {
			return
		}
		defer c.Close()
		for _, name := range c.Unused() {
			x, err := c.Tensor(name)
			if want, _ := x.Type.Bytes(x.Shape); err == nil && want != int64(len(x.Data)) {
				t.Fatalf("tensor %v has %d bytes, want %d", x.Info, len(x.Data), want)
			}
			c.Release(x)
		}
		if a, err := c.Assets(); err == nil && a.Vocabulary.Types != nil && len(a.Vocabulary.Types) != len(a.Vocabulary.Tokens) {
			t.Fatalf("%d types of %d tokens", len(a.Vocabulary.Types), len(a.Vocabulary.Tokens))
		}
		if notes := c.Notes(); len(notes) > 20 {
			t.Fatalf("%d notes", len(notes))
		}
	})
}

func TestGGUFExperts(t *testing.T) {
	keys := map[string]any{
		"general.architecture": "qwen3moe", "qwen3moe.block_count": 1, "qwen3moe.embedding_length": 8, "qwen3moe.attention.head_count": 2, "qwen3moe.context_length": 64,
		"qwen3moe.attention.head_count_kv": []int32{1, 1}, "qwen3moe.attention.key_length": 6, "qwen3moe.attention.layer_norm_rms_epsilon": float32(1e-6),
		"qwen3moe.expert_count": 3, "qwen3moe.expert_used_count": 2, "qwen3moe.expert_feed_forward_length": 4,
	}
	path := writeGGUF(t, keys, embedding, ggufTensor{"output.weight", []int64{10, 8}}, ggufTensor{"blk.0.ffn_gate_inp.weight", []int64{3, 8}},
		ggufTensor{"blk.0.ffn_gate_exps.weight", []int64{3, 4, 8}}, ggufTensor{"blk.0.ffn_down_exps.weight", []int64{3, 8, 4}},
		ggufTensor{"blk.0.attn_q_norm.weight", []int64{6}}, ggufTensor{"blk.00.attn_q.weight", []int64{6}})
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := strings.Join(c.Unused(), " "); got != "blk.00.attn_q.weight lm_head.weight model.embed_tokens.weight "+
		"model.layers.0.mlp.experts.0.down_proj.weight model.layers.0.mlp.experts.0.gate_proj.weight "+
		"model.layers.0.mlp.experts.1.down_proj.weight model.layers.0.mlp.experts.1.gate_proj.weight "+
		"model.layers.0.mlp.experts.2.down_proj.weight model.layers.0.mlp.experts.2.gate_proj.weight "+
		"model.layers.0.mlp.gate.weight model.layers.0.self_attn.q_norm.weight" {
		t.Errorf("names: %s", got)
	}
	if got := fmt.Sprint(firstColumn(t, c, "model.layers.0.mlp.experts.1.down_proj.weight")); got != "[32 36 40 44 48 52 56 60]" {
		t.Errorf("rows of expert 1: %s", got)
	}
	info, _ := c.Info("model.layers.0.mlp.experts.2.gate_proj.weight")
	if info.String() != "model.layers.0.mlp.experts.2.gate_proj.weight F32 [4, 8]" {
		t.Errorf("expert: %v", info)
	}
	config := c.Config()
	got := fmt.Sprint(config.String("model_type"), config.Int("num_experts"), config.Int("num_experts_per_tok"), config.Int("moe_intermediate_size"),
		config.Bool("norm_topk_prob"), config.Int("num_key_value_heads"), config.Int("head_dim"), config.Bool("tie_word_embeddings"))
	if got != "qwen3_moe3 2 4 true 1 6 false" || config.Err() != nil {
		t.Errorf("configuration: %s, %v", got, config.Err())
	}
}

func TestGGUFRefuses(t *testing.T) {
	cases := []struct {
		name    string
		keys    map[string]any
		tensors []ggufTensor
		want    string
	}{
		{"good", nil, nil, ""},
		{"architecture", map[string]any{"general.architecture": "mamba"}, nil, `"mamba" is not supported`},
		{"split", map[string]any{"split.count": 2, "split.no": 0}, nil, "call it NAME-00001-of-00002.gguf"},
		{"adapter", map[string]any{"general.type": "adapter"}, nil, "this is a LoRA adapter"},
		{"projector", map[string]any{"general.type": "mmproj"}, nil, "the projector of images of a model"},
		{"older projector", map[string]any{"general.architecture": "clip"}, nil, "the projector of images of a model"},
		{"importance matrix", map[string]any{"general.type": "imatrix"}, nil, "an importance matrix"},
		{"model", map[string]any{"general.type": "model"}, nil, ""},
		{"mixtral", map[string]any{"llama.expert_count": 8}, nil, "use the HuggingFace checkpoint"},
		{"heads are text", map[string]any{"llama.attention.head_count": "two"}, nil, "llama.attention.head_count is string, wanted an integer"},
		{"heads differ", map[string]any{"llama.attention.head_count_kv": []int32{1, 2}}, nil, "differs between layers"},
		{"no head", map[string]any{"llama.attention.head_count": 0}, nil, "num_attention_heads is 0"},
		{"value length", map[string]any{"llama.attention.value_length": 3}, nil, "value_length is 3"},
		{"no block", map[string]any{"llama.block_count": 100000}, nil, "num_hidden_layers is 100000"},
		{"epsilon", map[string]any{"llama.attention.layer_norm_rms_epsilon": float32(math.NaN())}, nil, "no finite number"},
		{"flat experts", nil, []ggufTensor{{"blk.0.ffn_up_exps.weight", []int64{8, 8}}}, "wanted [experts, rows, columns]"},
		{"many experts", nil, []ggufTensor{{"blk.0.ffn_up_exps.weight", []int64{5000, 1, 1}}}, "at most 4096 experts"},
		{"two of one name", nil, []ggufTensor{{"model.embed_tokens.weight", []int64{1}}}, "are both model.embed_tokens.weight"},
	}
	for _, c := range cases {
		checkpoint, err := Open(writeGGUF(t, with(llamaKeys, c.keys), append(c.tensors, embedding)...))
		if !matches(err, c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
		if err == nil {
			checkpoint.Close()
		}
	}
	if _, err := Open(writeGGUF(t, llamaKeys)); !matches(err, "without tensors") {
		t.Errorf("a file without tensors: %v", err)
	}
	if _, err := Open(writeGGUF(t, map[string]any{"general.architecture": "llama"}, ggufTensor{"x", []int64{1}})); !matches(err, "llama.embedding_length: no such key") || !matches(err, "token_embd") {
		t.Errorf("a file without keys: %v, want all that is missing", err)
	}
}

func TestGGUFVocabulary(t *testing.T) {
	good := map[string]any{"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": []string{"a", "b"}, "tokenizer.ggml.scores": []float32{0, -1},
		"tokenizer.ggml.token_type": []int32{1, 3}, "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.add_space_prefix": false}
	cases := []struct {
		name string
		keys map[string]any
		want string
	}{
		{"good", nil, ""},
		{"few scores", map[string]any{"tokenizer.ggml.scores": []float32{0}}, "scores has 1 elements, tokenizer.ggml.tokens 2"},
		{"many scores", map[string]any{"tokenizer.ggml.scores": []float32{0, -1, -2}}, ""},
		{"few types", map[string]any{"tokenizer.ggml.token_type": []int32{1}}, "token_type has 1 elements"},
		{"many types", map[string]any{"tokenizer.ggml.token_type": []int32{1, 3, 1, 1}}, ""},
		{"id beyond", map[string]any{"tokenizer.ggml.eos_token_id": 2}, ""},
		{"id of -1", map[string]any{"tokenizer.ggml.eos_token_id": -1}, ""},
		{"id in an array of one", map[string]any{"tokenizer.ggml.bos_token_id": []int32{1}}, ""},
		{"id as text", map[string]any{"tokenizer.ggml.mask_token_id": "2"}, "mask_token_id is string"},
		{"first token beyond", map[string]any{"tokenizer.ggml.bos_token_id": 2}, "begin or end with a token that is none of the 2"},
		{"last token beyond", map[string]any{"tokenizer.ggml.eos_token_id": 9, "tokenizer.ggml.add_eos_token": true}, "begin or end with a token that is none of the 2"},
		{"flag as a number", map[string]any{"tokenizer.ggml.add_space_prefix": 0}, ""},
		{"type", map[string]any{"tokenizer.ggml.merges": "x"}, "merges is string"},
		{"flag as text", map[string]any{"tokenizer.ggml.add_eos_token": "no"}, "add_eos_token is string"},
		{"no tokens", map[string]any{"tokenizer.ggml.tokens": []string{}}, "carries no tokenizer"},
	}
	for _, c := range cases {
		checkpoint, err := Open(writeGGUF(t, with(llamaKeys, with(good, c.keys)), embedding))
		if err != nil {
			t.Fatal(err)
		}
		a, err := checkpoint.Assets()
		if !matches(err, c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
		if v := a.Vocabulary; err == nil && (v.BOS != 1 || v.EOS != -1 || v.AddBOS != nil || v.AddSpacePrefix == nil || *v.AddSpacePrefix || v.Pre != "default" || v.Types[1] != 3 || v.Scores[1] != -1 || a.ChatTemplate != nil) {
			t.Errorf("%s: %+v", c.name, v)
		}
		checkpoint.Close()
	}
}

func TestSmolLM2(t *testing.T) {
	c, err := Open(testdata.Cache(t, "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	config := c.Config()
	got := fmt.Sprint(config.Strings("architectures"), config.Int("hidden_size"), config.Int("num_hidden_layers"), config.Int("num_attention_heads"),
		config.Int("num_key_value_heads"), config.Int("head_dim"), config.Int("intermediate_size"), config.Float("rms_norm_eps"),
		config.Float("rope_theta"), config.Int("vocab_size"), config.Bool("tie_word_embeddings"), config.Int("max_position_embeddings"),
		config.Ints("eos_token_id"), config.Has("rope_scaling"), config.Has("partial_rotary_factor"))
	if want := "[LlamaForCausalLM] 576 30 9 3 64 1536 1e-05 100000 49152 true 8192 [2] false false"; got != want || config.Err() != nil {
		t.Errorf("configuration: %s, %v; want %s", got, config.Err(), want)
	}
	wants := []Want{{Name: "model.embed_tokens.weight", Shape: []int64{49152, 576}}, {Name: "model.norm.weight", Shape: []int64{576}}}
	for layer := range 30 {
		for name, shape := range map[string][]int64{
			"input_layernorm": {576}, "post_attention_layernorm": {576}, "self_attn.q_proj": {576, 576}, "self_attn.k_proj": {192, 576},
			"self_attn.v_proj": {192, 576}, "self_attn.o_proj": {576, 576}, "mlp.gate_proj": {1536, 576}, "mlp.up_proj": {1536, 576}, "mlp.down_proj": {576, 1536},
		} {
			wants = append(wants, Want{Name: fmt.Sprintf("model.layers.%d.%s.weight", layer, name), Shape: shape})
		}
	}
	if err := Check(c, wants); err != nil {
		t.Error(err)
	}
	for _, want := range wants {
		x, err := c.Tensor(want.Name)
		if err == nil {
			err = Finite(x)
		}
		if err != nil {
			t.Error(err)
		}
		c.Release(x)
	}
	if err := CheckUsed(c, func(string) bool { return false }); err != nil {
		t.Error(err)
	}
	a, err := c.Assets()
	if err != nil {
		t.Fatal(err)
	}
	v := a.Vocabulary
	if v.Model != "gpt2" || v.Pre != "smollm" || len(v.Tokens) != 49152 || len(v.Merges) != 48900 || v.BOS != 1 || v.EOS != 2 || v.Padding != 2 || v.Unknown != 0 ||
		v.AddEOS != nil || !strings.HasPrefix(string(a.ChatTemplate), "{% for message") {
		t.Errorf("vocabulary: %s %s, %d tokens, %d merges, bos %d", v.Model, v.Pre, len(v.Tokens), len(v.Merges), v.BOS)
	}
	if q, _ := c.Info("model.layers.0.self_attn.q_proj.weight"); q.Type != tensor.Q4_1 {
		t.Errorf("q_proj is %v, want Q4_1", q.Type)
	}
}
