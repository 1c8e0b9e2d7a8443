package weights

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf/gguftest"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/internal/testdata"
)

func numbersOf(t *testing.T, x Tensor) []float32 {
	t.Helper()
	values := make([]float32, x.Elements())
	if err := gguf.Dequantize(values, x.Type, x.Data); err != nil {
		t.Fatal(err)
	}
	return values
}

// A converted checkpoint has HuggingFace's names, shapes and values; those that belong to value heads may be tiled.
func TestGGUFHybridTensors(t *testing.T) {
	for _, c := range []struct{ golden, kind string }{
		{"qwen3_next", "F32"}, {"qwen3_next", "Q4_0"}, {"qwen3_5_text", "BF16"}, {"qwen3_5_text", "Q8_0"}, {"qwen3_5_moe", "BF16"}, {"qwen3_5_moe", "Q4_0"},
	} {
		t.Run(c.golden+" "+c.kind, func(t *testing.T) {
			kind, _ := tensor.Parse(c.kind)
			file, plain := gguftest.Hybrid(t, testdata.Shared(t, "golden/"+c.golden), kind)
			opened, err := Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close()
			want, err := safetensors.Open(plain + "/model.safetensors")
			if err != nil {
				t.Fatal(err)
			}
			defer want.Close()
			for _, stored := range want.Names() {
				x, _ := want.Tensor(stored)
				name := strings.Replace(stored, "model.language_model.", "model.", 1)
				values := numbersOf(t, x)
				if strings.HasSuffix(name, "A_log") {
					name = strings.TrimSuffix(name, "_log")
					for i, v := range values {
						values[i] = float32(-math.Exp(float64(v)))
					}
				}
				if strings.HasSuffix(name, "norm.weight") && !strings.Contains(name, "linear_attn") {
					for i := range values {
						values[i]++
					}
				}
				if strings.Contains(name, "in_proj_qkvz") || strings.Contains(name, "in_proj_ba") {
					continue // see TestGGUFGroupedRows
				}
				got, err := opened.Tensor(name)
				if err != nil {
					t.Error(err)
					continue
				}
				if fmt.Sprint(got.Shape) != fmt.Sprint(x.Shape) {
					t.Errorf("%s has the shape %v, want %v", name, got.Shape, x.Shape)
					continue
				}
				read := numbersOf(t, got)
				if strings.Contains(name, "linear_attn") { // in another order
					slices.Sort(read)
					slices.Sort(values)
				}
				if !slices.Equal(read, values) {
					t.Errorf("%s has other values", name)
				}
			}
			if c.golden != "qwen3_next" {
				if unused := opened.Unused(); len(unused) > 0 {
					t.Errorf("names that HuggingFace does not have: %v", unused)
				}
			}
		})
	}
}

// hybridMetadata is the metadata of a model of two layers that keep a state, one with attention and one that predicts a further token. Key heads
// are 2, value heads 4, all of 2 elements.
func hybridMetadata(arch string, more map[string]any) map[string]any {
	keys := map[string]any{
		"block_count": 4, "embedding_length": 8, "context_length": 64, "attention.head_count": 2, "attention.head_count_kv": 1, "attention.key_length": 4,
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": 2, "nextn_predict_layers": 1, "full_attention_interval": 3,
		"ssm.conv_kernel": 4, "ssm.state_size": 2, "ssm.group_count": 2, "ssm.time_step_rank": 4, "ssm.inner_size": 8,
		"expert_count": 2, "expert_used_count": 1, "expert_feed_forward_length": 6, "expert_shared_feed_forward_length": 10,
	}
	if arch == "qwen35" {
		keys["feed_forward_length"] = 12
		for _, key := range []string{"expert_count", "expert_used_count", "expert_feed_forward_length", "expert_shared_feed_forward_length"} {
			delete(keys, key)
		}
	}
	all := map[string]any{"general.architecture": arch}
	for key, value := range with(keys, more) {
		if value != nil {
			all[arch+"."+key] = value
		}
	}
	return all
}

func TestGGUFHybridConfig(t *testing.T) {
	cases := []struct {
		name, arch string
		more       map[string]any
		want       string // part of the configuration, or of an error
	}{
		{"", "qwen35", nil, `"model_type":"qwen3_5_text"`},
		{"", "qwen35moe", nil, `"model_type":"qwen3_5_moe_text"`},
		{"", "qwen3next", nil, `"model_type":"qwen3_next"`},
		{"heads are tiled", "qwen35", nil, `"linear_value_heads_tiled":true`},
		{"heads are tiled", "qwen35moe", nil, `"linear_value_heads_tiled":true`},
		{"heads are grouped", "qwen3next", nil, `"linear_value_heads_tiled":false`},
		{"norms have their 1", "qwen3next", nil, `"norm_unit_offset":false`},
		{"layers that predict", "qwen35", nil, `"num_hidden_layers":3`},
		{"no layers that predict", "qwen35", map[string]any{"nextn_predict_layers": nil}, `"num_hidden_layers":4`},
		{"interval", "qwen35", nil, `"layer_types":["linear_attention","linear_attention","full_attention"]`},
		{"usual interval", "qwen35", map[string]any{"full_attention_interval": nil, "nextn_predict_layers": 0}, `"layer_types":["linear_attention","linear_attention","linear_attention","full_attention"]`},
		{"list", "qwen35", map[string]any{"attention.recurrent_layers": []bool{false, true, true, false}}, `"layer_types":["full_attention","linear_attention","linear_attention"]`},
		{"short list", "qwen35", map[string]any{"attention.recurrent_layers": []bool{true}}, "recurrent_layers lists 1 layers of 3"},
		{"heads", "qwen35", nil, `"linear_num_key_heads":2,"linear_num_value_heads":4,"linear_value_head_dim":2`},
		{"odd heads", "qwen35", map[string]any{"ssm.inner_size": 9}, "inner_size is 9, no multiple of the 4 value heads"},
		{"no heads", "qwen35", map[string]any{"ssm.group_count": nil}, "qwen35.ssm.group_count: no such key"},
		{"shared expert", "qwen35moe", nil, `"shared_expert_intermediate_size":10`},
		{"shared expert of the usual size", "qwen3next", map[string]any{"expert_shared_feed_forward_length": nil, "feed_forward_length": 14}, `"shared_expert_intermediate_size":14`},
		{"sections", "qwen35", map[string]any{"rope.dimension_sections": []int32{1, 0, 0, 0}}, `"rope_parameters":{"mrope_section":[1,0,0],"rope_type":"default"}`},
		{"sections beside a scaling", "qwen35", map[string]any{"rope.dimension_sections": []int32{1, 0, 0}, "rope.scaling.factor": float32(2)}, `"rope_scaling":{"factor":2,"mrope_section":[1,0,0],"rope_type":"linear"}`},
		{"four sections", "qwen35", map[string]any{"rope.dimension_sections": []int32{1, 0, 0, 1}}, "rope.dimension_sections is [1 0 0 1], wanted three numbers and 0"},
		{"all layers predict", "qwen35", map[string]any{"nextn_predict_layers": 4}, "nextn_predict_layers is 4 of 4 layers"},
		{"interval of 0", "qwen35", map[string]any{"full_attention_interval": 0}, "full_attention_interval is 0"},
		{"dense with experts", "qwen35", map[string]any{"expert_count": 2}, "expert_count is 2"},
	}
	for _, c := range cases {
		opened, err := Open(writeGGUF(t, hybridMetadata(c.arch, c.more), embedding))
		if err != nil {
			if !matches(err, c.want) {
				t.Errorf("%s %s: got %v, want %q", c.arch, c.name, err, c.want)
			}
			continue
		}
		text, err := json.Marshal(opened.Config().values)
		if err != nil || !strings.Contains(string(text), c.want) {
			t.Errorf("%s %s: got %s, %v; want %s", c.arch, c.name, text, err, c.want)
		}
		if unread := opened.Config().Unread(); len(unread) > 0 {
			t.Errorf("%s %s: unread %v", c.arch, c.name, unread)
		}
		opened.Close()
	}
}

// Rows that belong together by key head in the file are told apart, and so are those of matrices that one tensor holds.
func TestGGUFGroupedRows(t *testing.T) {
	tensors := []ggufTensor{embedding,
		{"blk.0.ssm_ba.weight", []int64{8, 1}}, {"blk.0.ssm_in.weight", []int64{24, 1}}, {"blk.0.ssm_a", []int64{4}}, {"blk.0.ssm_dt.bias", []int64{4}},
		{"blk.0.ssm_conv1d.weight", []int64{16, 4}}, {"blk.1.attn_qkv.weight", []int64{16, 1}}, {"blk.2.attn_qkv.weight", []int64{24, 1}}, {"blk.2.attn_output.weight", []int64{8, 8}},
		{"blk.2.ffn_gate_up_exps.weight", []int64{2, 4, 1}}, {"blk.2.ffn_gate_inp_shexp.weight", []int64{8}}, {"blk.2.ffn_up_shexp.weight", []int64{10, 1}},
		{"blk.3.nextn.eh_proj.weight", []int64{8, 16}}, {"blk.3.nextn.shared_head_norm.weight", []int64{8}}, {"blk.3.attn_q.weight", []int64{16, 1}},
	}
	c, err := Open(writeGGUF(t, hybridMetadata("qwen3next", nil), tensors...))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, want := range map[string]string{
		"model.layers.0.linear_attn.in_proj_b.weight":     "[4 1] [0 1 4 5]",
		"model.layers.0.linear_attn.in_proj_a.weight":     "[4 1] [2 3 6 7]",
		"model.layers.0.linear_attn.in_proj_qkv.weight":   "[16 1] [0 1 12 13 2 3 14 15 4 5 6 7 16 17 18 19]",
		"model.layers.0.linear_attn.in_proj_z.weight":     "[8 1] [8 9 10 11 20 21 22 23]",
		"model.layers.0.linear_attn.A":                    "[4] [0 1 2 3]",
		"model.layers.0.linear_attn.dt_bias":              "[4] [0 1 2 3]",
		"model.layers.0.linear_attn.conv1d.weight":        "[16 1 4] [0 4 8 12 16 20 24 28 32 36 40 44 48 52 56 60]",
		"model.layers.1.linear_attn.in_proj_qkv.weight":   "[16 1] [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]",
		"model.layers.2.self_attn.q_proj.weight":          "[16 1] [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]",
		"model.layers.2.self_attn.k_proj.weight":          "[4 1] [16 17 18 19]",
		"model.layers.2.self_attn.v_proj.weight":          "[4 1] [20 21 22 23]",
		"model.layers.2.mlp.experts.0.gate_proj.weight":   "[2 1] [0 1]",
		"model.layers.2.mlp.experts.1.up_proj.weight":     "[2 1] [6 7]",
		"model.layers.2.mlp.shared_expert_gate.weight":    "[1 8] [0]",
		"model.layers.2.mlp.shared_expert.up_proj.weight": "[10 1] [0 1 2 3 4 5 6 7 8 9]",
		"mtp.fc.weight":                        "[8 16] [0 16 32 48 64 80 96 112]",
		"mtp.norm.weight":                      "[8] [0 1 2 3 4 5 6 7]",
		"mtp.layers.0.self_attn.q_proj.weight": "[16 1] [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]",
	} {
		info, ok := c.Info(name)
		if !ok {
			t.Errorf("%s is missing", name)
			continue
		}
		if got := fmt.Sprint(info.Shape, firstColumn(t, c, name)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for _, bad := range []ggufTensor{
		{"blk.0.ssm_ba.weight", []int64{7, 1}}, {"blk.0.ssm_in.weight", []int64{25, 1}}, {"blk.0.ssm_ba.weight", []int64{0, 1}}, {"blk.0.ssm_ba.weight", nil},
	} {
		if _, err := Open(writeGGUF(t, hybridMetadata("qwen3next", nil), embedding, bad)); !matches(err, "its rows are not those that the metadata's heads have") {
			t.Errorf("%v: got %v", bad, err)
		}
	}
	output := ggufTensor{"blk.2.attn_output.weight", []int64{8, 8}}
	for _, rows := range []int64{0, 12, 48} {
		if _, err := Open(writeGGUF(t, hybridMetadata("qwen35", nil), embedding, output, ggufTensor{"blk.2.attn_qkv.weight", []int64{rows, 1}})); !matches(err, "its rows are not those") {
			t.Errorf("queries, keys and values of %d rows: got %v", rows, err)
		}
	}
	if _, err := Open(writeGGUF(t, hybridMetadata("qwen35moe", nil), embedding, ggufTensor{"blk.2.ffn_gate_up_exps.weight", []int64{2, 3, 1}})); !matches(err, "rows for gate_proj and up_proj") {
		t.Errorf("gates and ups of three rows: got %v", err)
	}
}

// Layers behind the count are those of a model that predicts further tokens only where the file says that it has some: else they keep
// their names, which no model asks for, and loading refuses them.
func TestGGUFLayersBehindTheCount(t *testing.T) {
	for _, c := range []struct {
		predicting any
		want       string
	}{
		{nil, "model.layers.4.self_attn.q_proj.weight model.layers.5.self_attn.q_proj.weight"},
		{0, "model.layers.4.self_attn.q_proj.weight model.layers.5.self_attn.q_proj.weight"},
		{1, "model.layers.4.self_attn.q_proj.weight model.layers.5.self_attn.q_proj.weight mtp.layers.0.self_attn.q_proj.weight"},
		{2, "model.layers.4.self_attn.q_proj.weight model.layers.5.self_attn.q_proj.weight mtp.layers.0.self_attn.q_proj.weight mtp.layers.1.self_attn.q_proj.weight"},
	} {
		tensors := []ggufTensor{{"blk.3.nextn.eh_proj.weight", []int64{8, 16}}}
		for layer := 2; layer < 6; layer++ {
			tensors = append(tensors, ggufTensor{fmt.Sprintf("blk.%d.attn_q.weight", layer), []int64{16, 1}})
		}
		checkpoint, err := Open(writeGGUF(t, hybridMetadata("qwen35", map[string]any{"nextn_predict_layers": c.predicting}), append(tensors, embedding)...))
		if err != nil {
			t.Fatal(err)
		}
		defer checkpoint.Close()
		var behind []string
		for _, name := range checkpoint.Unused() {
			if strings.HasPrefix(name, "mtp.layers.") || strings.HasPrefix(name, "model.layers.4.") || strings.HasPrefix(name, "model.layers.5.") {
				behind = append(behind, name)
			}
		}
		slices.Sort(behind)
		if got := strings.Join(behind, " "); got != c.want {
			t.Errorf("of 4 layers %v predict: got %s, want %s", c.predicting, got, c.want)
		}
	}
}

// A value that no model has is an error that names the file once.
func TestGGUFRangesNameTheFileOnce(t *testing.T) {
	path := writeGGUF(t, hybridMetadata("qwen35", map[string]any{"attention.head_count": 5000}), embedding)
	if _, err := Open(path); !matches(err, "num_attention_heads is 5000, wanted a number from 1 to 4096") || strings.Count(err.Error(), path) != 1 {
		t.Errorf("got %v", err)
	}
}

// A file that counts layers of the model's own among those that predict is refused: they would be left out.
func TestGGUFPredictingLayersPredict(t *testing.T) {
	own := ggufTensor{"blk.3.attn_q.weight", []int64{16, 1}}
	if _, err := Open(writeGGUF(t, hybridMetadata("qwen35", nil), embedding, own)); !matches(err, "nextn_predict_layers is 1 of 4 layers, but no layer has tensors nextn.…, which predict, and there is blk.3.attn_q.weight") {
		t.Errorf("got %v", err)
	}
	c, err := Open(writeGGUF(t, hybridMetadata("qwen35", nil), embedding))
	if err != nil {
		t.Fatalf("they are left out of the file: %v", err)
	}
	c.Close()
}
