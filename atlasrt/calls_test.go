package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/calls"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
)

const (
	denseConfig = `{"model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
		"head_dim": 128, "intermediate_size": 12288, "vocab_size": 151936, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6}`
	mixtureConfig = `{"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4,
		"head_dim": 128, "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936,
		"max_position_embeddings": 40960, "rms_norm_eps": 1e-6, "norm_topk_prob": true}`
	hybridConfig = `{"model_type": "qwen3_5_moe", "text_config": {"model_type": "qwen3_5_moe_text", "hidden_size": 2048, "num_hidden_layers": 40, "num_experts": 256,
		"num_experts_per_tok": 8, "rope_parameters": {"rope_theta": 1e7, "mrope_section": [11, 11, 10], "mrope_interleaved": true}}}`
)

// listCalls are the calls of a step on hardware that need not be here.
func listCalls(t *testing.T, config string, c callsCommand) ([]calls.Call, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(config), 0o666); err != nil {
		t.Fatal(err)
	}
	if c.Settings = file; c.Batch%2 == 0 {
		c.Settings = filepath.Dir(file)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	target, err := instance.Hardware{Bundles: bundles(), Name: c.Hardware, Exact: c.Exact}.Ask(c.Without...)
	if err != nil {
		t.Fatal(err)
	}
	return c.calls(target)
}

// A list has what the model really calls, fused where the hardware does, on hardware that is not here.
func TestCalls(t *testing.T) {
	cases := []struct {
		config          string
		command         callsCommand
		op, what, sizes string // of a call that is there
		count           int64
		kernel          string // part of the name of its first
	}{
		{denseConfig, callsCommand{Hardware: "h200", Quant: "nvfp4", Batch: 1, Context: 1024, Prompt: 1}, "NormLinear", "q+k+v_proj", "nvfp4 6144×4096 rows 1", 36, "norm_linear_nvfp4"},
		{denseConfig, callsCommand{Hardware: "h200", Quant: "f8block", Batch: 1, Context: 1024, Prompt: 1}, "GatedLinear", "gate+up_proj", "f8block 24576×4096 rows 1", 36, "gated_linear_f8block"},
		{denseConfig, callsCommand{Hardware: "h200", Quant: "q4_1", Batch: 16, Context: 1024, Prompt: 1}, "LinearAdd", "down_proj", "q4_1 4096×12288 rows 16", 36, "linear_q4"},
		{denseConfig, callsCommand{Hardware: "h200", Quant: "bf16", Batch: 2, Context: 512, Prompt: 256}, "Linear", "q+k+v_proj", "bf16 6144×4096 rows 512", 36, "linear_bf16"},
		{denseConfig, callsCommand{Hardware: "h200", Quant: "bf16", Batch: 64, Context: 1024, Prompt: 1, Exact: true}, "PagedAttention", "", "32/8×128 sequences 64 rows 64", 36, "attention"},
		{mixtureConfig, callsCommand{Hardware: "h200", Quant: "nvfp4", Batch: 16, Context: 1024, Prompt: 1}, "ExpertDownNorm", "experts.down_proj", "nvfp4 128×2048×768 top 8 rows 16", 48, "expert_down"},
		{mixtureConfig, callsCommand{Hardware: "b200", Quant: "bf16", Batch: 1, Context: 1024, Prompt: 1}, "Route", "", "experts 128 top 8 rows 1", 48, "route"},
		{hybridConfig, callsCommand{Hardware: "h200", Quant: "f8block", Batch: 1, Context: 1024, Prompt: 1}, "ExpertUp", "experts.gate+up_proj", "f8block 257×1024×2048 top 9 rows 1", 40, "expert_up_f8block"},
		{hybridConfig, callsCommand{Hardware: processors()[0].Hardware, Quant: "bf16", Batch: 2, Context: 64, Prompt: 1}, "SigmoidGate", "", "columns 4096 rows 2", 10, "sigmoid_gate"},
		{mixtureConfig, callsCommand{Hardware: processors()[0].Hardware, Quant: "q4_k_m", Batch: 1, Context: 512, Prompt: 512}, "Linear", "v_proj", "q6_k 512×2048 rows 512", 24, "linear"},
	}
	for _, x := range cases {
		list, err := listCalls(t, x.config, x.command)
		if err != nil {
			t.Fatalf("%+v: %v", x.command, err)
		}
		i := slices.IndexFunc(list, func(c calls.Call) bool { return c.Op == x.op && c.What == x.what && c.Sizes == x.sizes })
		if i < 0 {
			t.Errorf("%+v: no call %s of %s, %s, among %+v", x.command, x.op, x.what, x.sizes, list)
			continue
		}
		if c := list[i]; c.Count != x.count || c.Bytes <= 0 || len(c.Launches) == 0 || !strings.HasPrefix(c.Launches[0].Kernel, "atlas_"+x.kernel) {
			t.Errorf("%+v: got %+v, want it %d times with bytes and a kernel %s", x.command, c, x.count, x.kernel)
		}
		if last := list[len(list)-1]; last.Op != "Sample" || last.Count != 1 {
			t.Errorf("%+v: the last call is %+v, want one Sample", x.command, last)
		}
	}
}

// What a processor lacks changes what serves.
func TestCallsOfProcessorsThatLackFeatures(t *testing.T) {
	processor := processors()[0]
	command := callsCommand{Hardware: processor.Hardware, Quant: "q8_0", Batch: 1, Context: 64, Prompt: 64}
	with, err := listCalls(t, denseConfig, command)
	if err != nil {
		t.Fatal(err)
	}
	command.Without = processor.Features
	without, err := listCalls(t, denseConfig, command)
	if err != nil {
		t.Fatal(err)
	}
	first := func(list []calls.Call) string {
		return list[slices.IndexFunc(list, func(c calls.Call) bool { return c.Op == "Linear" })].Launches[0].Kernel
	}
	if len(command.Without) > 0 && first(with) == first(without) {
		t.Errorf("with and without %q: both launch %s", command.Without, first(with))
	}
}
