package quant

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/internal/testdata"
)

func read(t *testing.T, config string) (*Rules, error) {
	t.Helper()
	c, err := weights.ParseConfig("config.json", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return Read(c)
}

// group is a group of compressed-tensors.
func group(targets, weights string) string {
	return `{"targets": [` + targets + `], "weights": {` + weights + `}}`
}

const (
	nvfp4  = `"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16, "dynamic": false`
	ctHead = `{"quantization_config": {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", `
	ctEnd  = `, "config_groups": {"group_0": {"targets": ["Linear"], "weights": {` + nvfp4 + `}, "input_activations": {"num_bits": 4, "type": "float", "dynamic": "local"}}}}}`
)

// The published recipes: what is said of the modules of each, by the names that the loader gives them.
func TestPublishedRecipes(t *testing.T) {
	const (
		layer = "model.layers.3."
		plain = "plain by "
	)
	cases := []struct {
		name, config string
		want         map[string]string // by module
	}{
		{"Qwen3-235B NVFP4 of modelopt: attention is left out by globs with prefixes", `{"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16,
			"ignore": ["lm_head", "model.layers.*.mlp.gate", "model.layers.*.self_attn.q_proj", "model.layers.*.self_attn.k_proj", "model.layers.*.self_attn.v_proj"]}}`, map[string]string{
			layer + "self_attn.q_proj": plain + `ignore "model.layers.*.self_attn.q_proj"`, layer + "self_attn.o_proj": "nvfp4 by quant_algo NVFP4",
			layer + "mlp.experts.127.gate_proj": "nvfp4 by quant_algo NVFP4", "lm_head": plain + `ignore "lm_head"`, layer + "mlp.gate": "nothing"}},
		{"Qwen3-Next NVFP4 of modelopt, beside config.json", `{"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "group_size": 16,
			"exclude_modules": ["lm_head", "mtp*", "model.layers.0.linear_attn.in_proj_qkvz", "model.layers.0.self_attn*", "*conv1d*", "*.shared_expert_gate"]}}`, map[string]string{
			"mtp.layers.0.self_attn.q_proj": plain + `exclude_modules "mtp*"`, "model.layers.0.linear_attn.in_proj_qkvz": plain + `exclude_modules "model.layers.0.linear_attn.in_proj_qkvz"`,
			"model.layers.10.linear_attn.in_proj_qkvz": "nvfp4 by quant_algo NVFP4", "model.layers.0.self_attn.q_proj": plain + `exclude_modules "model.layers.0.self_attn*"`,
			layer + "mlp.shared_expert.up_proj": "nvfp4 by quant_algo NVFP4", layer + "mlp.shared_expert_gate": "nothing", layer + "linear_attn.conv1d": "nothing"}},
		{"Qwen3-Coder-Next and Qwen3.5 NVFP4 of compressed-tensors", ctHead + `"ignore": ["lm_head", "re:.*linear_attn.*", "re:.*mlp.gate$", "re:.*shared_expert_gate$", "re:.*visual.*", "re:^mtp.*"]` + ctEnd, map[string]string{
			"lm_head": plain + `ignore "lm_head"`, layer + "linear_attn.out_proj": plain + `ignore "re:.*linear_attn.*"`, layer + "mlp.experts.0.gate_proj": "nvfp4 by config_groups.group_0",
			layer + "self_attn.q_proj": "nvfp4 by config_groups.group_0", "model.visual.blocks.0.attn.qkv": plain + `ignore "re:.*visual.*"`, "mtp.fc": plain + `ignore "re:^mtp.*"`}},
		{"Qwen3.5-27B NVFP4 of compressed-tensors, with the names of the wrapped model", ctHead + `"ignore": ["lm_head", "model.language_model.layers.3.linear_attn.in_proj_a", "re:model.language_model.layers.4.*", "re:language_model\\.model\\.layers\\.5\\..*"]` + ctEnd, map[string]string{
			layer + "linear_attn.in_proj_a": plain + `ignore "model.language_model.layers.3.linear_attn.in_proj_a"`, "model.layers.30.linear_attn.in_proj_a": "nvfp4 by config_groups.group_0",
			"model.layers.4.mlp.up_proj": plain + `ignore "re:model.language_model.layers.4.*"`, "model.layers.5.mlp.up_proj": plain + `ignore "re:language_model\\.model\\.layers\\.5\\..*"`,
			"model.layers.6.mlp.up_proj": "nvfp4 by config_groups.group_0"}},
		{"Qwen3.6 FP8 of blocks: whole names", `{"quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128],
			"modules_to_not_convert": ["lm_head", "model.language_model.layers.3.linear_attn.in_proj_a", "model.language_model.layers.3.mlp.gate", "model.visual.merger.linear_fc1", "mtp.fc"]}}`, map[string]string{
			layer + "linear_attn.in_proj_a": plain + `modules_to_not_convert "model.language_model.layers.3.linear_attn.in_proj_a"`, layer + "linear_attn.in_proj_qkv": "fp8 of blocks by quant_method fp8",
			"mtp.fc": plain + `modules_to_not_convert "mtp.fc"`, "mtp.layers.0.mlp.experts.3.up_proj": "fp8 of blocks by quant_method fp8"}},
		{"MiniMax-M2 FP8: parts of names", `{"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128], "ignored_layers": ["router_gate", "e_score_correction_bias", "lm_head", "self_attn"]}}`, map[string]string{
			"model.layers.1.block_sparse_moe.router_gate": plain + `ignored_layers "router_gate"`, "model.layers.1.block_sparse_moe.router_gates": "fp8 of blocks by quant_method fp8",
			"model.layers.1.self_attn.q_proj": plain + `ignored_layers "self_attn"`, "model.layers.1.self_attn2.q_proj": "fp8 of blocks by quant_method fp8"}},
		{"Gemma-4 weight-only NVFP4 of modelopt", `{"quantization_config": {"quant_algo": "W4A16_NVFP4", "exclude_modules": ["*embed*", "*router*", "*vision_tower*"]}}`, map[string]string{
			"model.vision_tower.encoder.layers.0.mlp.fc1": plain + `exclude_modules "*vision_tower*"`, layer + "mlp.up_proj": "nvfp4 by quant_algo W4A16_NVFP4"}},
		{"Nemotron-3-Super: a table of modules", `{"quantization_config": {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "ignore": [], "quantized_layers": {
			"backbone.layers.1.mixer.experts.0.up_proj": {"quant_algo": "NVFP4", "group_size": 16}, "backbone.layers.0.mixer.in_proj": {"quant_algo": "FP8"}, "backbone.layers.2.mixer.experts": {"quant_algo": "NVFP4", "group_size": 16}}}}`, map[string]string{
			"backbone.layers.1.mixer.experts.0.up_proj": `nvfp4 by quantized_layers "backbone.layers.1.mixer.experts.0.up_proj"`, "backbone.layers.0.mixer.in_proj": `fp8 by quantized_layers "backbone.layers.0.mixer.in_proj"`,
			"backbone.layers.2.mixer.experts.9.down_proj": `nvfp4 by quantized_layers "backbone.layers.2.mixer.experts"`, "backbone.layers.7.mixer.in_proj": "plain by quantized_layers, which have no such module"}},
		{"groups by names and by class", `{"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {
			"group_0": ` + group(`"Linear"`, nvfp4) + `, "group_1": ` + group(`"re:.*self_attn.*"`, `"num_bits": 8, "type": "float", "strategy": "channel"`) + `}}}`, map[string]string{
			layer + "self_attn.q_proj": `fp8 by config_groups.group_1 "re:.*self_attn.*"`, layer + "mlp.up_proj": "nvfp4 by config_groups.group_0"}},
		{"targets without a class", `{"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0": ` + group(`"re:.*experts.*"`, nvfp4) + `}}}`, map[string]string{
			layer + "mlp.experts.0.up_proj": `nvfp4 by config_groups.group_0 "re:.*experts.*"`, layer + "mlp.up_proj": "plain by config_groups, which have no such target"}},
		{"quark", `{"quantization_config": {"quant_method": "quark", "exclude": ["lm_head", "*self_attn*", "re:.*block_sparse_moe.bias"], "global_quant_config": {"weight": {"dtype": "fp4", "group_size": 32}}}}`, map[string]string{
			layer + "self_attn.q_proj": plain + `exclude "*self_attn*"`, layer + "mlp.experts.0.w1": "mxfp4 by global_quant_config"}},
		{"nothing", `{}`, map[string]string{layer + "mlp.up_proj": "nothing"}},
		{"null", `{"quantization_config": null}`, map[string]string{layer + "mlp.up_proj": "nothing"}},
		{"modelopt without an algorithm", `{"quantization_config": {"quant_method": "modelopt"}}`, map[string]string{layer + "mlp.up_proj": "nothing"}},
	}
	for _, c := range cases {
		r, err := read(t, c.config)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for module, want := range c.want {
			for range 2 { // what was found out is kept
				if got := r.Of(module).String(); got != want {
					t.Errorf("%s: %s is %s, want %s", c.name, module, got, want)
				}
			}
		}
	}
}

// Each scheme has one form, whatever method names it.
func TestSchemes(t *testing.T) {
	ct := func(weights, rest string) string {
		return `{"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"], "weights": {` + weights + `}` + rest + `}}}}`
	}
	algorithm := func(name string) string {
		return `{"quantization_config": {"quant_method": "modelopt", "quant_algo": "` + name + `"}}`
	}
	const (
		perToken = `, "input_activations": {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": true}`
		perGroup = `, "input_activations": {"num_bits": 8, "type": "float", "strategy": "group", "group_size": 128, "dynamic": true}`
	)
	cases := []struct {
		config string
		want   Rule
	}{
		{ct(nvfp4, ""), Rule{Form: NVFP4, Group: 16}},
		{ct(`"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32`, ""), Rule{Form: MXFP4, Group: 32}},
		{ct(`"num_bits": 8, "type": "float", "strategy": "group", "group_size": 32`, ""), Rule{Form: MXFP8, Group: 32}},
		{ct(`"num_bits": 8, "type": "float", "strategy": "tensor"`, ""), Rule{Form: FP8}},
		{ct(`"num_bits": 8, "type": "float", "strategy": "channel", "group_size": -1`, perToken), Rule{Form: FP8, PerRow: true}},
		{ct(`"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]`, perGroup), Rule{Form: FP8Blocks, Block: [2]int{128, 128}, Per128: true}},
		{ct(`"num_bits": 8, "type": "float", "strategy": "block", "block_structure": "64x128"`, ""), Rule{Form: FP8Blocks, Block: [2]int{64, 128}}},
		{ct(`"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128`, ""), Rule{Form: Int4, Group: 128}},
		{ct(`"num_bits": 8, "type": "int", "strategy": "channel"`, ""), Rule{Form: Int8}},
		{ct(`"num_bits": 3, "type": "int"`, ""), Rule{Form: Other}},
		{ct(``, ""), Rule{}},
		{algorithm("FP8"), Rule{Form: FP8}},
		{algorithm("FP8_PER_CHANNEL_PER_TOKEN"), Rule{Form: FP8, PerRow: true}},
		{algorithm("FP8_PB_WO"), Rule{Form: FP8Blocks}},
		{algorithm("W4A16_NVFP4"), Rule{Form: NVFP4}},
		{algorithm("W4A8_AWQ"), Rule{Form: Int4}},
		{algorithm("MXFP8"), Rule{Form: MXFP8}},
		{algorithm("SOMETHING"), Rule{Form: Other}},
		{`{"quantization_config": {"quant_method": "fp8", "activation_scheme": "static"}}`, Rule{Form: FP8}},
		{`{"quantization_config": {"quant_method": "fp8"}}`, Rule{Form: FP8, PerRow: true, Per128: true}},
		{`{"quantization_config": {"weight_block_size": [128, 128]}}`, Rule{Form: FP8Blocks, Block: [2]int{128, 128}}},
		{`{"quantization_config": {"quant_method": "fbgemm_fp8"}}`, Rule{Form: FP8}},
		{`{"quantization_config": {"quant_method": "mxfp4"}}`, Rule{Form: MXFP4, Group: 32}},
		{`{"quantization_config": {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}}}}`, Rule{Form: FP8}},
		{`{"quantization_config": {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "uint4"}}}}`, Rule{Form: Int4}},
		{`{"quantization_config": {"quant_method": "awq", "bits": 4}}`, Rule{Form: Other}},
		{`{"quantization": {"bits": 4}}`, Rule{Form: Other}},
	}
	for _, c := range cases {
		r, err := read(t, c.config)
		if err != nil {
			t.Errorf("%s: %v", c.config, err)
			continue
		}
		got := r.Of("model.layers.0.mlp.up_proj")
		if got.By = ""; got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.config, got, c.want)
		}
	}
}

// What cannot be read is an error that names the key and the value.
func TestUnreadable(t *testing.T) {
	cases := []struct{ config, want string }{
		{`{"quantization_config": "fp8"}`, `quantization_config is "fp8", wanted an object`},
		{`{"quantization_config": {"quant_method": "fp8", "weight_block_size": [128]}}`, "weight_block_size has 1 numbers, wanted rows and columns"},
		{`{"quantization_config": {"quant_method": "fp8", "weight_block_size": [0, 0]}}`, "weight_block_size is [0 0], wanted rows and columns of at least 1"},
		{`{"quantization_config": {"quant_method": "fp8", "weight_block_size": [-1, 128]}}`, "weight_block_size is [-1 128], wanted rows and columns of at least 1"},
		{`{"quantization_config": {"quant_method": "fp8", "modules_to_not_convert": "lm_head"}}`, `modules_to_not_convert is "lm_head", wanted an array of strings`},
		{ctHead + `"ignore": ["re:^(?!.*experts).*"]` + ctEnd, `quantization_config.ignore has the pattern "re:^(?!.*experts).*", which cannot be read`},
		{`{"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["re:("]}}}}`, `config_groups.group_0.targets has the pattern "re:("`},
		{`{"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"g": ` + group(`"Linear"`, `"num_bits": 8, "type": "float", "strategy": "block", "block_structure": "wide"`) + `}}}`, `block_structure is "wide", wanted rows and columns such as 128x128`},
		{`{"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"g": ` + group(`"Linear"`, `"num_bits": 8, "type": "float", "strategy": "block", "block_structure": "128x0"`) + `}}}`, `block_structure is [128 0], wanted rows and columns of at least 1`},
		{`{"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"g": ` + group(`"Linear"`, `"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128]`) + `}}}`, `block_structure has 1 numbers, wanted rows and columns`},
	}
	for _, c := range cases {
		if _, err := read(t, c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.config, err, c.want)
		}
	}
}

func TestGlobs(t *testing.T) {
	cases := []struct {
		glob, name string
		want       bool
	}{
		{"*self_attn*", "layers.0.self_attn.q_proj", true},
		{"model.layers.*.mlp", "layers.0.mlp", true},
		{"model.layers.*.mlp", "layers.0.mlp.up_proj", false},
		{"layers.?.mlp", "layers.0.mlp", true},
		{"layers.?.mlp", "layers.10.mlp", false},
		{"layers.[0-3].mlp", "layers.2.mlp", true},
		{"layers.[!0-3].mlp", "layers.2.mlp", false},
		{"layers.[0-3.mlp*", "layers.2.mlp", false},
		{"*proj_1*", "layers.3.proj_1", true},
		{"*proj_1*", "layers.3.proj_2", false},
		{"*.0.mlp", "layers.0.mlp", true},
		{"*.0.mlp", "layers.1.mlp", false},
	}
	for _, c := range cases {
		l := newList(nil, "ignore", []string{c.glob}, dotted)
		if _, got := l.find(moduleOf(c.name)); got != c.want {
			t.Errorf("%s, %s: got %v", c.glob, c.name, got)
		}
	}
}

// A scheme for keys and values is noticed in both dialects.
func TestKeysAndValues(t *testing.T) {
	for config, want := range map[string]bool{
		`"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": {"num_bits": 8}`: true,
		`"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"`:       true,
		`"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8}`:              true,
		`"quant_method": "compressed-tensors", "kv_cache_scheme": null`:                         false,
		`"quant_method": "modelopt", "kv_cache_quant_algo": null`:                               false,
	} {
		r, err := read(t, `{"quantization_config": {`+config+`}}`)
		if err != nil || r.KeysAndValues != want {
			t.Errorf("%s: %v, %v", config, r.KeysAndValues, err)
		}
	}
}

// In the golden checkpoints all that the rules call quantised has scales, and nothing else has.
func TestGoldens(t *testing.T) {
	for _, name := range []string{"llama-fp8-block", "qwen3-nvfp4-ct", "qwen3-nvfp4-modelopt", "qwen3_moe-nvfp4-modelopt", "qwen3_5_moe-fp8-block", "qwen3_5_moe-nvfp4-ct", "qwen3_next-nvfp4-modelopt"} {
		c, err := weights.Open(testdata.Shared(t, "golden/"+name))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Read(c.Config())
		if err != nil {
			t.Fatal(err)
		}
		quantised := 0
		for _, tensor := range c.Unused() {
			module, plain := strings.CutSuffix(tensor, ".weight")
			if m, ok := strings.CutSuffix(tensor, ".weight_packed"); ok {
				module, plain = m, true
			}
			rule := r.Of(module)
			_, small, _ := strings.Cut(module, "linear_attn.in_proj_")
			if !plain || rule.Form == Unknown || strings.HasPrefix(tensor, "model.visual.") || slices.Contains([]string{"a", "b", "ba"}, small) { // some lists leave these out
				continue
			}
			_, scaled := c.Info(module + ".weight_scale")
			if _, inv := c.Info(module + ".weight_scale_inv"); inv {
				scaled = true
			}
			if scaled != (rule.Form != Plain) {
				t.Errorf("%s: %s has scales: %v, and is %v", name, module, scaled, rule)
			}
			if scaled {
				quantised++
			}
		}
		if quantised == 0 {
			t.Errorf("%s: nothing is quantised", name)
		}
		c.Close()
	}
}

// Rules are asked of tens of thousands of modules: what a pattern without digits says is found out once for all numbers.
func TestPatternsAreAskedOnce(t *testing.T) {
	l := newList(nil, "ignore", []string{"re:.*experts.*down_proj$"}, exact)
	for e := range 100 {
		if _, ok := l.find(moduleOf(fmt.Sprintf("model.layers.%d.mlp.experts.%d.down_proj", e%10, e))); !ok {
			t.Fatal("does not match")
		}
	}
	if n := len(l.patterns[0].known); n != 2 { // numbers of one digit and of two
		t.Errorf("%d names are kept, want 2", n)
	}
}

// Whatever a configuration holds, it gives rules or an error.
func FuzzRead(f *testing.F) {
	f.Add(`{"quantization_config": {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {"a.*": {"quant_algo": "FP8"}, "[": {}}}}`, "model.a.b")
	f.Add(ctHead+`"ignore": ["re:.*", "[", "model.", "..", ""]`+ctEnd, "model.language_model.")
	f.Add(`{"quantization_config": {"quant_method": "fp8", "weight_block_size": [], "ignored_layers": ["*[", "?", "a..b"]}}`, "a..b.")
	f.Fuzz(func(t *testing.T, config, module string) {
		c, err := weights.ParseConfig("config.json", []byte(config))
		if err != nil {
			return
		}
		r, err := Read(c)
		if err != nil && !strings.HasPrefix(err.Error(), "config.json: ") {
			t.Errorf("an error without its file: %v", err)
		}
		if first, second := r.Of(module), r.Of(module); first != second {
			t.Errorf("%v, and then %v", first, second)
		}
	})
}
