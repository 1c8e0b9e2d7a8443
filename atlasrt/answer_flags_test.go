package main

import (
	"bytes"
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	formats "github.com/atlas-inference/atlas/atlasrt/internal/parse"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/internal/testdata"
	"github.com/atlas-inference/atlas/targets"
)

// Formats that files may name are those that can be read.
func TestFormatsOfFacts(t *testing.T) {
	if want := formats.ReasoningFormats(); !slices.Equal(targets.ReasoningFormats(), want) {
		t.Errorf("files may name the formats of thoughts %v, and %v can be read", targets.ReasoningFormats(), want)
	}
	if want := formats.ToolFormats(); !slices.Equal(targets.ToolFormats(), want) {
		t.Errorf("files may name the formats of calls %v, and %v can be read", targets.ToolFormats(), want)
	}
}

// answering is a checkpoint of a model's names and template, without weights.
func answering(t *testing.T, architecture, template, generation string) weights.Checkpoint {
	t.Helper()
	config, err := weights.ParseConfig("config.json", []byte(`{"model_type": "`+architecture+`", "vocab_size": 300}`))
	if err != nil {
		t.Fatal(err)
	}
	made, err := dummy.New(config, nil, dummy.Options{Text: true})
	if err != nil {
		t.Fatal(err)
	}
	assets, err := made.Assets()
	if err != nil {
		t.Fatal(err)
	}
	assets.ChatTemplate, assets.GenerationConfig = []byte(template), nil
	if generation != "" {
		assets.GenerationConfig = []byte(generation)
	}
	checkpoint, err := dummy.New(config, nil, dummy.Options{Assets: assets})
	if err != nil {
		t.Fatal(err)
	}
	return checkpoint
}

// What files say of models agrees with what their published templates show.
func TestFactsAgreeWithTemplates(t *testing.T) {
	cases := []struct{ architecture, model, template, preset string }{
		{"qwen3", "Qwen3-0.6B", "Qwen-Qwen3-0.6B", "qwen3"},
		{"qwen3_moe", "Qwen3-Coder-30B-A3B-Instruct", "Qwen3-Coder", "qwen3-coder"},
		{"qwen3_5_moe", "Qwen3.5-35B-A3B", "Qwen3.5-4B", "qwen3.5"},
		{"qwen2", "QwQ-32B", "Qwen-QwQ-32B", "qwq"},
		{"qwen2", "Qwen2.5-7B-Instruct", "Qwen-Qwen2.5-7B-Instruct", "qwen2.5"},
		{"gemma4", "gemma-4-31B-it", "google-gemma-4-31B-it-interleaved", "gemma-4"},
		{"mistral", "Mistral-Nemo-Instruct-2407", "mistralai-Mistral-Nemo-Instruct-2407", "mistral-nemo"},
		{"mistral3", "Mistral-Small-3.2-24B-Instruct-2506", "Mistral-Small-3.2-24B-Instruct-2506", "mistral-small-3"},
		{"nemotron_h", "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nemotron-3-nano"},
		{"llama", "Llama-3.1-8B-Instruct", "meta-llama-Llama-3.1-8B-Instruct", "llama-3"},
		{"llama", "Llama-3.2-3B-Instruct", "meta-llama-Llama-3.2-3B-Instruct", "llama-3"},
		{"llama", "Llama-3.3-70B-Instruct", "meta-llama-Llama-3.3-70B-Instruct", "llama-3"},
		{"qwen2", "DeepSeek-R1-Distill-Qwen-32B", "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "deepseek-r1-distill"},
		{"llama", "Hermes-2-Pro-Llama-3-8B", "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", "hermes-2-pro"},
		{"llama", "Hermes-3-Llama-3.1-8B", "NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "hermes-3"},
	}
	models, err := targets.Models(targets.Embedded())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		source, err := os.ReadFile(filepath.Join(testdata.Shared(t, "templates"), c.template+".jinja"))
		if err != nil {
			t.Fatal(err)
		}
		found := targets.Matching(models, targets.Identity{Architecture: c.architecture, Names: []string{c.model}, Template: string(source)})
		if len(found) != 1 || found[0].Name != c.preset {
			t.Errorf("%s: got %d presets, want %s", c.model, len(found), c.preset)
			continue
		}
		m := found[0]
		template, err := chat.ParseTemplate(string(source), []chat.SpecialToken{{Variable: "bos_token", Text: "<s>"}, {Variable: "eos_token", Text: "</s>"}})
		if err != nil {
			t.Fatal(err)
		}
		text := instance.Text{Source: string(source), Template: template}
		text.Learn()
		shown := text.Answers()
		tools, reasoning, closing := shown[0].Value, shown[1].Value, shown[5].Value
		if !strings.Contains(closing, `\n`) { // the template shows no thoughts
			closing = fmt.Sprintf("%q", m.Thinking.Close)
		}
		got := fmt.Sprintf("%s %s %q", cmp.Or(m.Tools.Format, "none"), cmp.Or(m.Thinking.Reasoning, "none"), m.Thinking.Close)
		want := fmt.Sprintf("%s %s %s", tools, reasoning, closing)
		if m.Tools.Format == "nemotron" { // which templates write like qwen3_coder
			want = strings.Replace(want, "qwen3_coder", "nemotron", 1)
		}
		if got != want {
			t.Errorf("%s: the file says %s, and the template shows %s", c.model, got, want)
		}
	}
}

// Flags count more than a file, a file more than the checkpoint, and that more than what the program knows.
func TestAnswerFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.toml")
	if err := os.WriteFile(file, []byte("[sampling]\ntop_k = 7\n[thinking]\nreasoning = \"none\"\ndefault = true\nbudget = 100\n[tools]\nformat = \"none\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const template = "{% if enable_thinking is defined %}{{ enable_thinking }}{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}</think>"
	cases := []struct {
		args []string
		want string // format of calls, of thoughts, whether the model thinks, its budget, and top_k
	}{
		{nil, "hermes preset qwen3, think preset qwen3, on preset qwen3, no bound default, 20 preset qwen3"},
		{[]string{"--tool-call-parser", "none", "--reasoning-parser=mistral"}, "none --tool-call-parser, mistral --reasoning-parser, on preset qwen3, no bound default, 20 preset qwen3"},
		{[]string{"--default-chat-template-kwargs", `{"enable_thinking": false, "other": [1]}`}, "hermes preset qwen3, think preset qwen3, off --default-chat-template-kwargs, no bound default, 20 preset qwen3"},
		{[]string{"--default-chat-template-kwargs", `{"reasoning_effort": "none"}`}, "hermes preset qwen3, think preset qwen3, off --default-chat-template-kwargs, no bound default, 20 preset qwen3"},
		{[]string{"--model-facts", file}, "none --model-facts, none --model-facts, on --model-facts, 100 --model-facts, 7 --model-facts"},
		{[]string{"--model-facts", file, "--tool-call-parser", "hermes"}, "hermes --tool-call-parser, none --model-facts, on --model-facts, 100 --model-facts, 7 --model-facts"},
	}
	for _, c := range cases {
		flags, _, err := parseLine(t, append([]string{"serve", "--model", "Qwen3-8B"}, c.args...)...)
		if err != nil {
			t.Errorf("%v: %v", c.args, err)
			continue
		}
		text, err := flags.Serve.text(flags.Serve.modelFlags, answering(t, "qwen3", template, ""), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Errorf("%v: %v", c.args, err)
			continue
		}
		a, s := text.Answers(), text.Sampling()[2]
		thinks, _, _ := strings.Cut(a[2].Value, " (")
		got := fmt.Sprintf("%s %s, %s %s, %s %s, %s %s, %s %s", a[0].Value, a[0].From, a[1].Value, a[1].From, thinks, a[2].From, a[3].Value, a[3].From, s.Value, s.From)
		if got != c.want {
			t.Errorf("%v:\n got %s\nwant %s", c.args, got, c.want)
		}
		var printed bytes.Buffer
		if err := printAnswers(&printed, text, text.Sampling()); err != nil || !strings.Contains(printed.String(), "calls of tools") || !strings.Contains(printed.String(), "sampling without thoughts") {
			t.Errorf("%v: printed %q, %v", c.args, printed.String(), err)
		}
	}
}

// Values that cannot be are refused with the name of their flag and what is possible.
func TestAnswerFlagsThatMakeNoSense(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.toml")
	if err := os.WriteFile(file, []byte("[tools]\nformat = \"xml\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		args []string
		want string
	}{
		{[]string{"--tool-call-parser", "xml"}, `--tool-call-parser must be one of "auto","none","hermes"`},
		{[]string{"--reasoning-parser", "xml"}, `--reasoning-parser must be one of "auto","none","think","mistral","gemma"`},
		{[]string{"--default-chat-template-kwargs", "[1]"}, `--default-chat-template-kwargs is an array (write an object, such as {"enable_thinking": false})`},
		{[]string{"--default-chat-template-kwargs", "{"}, "--default-chat-template-kwargs: "},
		{[]string{"--default-chat-template-kwargs", `{"messages": []}`}, `--default-chat-template-kwargs sets "messages"`},
		{[]string{"--default-chat-template-kwargs", `{"enable_thinking": 1}`}, "enable_thinking must be true or false"},
		{[]string{"--default-chat-template-kwargs", `{"reasoning_effort": 1}`}, "reasoning_effort must be a string"},
		{[]string{"--max-thinking-budget=-1"}, "--max-thinking-budget -1 is no number of tokens"},
		{[]string{"--thinking-floor=-1"}, "--thinking-floor -1 is no number of tokens"},
		{[]string{"--tool-max-tokens=-1"}, "--tool-max-tokens -1 is no number of tokens"},
		{[]string{"--model-facts", file}, "--model-facts: " + file + `:2: tools.format is "xml", want one of hermes`},
		{[]string{"--model-facts", file + "x"}, "--model-facts"},
	}
	for _, command := range []string{"serve", "run"} {
		for _, c := range cases {
			if _, _, err := parseLine(t, append([]string{command}, c.args...)...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s %v: got %v, want an error with %q", command, c.args, err, c.want)
			}
		}
	}
}

// Flags say how requests are drawn that say nothing, within the ranges of requests.
func TestSamplingFlags(t *testing.T) {
	cases := []struct {
		args []string
		want string // min_p, top_n_sigma and the least entropy, or the flag that is refused
	}{
		{nil, "- - -"},
		{[]string{"--default-min-p", "0.1", "--default-top-n-sigma=1.5"}, "0.1 1.5 -"},
		{[]string{"--default-min-p", "0"}, "0 - -"},
		{[]string{"--adaptive-sampling"}, "- - 0.3"},
		{[]string{"--adaptive-sampling", "--adaptive-entropy", "1"}, "- - 1"},
		{[]string{"--default-min-p", "1.5"}, "--default-min-p is 1.5"},
		{[]string{"--default-top-n-sigma=-1"}, "--default-top-n-sigma is -1"},
		{[]string{"--adaptive-sampling", "--adaptive-entropy", "NaN"}, "--adaptive-entropy is NaN"},
	}
	for _, test := range cases {
		c, _, err := parseLine(t, append([]string{"serve"}, test.args...)...)
		got := fmt.Sprint(err)
		if err == nil {
			d, words := c.Serve.answerFlags.sampling(), []string{}
			for _, v := range []*float32{d.MinP, d.TopNSigma, d.MinEntropy} {
				if v == nil {
					words = append(words, "-")
				} else {
					words = append(words, fmt.Sprint(*v))
				}
			}
			got = strings.Join(words, " ")
		}
		if got != test.want && !(strings.HasPrefix(test.want, "--") && strings.Contains(got, test.want)) {
			t.Errorf("%v: got %q, want %q", test.args, got, test.want)
		}
	}
}
