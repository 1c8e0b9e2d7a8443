package targets

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// Each name matches at most one model, and those that are about another model none.
func TestMatching(t *testing.T) {
	models, err := Models(Embedded())
	if err != nil {
		t.Fatal(err)
	}
	const (
		smol   = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>"
		hybrid = "<|im_start|>{% if enable_thinking %}"
		chatML = "<|im_start|>"
		llama  = "<|start_header_id|>"
	)
	cases := []struct {
		architecture string
		names        []string
		template     string
		want         string
	}{
		{"llama", []string{"SmolLM2-135M-Instruct.Q4_1", "Smollm2 135M 8k Lc100K Mix1 Ep2"}, smol, "smollm2"},
		{"llama", []string{"renamed", "Smollm2 135M 8k Lc100K Mix1 Ep2"}, smol, "smollm2"},
		{"llama", []string{"HuggingFaceTB/SmolLM2-1.7B-Instruct"}, smol, "smollm2"},
		{"llama", []string{"SmolLM2-135M"}, "", ""},
		{"llama", []string{"SmolLM2-135M-tuned"}, chatML, ""},
		{"llama", []string{"something"}, smol, ""},
		{"qwen2", []string{"SmolLM2-135M-Instruct"}, smol, ""},
		{"llama", []string{"SmolLM-135M-Instruct"}, chatML, ""},

		{"qwen3", []string{"Qwen3-0.6B-Q8_0"}, hybrid, "qwen3"},
		{"qwen3", []string{"Qwen_Qwen3-8B-Q4_K_M"}, hybrid, "qwen3"},
		{"qwen3", []string{"Qwen/Qwen3-8B-FP8"}, hybrid, "qwen3"},
		{"qwen3", []string{"x", "Qwen3 8B Instruct"}, hybrid, "qwen3"},
		{"qwen3", []string{"qwen3:8b"}, hybrid, "qwen3"},
		{"qwen3_moe", []string{"Qwen3-30B-A3B-NVFP4"}, hybrid, "qwen3"},
		{"qwen3_moe", []string{"Qwen3-30B-A3B-Instruct-2507-UD-Q4_K_XL"}, chatML, "qwen3-instruct-2507"},
		{"qwen3", []string{"Qwen3-4B-Thinking-2507"}, "<think>", "qwen3-thinking-2507"},
		{"qwen3_moe", []string{"Qwen3-Coder-30B-A3B-Instruct"}, chatML, "qwen3-coder"},
		{"qwen3", []string{"Qwen3-8B-Q4_K_M-00001-of-00002"}, hybrid, "qwen3"},
		{"qwen3", []string{"unsloth/Qwen3-8B-unsloth-bnb-4bit"}, hybrid, "qwen3"},
		{"qwen3_moe", []string{"Qwen3-30B-A3B-MXFP4_MOE"}, hybrid, "qwen3"},
		{"qwen3", []string{"Qwen3-8B-Base"}, hybrid, ""},
		{"qwen3", []string{"Qwen3-8B-Base-Q4_K_M-00001-of-00002"}, hybrid, ""},
		{"qwen3", []string{"Qwen3-Embedding-0.6B"}, hybrid, ""},
		{"qwen3", []string{"Qwen3-8B"}, chatML, ""},
		{"qwen3", []string{"My-Qwen3-8B"}, hybrid, ""},
		{"qwen3", []string{"Qwen3-8B-abliterated"}, hybrid, ""},

		{"qwen2", []string{"Qwen2.5-7B-Instruct"}, chatML, "qwen2.5"},
		{"qwen2", []string{"qwen2.5-1.5b-instruct-q4_k_m"}, chatML, "qwen2.5-small"},
		{"qwen2", []string{"Qwen2-0.5B-Instruct-AWQ"}, chatML, "qwen2.5-small"},
		{"qwen2", []string{"Qwen2.5-Coder-7B-Instruct"}, chatML, ""},
		{"qwen2", []string{"Qwen2.5-7B"}, chatML, ""},
		{"qwen2", []string{"QwQ-32B-Q4_K_M"}, "<think>", "qwq"},
		{"qwen2", []string{"QwQ-32B-Preview"}, "<think>", ""},

		{"qwen3_next", []string{"nvidia/Qwen3-Next-80B-A3B-Instruct-NVFP4"}, chatML, "qwen3-next-instruct"},
		{"qwen3_next", []string{"Qwen3-Next-80B-A3B-Thinking"}, "<think>", "qwen3-next-thinking"},
		{"qwen3_next", []string{"RedHatAI/Qwen3-Coder-Next-NVFP4"}, chatML, "qwen3-coder-next"},
		{"qwen3_5_moe", []string{"Sehyo/Qwen3.5-122B-A10B-NVFP4"}, hybrid, "qwen3.5"},
		{"qwen3_5", []string{"Qwen3.5-4B"}, hybrid, ""},
		{"qwen3_5_moe", []string{"Qwen/Qwen3.6-35B-A3B-FP8"}, hybrid, "qwen3.6"},
		{"qwen3_vl_moe", []string{"ig1/Qwen3-VL-30B-A3B-Instruct-NVFP4"}, chatML, "qwen3-vl-instruct"},
		{"qwen3_vl", []string{"Qwen3-VL-8B-Thinking"}, "<think>", "qwen3-vl-thinking"},
		{"gemma4", []string{"google/gemma-4-31B-it"}, "<|turn>", "gemma-4"},
		{"gemma4", []string{"google/gemma-4-31B"}, "", ""},
		{"minimax_m2", []string{"lukealonso/MiniMax-M2.7-NVFP4"}, "]~b]", "minimax-m2"},
		{"minimax_m2", []string{"MiniMaxAI/MiniMax-M2"}, "]~b]", "minimax-m2"},
		{"nemotron_h", []string{"nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"}, chatML, "nemotron-3-nano"},
		{"nemotron_h", []string{"nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4"}, chatML, "nemotron-3-super"},
		{"llama", []string{"NousResearch/Hermes-2-Pro-Llama-3-8B"}, chatML, "hermes-2-pro"},
		{"llama", []string{"Hermes-3-Llama-3.1-8B.Q4_K_M"}, chatML, "hermes-3"},

		{"llama", []string{"Meta-Llama-3-8B-Instruct"}, llama, "llama-3"},
		{"llama", []string{"Llama-3.2-1B-Instruct-Q4_0"}, llama, "llama-3"},
		{"llama", []string{"x", "Meta Llama 3.1 8B Instruct"}, llama, "llama-3"},
		{"llama", []string{"RedHatAI/Llama-3.3-70B-Instruct-quantized.w4a16"}, llama, "llama-3"},
		{"llama", []string{"Llama-3.2-1B-Instruct-Q4_0_4_4"}, llama, "llama-3"},
		{"llama", []string{"Llama-3.1-8B"}, llama, ""},
		{"llama", []string{"Llama-3.1-8B-Instruct"}, chatML, ""},
		{"llama", []string{"DeepSeek-R1-Distill-Llama-8B", "DeepSeek R1 Distill Llama 8B"}, "", "deepseek-r1-distill"},
		{"qwen2", []string{"DeepSeek-R1-Distill-Qwen-1.5B-Q4_K_M"}, "", "deepseek-r1-distill"},
		{"qwen3", []string{"DeepSeek-R1-0528-Qwen3-8B"}, hybrid, "deepseek-r1-distill"},
		{"mistral", []string{"Mistral-Nemo-Instruct-2407"}, "[INST]", "mistral-nemo"},
		{"llama", []string{"Mistral-Small-24B-Instruct-2501-IQ4_NL"}, "[INST]", "mistral-small-2501"},
		{"mistral", []string{"Mistral-7B-Instruct-v0.3"}, "[INST]", ""},
		{"mistral3", []string{"mistralai/Mistral-Small-3.2-24B-Instruct-2506"}, "[INST]", "mistral-small-3"},
		{"mistral3", []string{"mistralai/Mistral-Small-4-119B-2603-NVFP4"}, "[INST]", "mistral-small-4"},
		{"llama", []string{"tinyllama-1.1b-chat-v1.0.Q4_K_M"}, "", "tinyllama"},

		// Two names of two models: nobody knows which.
		{"qwen3", []string{"Qwen3-8B", "Qwen3-8B-Instruct-2507"}, hybrid, "qwen3-instruct-2507 qwen3"},
		{"", nil, "", ""},
		{"llama", []string{"", "/", "-", "Q4_0"}, "", ""},
	}
	for _, c := range cases {
		var got []string
		for _, m := range Matching(models, Identity{c.architecture, c.names, c.template}) {
			got = append(got, m.Name)
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s %q, template %.20q: got %q, want %q", c.architecture, c.names, c.template, got, c.want)
		}
	}
}

func TestModelProblems(t *testing.T) {
	const head = "source='x'\n[match]\narchitectures=['llama']\nnames=['a']\n"
	cases := []struct{ text, want string }{
		{head + "[sampling]\ntemperature=0.5", ""},
		{head + "[sampling]\ntop_k=1", ""},
		{head + "[sampling]\ntemprature=0.5", `targets/models/a.toml:6: unknown key "temprature" (known: temperature, `},
		{head + "[thinking]\nstart='x'", `targets/models/a.toml:6: unknown key "start" (known: default, budget, close, reasoning)`},
		{head + "[thinking]\ndefault=true", ""},
		{head + "[thinking]\ndefault='yes'", "targets/models/a.toml:6: default is a string, want true or false"},
		{head + "[thinking]\nbudget=-1", "targets/models/a.toml:6: budget is -1, want 0 to"},
		{head + "[thinking]\nreasoning='thnik'", `targets/models/a.toml:6: thinking.reasoning is "thnik", want one of think, mistral, gemma, none`},
		{head + "[tools]\nformat='none'", ""},
		{head + "[tools]\nformat='xml'", `targets/models/a.toml:6: tools.format is "xml", want one of hermes, qwen3_coder, nemotron, minimax, mistral, gemma4, llama3_json, json, none`},
		{head + "[plain]\ntop_p=2.0", "targets/models/a.toml:6: top_p is 2, want 0.01 to 1"},
		{head + "[sampling]\npresence_penalty=-3.0", "targets/models/a.toml:6: presence_penalty is -3, want -2 to 2"},
		{"end=['']\n" + head, "targets/models/a.toml:1: a text of end is empty"},
		{"end=['<x>']\n" + head, ""},
		{head + "[sampling]\ntemperature=1", "temperature is an integer, want a number with a fraction"},
		{head + "[sampling]\ntemperature='hot'", "temperature is a string"},
		{head + "[sampling]\ntemperature=2.5", "targets/models/a.toml:6: temperature is 2.5, want 0 to 2"},
		{head + "[sampling]\ntemperature=nan", "temperature is NaN"},
		{head + "[sampling]\ntop_p=0.0", "top_p is 0"},
		{head + "[sampling]\ntop_k=-1", "top_k is -1"},
		{head, "targets/models/a.toml:1: the file says nothing about the model"},
		{"[match]\narchitectures=['llama']\nnames=['a']\n[sampling]\ntop_k=1", `"source" is missing`},
		{"source='x'\n[match]\nnames=['a']\n[sampling]\ntop_k=1", "must list something"},
		{"source='x'\n[match]\narchitectures=['llama']\nnames=['(']\n[sampling]\ntop_k=1", "targets/models/a.toml:4: error parsing regexp"},
		{"source='x'\n[match]\narchitectures=['llama']\nnames=['a']\ntemplate=['']\n[sampling]\ntop_k=1", "a text of template is empty"},
	}
	for _, c := range cases {
		_, err := Models(fstest.MapFS{"models/a.toml": {Data: []byte(c.text)}})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%q: got error %q, want %q", c.text, got, c.want)
		}
	}
}

// A file of the operator's says what it is about by being given.
func TestParseModel(t *testing.T) {
	cases := []struct{ text, want string }{
		{"[sampling]\ntemperature=0.5", ""},
		{"source='x'\n[match]\nnames=['a']\n[tools]\nformat='json'", ""},
		{"", "mine.toml:1: the file says nothing about the model"},
		{"[sampling]\n\ntop_k=-1\n[plain]\nmin_p=2.0", "mine.toml:3: top_k is -1, want 0 to 1048576\nmine.toml:5: min_p is 2"},
		{"[sampling", "mine.toml:1: "},
	}
	for _, c := range cases {
		m, err := ParseModel("mine.toml", c.text)
		if got := fmt.Sprint(err); c.want == "" && (err != nil || m == nil) || c.want != "" && !strings.Contains(got, c.want) {
			t.Errorf("%q: got error %v, want %q", c.text, err, c.want)
		}
	}
}
