package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/golden"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// form is a way in which published checkpoints are quantised: what stores the matrices whose names match, and what config.json says.
type form struct {
	name   string
	says   string // the quantization_config
	stored map[string]quantiser
	scheme []op.Scheme // of the kernels that it needs
}

// Matrices that published checkpoints quantise, by regular expressions for their names.
const (
	linears = `_proj$|in_proj_(qkv|z|qkvz)$`
	experts = `\.experts\.\d+\.`
	mixers  = `self_attn\.._proj$|in_proj_(qkv|z|qkvz)$`
)

var forms = []form{
	{"fp8 of blocks", `{"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128], "modules_to_not_convert": ["lm_head"]}`,
		map[string]quantiser{linears: fp8Blocks}, []op.Scheme{op.SchemeF8Block}},
	{"fp8 of blocks, compressed-tensors", `{"quant_method": "compressed-tensors", "format": "float-quantized", "ignore": ["lm_head", "re:.*in_proj_(a|b|ba)$"], "config_groups": {"group_0":
		{"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}, "input_activations": null}}}`,
		map[string]quantiser{linears: fp8BlocksCompressed}, []op.Scheme{op.SchemeF8Block}},
	{"fp8 of rows", `{"quant_method": "compressed-tensors", "format": "float-quantized", "ignore": ["lm_head"], "config_groups": {"group_0":
		{"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}, "input_activations": {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": true}}}}`,
		map[string]quantiser{linears: fp8Rows}, []op.Scheme{op.SchemeF8}},
	{"fp8 of matrices", `{"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head", "*in_proj_b*", "*in_proj_a"]}`,
		map[string]quantiser{linears: fp8Whole}, []op.Scheme{op.SchemeF8}},
	{"nvfp4 of modelopt", `{"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16, "ignore": ["lm_head", "*in_proj_b*", "*in_proj_a"]}`,
		map[string]quantiser{linears: nvfp4Modelopt}, []op.Scheme{op.SchemeNVFP4}},
	{"nvfp4 of compressed-tensors", `{"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "ignore": ["lm_head", "re:.*in_proj_(a|b|ba)$"], "config_groups": {"group_0":
		{"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}, "input_activations": {"num_bits": 4, "type": "float", "dynamic": "local"}}}}`,
		map[string]quantiser{linears: nvfp4Compressed}, []op.Scheme{op.SchemeNVFP4}},
	{"nvfp4 of weights alone", `{"quant_algo": "W4A16_NVFP4", "group_size": 16, "exclude_modules": ["lm_head"]}`,
		map[string]quantiser{linears: nvfp4Weights}, []op.Scheme{op.SchemeNVFP4}},
	{"nvfp4 of experts alone", `{"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16, "ignore": ["lm_head", "*self_attn*", "*linear_attn*", "*shared_expert*", "*mlp.gate_proj", "*mlp.up_proj", "*mlp.down_proj"]}`,
		map[string]quantiser{experts: nvfp4Modelopt}, []op.Scheme{op.SchemeNVFP4}},
	{"three precisions", `{"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "ignore": [], "quantized_layers": {TABLE}}`,
		map[string]quantiser{experts: nvfp4Modelopt, mixers: fp8Whole}, []op.Scheme{op.SchemeNVFP4, op.SchemeF8}},
}

// pair is a quantised copy of a checkpoint, and a copy of what that stands for, in bf16.
type pair struct{ quantised, plain string }

// quantise writes both copies of a golden checkpoint.
func (f form) quantise(t *testing.T, name string) pair {
	t.Helper()
	c := opened(t, testdata.Shared(t, "golden/"+name))
	defer c.Close()
	var quantised, plain []weights.Tensor
	table := map[string]any{} // of modelopt
	for _, name := range c.Unused() {
		x, err := c.Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		module, ok := strings.CutSuffix(name, ".weight")
		i := slices.IndexFunc(slices.Sorted(maps.Keys(f.stored)), func(pattern string) bool {
			return ok && len(x.Shape) == 2 && strings.HasPrefix(name, "model.layers.") && regexp.MustCompile(pattern).MatchString(module)
		})
		if i < 0 {
			quantised, plain = append(quantised, x), append(plain, x)
			continue
		}
		pattern := slices.Sorted(maps.Keys(f.stored))[i]
		m := readMatrix(t, x, module)
		tensors, values := f.stored[pattern](m)
		quantised, plain = append(quantised, tensors...), append(plain, madeBF16(t, m, values))
		algorithm := map[string]any{"quant_algo": "FP8"}
		if pattern == experts {
			algorithm = map[string]any{"quant_algo": "NVFP4", "group_size": 16}
		}
		table[module] = algorithm
	}
	settings, err := c.Config().JSON()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := json.Marshal(table)
	if err != nil {
		t.Fatal(err)
	}
	says := strings.Replace(f.says, "{TABLE}", string(entries), 1)
	return pair{
		writeCheckpoint(t, `{"quantization_config": `+says+`, `+string(settings[1:]), quantised),
		writeCheckpoint(t, string(settings), plain),
	}
}

func writeCheckpoint(t *testing.T, config string, tensors []weights.Tensor) string {
	t.Helper()
	folder := t.TempDir()
	if err := safetensors.Write(filepath.Join(folder, safetensors.SingleName), tensors...); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// logitsOf are those of a few tokens, with a cache in f32 and activations as they are.
func logitsOf(t *testing.T, target *instance.Target, folder string) []float32 {
	t.Helper()
	sizes := instance.Sizes{MaxContext: 64, MaxSequences: 1, MaxBatchTokens: 16, KVType: op.F32, Memory: 1 << 30, KeepActivations: true}
	c := opened(t, folder)
	defer c.Close()
	m := placeSized(t, target, c, sizes)
	defer m.Close()
	d, err := m.Direct(64)
	if err != nil {
		t.Fatal(err)
	}
	logits, err := d.Logits([]int32{17, 3, 250, 99, 3, 41, 8, 200, 17, 5}, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	return logits
}

// However a checkpoint is quantised, its logits are those of the values that it stands for: bit for bit where sums are as exact as on the
// reference, and on hardware that has kernels for it as closely as any two exact kernels agree.
func TestQuantisedCopiesEqualTheirValues(t *testing.T) {
	for _, name := range []string{"qwen3", "qwen3_next", "qwen3_5_moe"} {
		for _, f := range forms {
			if name == "qwen3" && f.stored[experts] != nil {
				continue
			}
			t.Run(name+"/"+f.name, func(t *testing.T) {
				copies := f.quantise(t, name)
				checkForms(t, f, copies.quantised)
				target := onOracle(op.F32)
				got, want := logitsOf(t, target, copies.quantised), logitsOf(t, target, copies.plain)
				apart := f.stored[experts] != nil // a shared expert of another scheme is added after the others
				if !slices.Equal(got, want) && !(apart && relative(got, want) < 1e-6) {
					t.Errorf("max |Δlogit| is %v, relative %v: want the same logits", golden.Worst(got, want), relative(got, want))
				}
				eachHardwareThat(t, keepsF32, true, func(t *testing.T, target *instance.Target) {
					if got, want := logitsOf(t, target, copies.quantised), logitsOf(t, target, copies.plain); !(golden.Worst(got, want) <= 2e-3) {
						t.Errorf("max |Δlogit| is %v, want at most 2e-3", golden.Worst(got, want))
					}
				})
			})
		}
	}
}

// checkForms checks that all schemes of a form are there, and that what is said of matrices is what is stored.
func checkForms(t *testing.T, f form, folder string) {
	t.Helper()
	c := opened(t, folder)
	defer c.Close()
	counter, err := instance.Wants(onOracle(op.F32), c, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := counter.Err(); err != nil {
		t.Fatal(err)
	}
	kept := map[string]bool{}
	for _, want := range counter.Wants {
		kept[counter.Kept(want.Name)] = true
	}
	for _, scheme := range f.scheme {
		if !kept[scheme.String()] {
			t.Errorf("no matrix is kept as %s", scheme)
		}
	}
	for _, line := range counter.Otherwise() {
		if !strings.Contains(line, "linear_attn.in_proj_") { // the small ones of delta nets, which few lists name
			t.Error(line)
		}
	}
}

// Experts that are stacked in one tensor are those that have tensors of their own.
func TestStackedExpertsEqualSingleOnes(t *testing.T) {
	path := testdata.Shared(t, "golden/qwen3_5_moe-mtp")
	c := opened(t, path)
	defer c.Close()
	var single []weights.Tensor
	for _, name := range c.Unused() { // of parts of the stacks
		x, err := c.Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		single = append(single, x)
	}
	settings, err := c.Config().JSON()
	if err != nil {
		t.Fatal(err)
	}
	target := onOracle(op.F32)
	if got, want := logitsOf(t, target, path), logitsOf(t, target, writeCheckpoint(t, string(settings), single)); !slices.Equal(got, want) {
		t.Errorf("max |Δlogit| is %v: want the same logits", golden.Worst(got, want))
	}
}
