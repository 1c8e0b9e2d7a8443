package instance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// What a template tells where nobody knows its model: the formats of calls and of thoughts, what ends these, and whether they can be
// turned off. A format that nobody knows is none.
func TestFormatsOfTemplates(t *testing.T) {
	cases := map[string]string{
		"Apriel-1.6-15b-Thinker-fixed":                  `- - "" false`,
		"Bielik-11B-v3.0-Instruct":                      `hermes think "\n</think>\n" true`,
		"Cohere2MoE":                                    `- - "" true`,
		"CohereForAI-c4ai-command-r-plus-tool_use":      `- - "" false`,
		"CohereForAI-c4ai-command-r7b-12-2024-tool_use": `- - "" true`,
		"GLM-4.7-Flash":                                 `- think "</think>" true`,
		"GLM-5.2":                                       `- think "</think>" true`,
		"GigaChat3-10B-A1.8B":                           `- - "" false`,
		"GigaChat3.1-10B-A1.8B":                         `- - "" false`,
		"HuggingFaceTB-SmolLM3-3B":                      `- think "</think>" true`,
		"Kimi-K2-Instruct":                              `- - "" false`,
		"LFM2-8B-A1B":                                   `- - "" false`,
		"MiMo-VL":                                       `hermes - "" false`,
		"Mistral-Small-3.2-24B-Instruct-2506":           `mistral - "" false`,
		"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16":           `qwen3_coder think "\n</think>\n" true`,
		"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": `hermes - "" false`,
		"NousResearch-Hermes-3-Llama-3.1-8B-tool_use":   `hermes - "" false`,
		"Qwen-QwQ-32B":                                  `hermes think "</think>" true`,
		"Qwen-Qwen2.5-7B-Instruct":                      `hermes - "" false`,
		"Qwen-Qwen3-0.6B":                               `hermes think "\n</think>\n\n" true`,
		"Qwen3-Coder":                                   `qwen3_coder - "" false`,
		"Qwen3.5-4B":                                    `qwen3_coder think "\n</think>\n\n" true`,
		"Reka-Edge":                                     `hermes think "\n</think>\n\n" true`,
		"deepseek-ai-DeepSeek-R1-Distill-Llama-8B":      `- think "</think>" false`,
		"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B":      `- think "</think>" true`,
		"deepseek-ai-DeepSeek-V3.1":                     `- think "</think>" true`,
		"deepseek-ai-DeepSeek-V4":                       `- think "</think>" true`,
		"fireworks-ai-llama-3-firefunction-v2":          `- - "" false`,
		"gemma3n":                                       `- - "" false`,
		"google-gemma-2-2b-it":                          `- - "" false`,
		"google-gemma-4-31B-it-interleaved":             `gemma4 gemma "<channel|>" true`,
		"google-gemma-4-31B-it":                         `gemma4 gemma "\n<channel|>" true`,
		"llama-cpp-deepseek-r1":                         `- think "</think>" false`,
		"llama-cpp-rwkv-world":                          `- think "</think>" true`,
		"meetkai-functionary-medium-v3.2":               `- - "" false`,
		"meta-llama-Llama-3.1-8B-Instruct":              `llama3_json - "" false`,
		"meta-llama-Llama-3.2-3B-Instruct":              `llama3_json - "" false`,
		"meta-llama-Llama-3.3-70B-Instruct":             `llama3_json - "" false`,
		"microsoft-Phi-3.5-mini-instruct":               `- - "" false`,
		"mistralai-Ministral-3-14B-Reasoning-2512":      `mistral mistral "[/THINK]" false`,
		"mistralai-Mistral-Nemo-Instruct-2407":          `mistral - "" false`,
		"moonshotai-Kimi-K2":                            `- - "" false`,
		"ollama-gemma4_31b":                             `gemma4 gemma "\n<channel|>" true`,
		"ollama-glimmer":                                `- - "" false`,
		"ollama-nemotron35":                             `qwen3_coder think "</think>" true`,
		"ollama-qwen38":                                 `qwen3_coder think "\n</think>\n\n" true`,
		"stepfun-ai-Step-3.5-Flash":                     `qwen3_coder think "\n</think>\n" false`,
		"unsloth-Apriel-1.5":                            `- - "" false`,
	}
	files, err := filepath.Glob(filepath.Join(testdata.Shared(t, "templates"), "*.jinja"))
	if err != nil || len(files) != len(cases) {
		t.Errorf("%d templates, want %d: %v", len(files), len(cases), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jinja")
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := Text{Source: string(source)}
		if text.Template, err = chat.ParseTemplate(text.Source, []chat.SpecialToken{{Variable: "bos_token", Text: "<s>"}, {Variable: "eos_token", Text: "</s>"}}); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text.Learn()
		shown := func(format string) string {
			if format == "" {
				return "-"
			}
			return format
		}
		closing, _ := text.closing()
		got := fmt.Sprintf("%s %s %q %v", shown(callFormat(text.shown)), shown(thoughtFormat(text.Source)), closing, text.Template.Capabilities().Switch)
		if want, known := cases[name]; !known || got != want {
			t.Errorf("%q: `%s`, want `%s`", name, got, want)
		}
	}
}

// thinker writes calls as hermes, and thoughts.
const thinker = `{% for m in messages %}[m]{{ m.role }}{% if m.reasoning_content %}<think>{{ m.reasoning_content }}
</think>
{% endif %}{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}[e]{% endfor %}` +
	`{% if enable_thinking is defined %}{{ enable_thinking }}{% endif %}{{ color or "" }}`

// The first source that says something counts, and the template where none does.
func TestLearn(t *testing.T) {
	yes, no := true, false
	cases := []struct {
		name   string
		facts  []Facts
		policy Policy
		want   string // of Answers
		ends   []int32
		note   string
	}{
		{"template", nil, Policy{}, `hermes (chat template), think (chat template), as the chat template decides (default), no bound (default), no bound (default), "\n</think>\n" (chat template), 0 (default), no bound (default)`, []int32{27}, ""},
		{"preset", []Facts{{From: "preset x", Tools: NoFormat, Reasoning: "mistral", Thinking: &yes, Budget: new(9), Close: "stop[/THINK]", End: []string{"[x]"}}}, Policy{},
			`none (preset x), mistral (preset x), on (preset x), 9 (preset x), no bound (default), "stop[/THINK]" (preset x), 0 (default), no bound (default)`, []int32{27, 28}, "answers also end at [x] (28): preset x"},
		{"key by key", []Facts{{From: "flag", Tools: "hermes"}, {From: "file", Thinking: &no, Budget: new(0)}, {From: "preset x", Tools: NoFormat, Reasoning: NoFormat, Thinking: &yes, Budget: new(9)}}, Policy{},
			`hermes (flag), none (preset x), off (file), no bound (file), no bound (default), none (default), 0 (default), no bound (default)`, []int32{27}, ""},
		{"a format that cannot be read", []Facts{{From: "preset x", Tools: "smoke_signals"}}, Policy{},
			`hermes (chat template), think (chat template), as the chat template decides (default), no bound (default), no bound (default), "\n</think>\n" (chat template), 0 (default), no bound (default)`, []int32{27}, "preset x: the format smoke_signals of calls of tools cannot be read and is skipped"},
		{"an end that is no token", []Facts{{From: "preset x", End: []string{"[y]"}}}, Policy{},
			`hermes (chat template), think (chat template), as the chat template decides (default), no bound (default), no bound (default), "\n</think>\n" (chat template), 0 (default), no bound (default)`, []int32{27}, "preset x: no token of the model is [y]"},
		{"policy", []Facts{{From: "preset x", Thinking: &yes}}, Policy{NoThinking: true, MaxBudget: 5, Floor: 6, ToolTokens: 7},
			`hermes (chat template), think (chat template), off, whatever requests ask (--disable-thinking), no bound (default), 5 (--max-thinking-budget), "\n</think>\n" (chat template), 6 (--thinking-floor), 7 (--tool-max-tokens)`, []int32{27}, ""},
	}
	for _, c := range cases {
		text, err := openText(t, `{"eos_token_id": 27}`, weights.Assets{Tokenizer: letters("[m]", "[e]", "[x]"), ChatTemplate: []byte(thinker)})
		if err != nil {
			t.Fatal(err)
		}
		text.Policy = c.policy
		text.Learn(c.facts...)
		var answers []string
		for _, s := range text.Answers() {
			answers = append(answers, fmt.Sprintf("%s (%s)", s.Value, s.From))
		}
		if got := strings.Join(answers, ", "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
		notes := strings.Join(slices.Concat(text.Notes, text.Details), "\n")
		if !slices.Equal(text.End, c.ends) || !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
			t.Errorf("%s: ends %v, want %v; notes %q, want %q", c.name, text.End, c.ends, notes, c.note)
		}
		g := text.Reader()
		tools, reasoning := NoFormat, NoFormat
		if g.Formats.Tools != nil {
			tools = g.Formats.Tools.Name
		}
		if g.Formats.Reasoning != nil {
			reasoning = g.Formats.Reasoning.Name
		}
		p := g.Thinking
		got := fmt.Sprint(tools, reasoning, p.Disabled, p.Default != nil && *p.Default, p.Budget, p.MaxBudget, p.Floor, g.ToolTokens)
		on, _ := text.thinks()
		budget, _ := text.budget()
		if want := fmt.Sprint(text.Tools.Value, text.Reasoning.Value, c.policy.NoThinking, on != nil && *on, budget, c.policy.MaxBudget, c.policy.Floor, c.policy.ToolTokens); got != want {
			t.Errorf("%s: the generator has %s, want %s", c.name, got, want)
		}
	}
}

// A request's own variables, and what it asks of thoughts, count more than those that all requests get.
func TestVariables(t *testing.T) {
	object := func(text string) *jsontree.Object {
		tree, err := jsontree.Decode([]byte(text), jsontree.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return tree.(*jsontree.Object)
	}
	cases := []struct {
		defaults string
		request  chat.Request
		want     string
	}{
		{`{}`, chat.Request{}, ""},
		{`{"enable_thinking": false, "color": "red"}`, chat.Request{}, "Falsered"},
		{`{"enable_thinking": false, "color": "red"}`, chat.Request{Thinking: chat.Thinking{On: new(true)}}, "Truered"},
		{`{"enable_thinking": false, "color": "red"}`, chat.Request{Variables: object(`{"color": "blue"}`)}, "Falseblue"},
	}
	for _, c := range cases {
		text, err := openText(t, `{}`, weights.Assets{Tokenizer: letters("[m]", "[e]"), ChatTemplate: []byte(thinker)})
		if err != nil {
			t.Fatal(err)
		}
		text.Variables = object(c.defaults)
		c.request.Messages = []chat.Message{{Role: "user", Content: chat.Content{Text: "x"}}}
		p, err := text.Prompt(t.Context(), &c.request, time.Time{}, 100)
		if got, ok := strings.CutPrefix(p.Text, "[m]userx[e]"); !ok || got != c.want || err != nil {
			t.Errorf("%s under %+v: got %q, %v; want %q", c.defaults, c.request, p.Text, err, c.want)
		}
	}
}
