package chat

import (
	"fmt"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// String is a Thinking as a failure prints it.
func (t Thinking) String() string {
	on, budget := "-", "-"
	if t.On != nil {
		on = fmt.Sprint(*t.On)
	}
	if t.Budget != nil {
		budget = fmt.Sprint(*t.Budget)
	}
	return fmt.Sprintf("%s %q %s", on, t.Effort, budget)
}

func TestResolveThinking(t *testing.T) {
	yes, no := new(true), new(false)
	cases := []struct {
		name   string
		policy ThinkingPolicy
		asked  Thinking
		known  []string
		most   int
		want   string
	}{
		{"nothing is said", ThinkingPolicy{}, Thinking{}, nil, 0, `- "" -`},
		{"on", ThinkingPolicy{}, Thinking{On: yes}, nil, 0, `true "" -`},
		{"off", ThinkingPolicy{Budget: 9}, Thinking{On: no, Effort: "high", Budget: new(7)}, nil, 0, `false "" 0`},
		{"default", ThinkingPolicy{Default: no}, Thinking{}, nil, 0, `false "" 0`},
		{"over the default", ThinkingPolicy{Default: no}, Thinking{On: yes}, nil, 0, `true "" -`},
		{"effort over the default", ThinkingPolicy{Default: no}, Thinking{Effort: "low"}, nil, 0, `true "low" -`},
		{"no effort", ThinkingPolicy{Default: yes}, Thinking{Effort: "none"}, nil, 0, `false "" 0`},
		{"budget of nothing", ThinkingPolicy{}, Thinking{On: yes, Budget: new(0)}, nil, 0, `false "" 0`},
		{"disabled", ThinkingPolicy{Disabled: true, Default: yes}, Thinking{On: yes, Effort: "max"}, nil, 0, `false "" 0`},
		{"budget of the policy", ThinkingPolicy{Budget: 50}, Thinking{}, nil, 0, `- "" 50`},
		{"own budget", ThinkingPolicy{Budget: 50}, Thinking{Budget: new(70)}, nil, 0, `- "" 70`},
		{"own budget, bounded", ThinkingPolicy{Budget: 50, MaxBudget: 60}, Thinking{Budget: new(70)}, nil, 0, `- "" 60`},
		{"no budget, bounded", ThinkingPolicy{MaxBudget: 60}, Thinking{}, nil, 0, `- "" 60`},
		{"floor", ThinkingPolicy{Floor: 30}, Thinking{Budget: new(90)}, nil, 100, `- "" 70`},
		{"floor without a budget", ThinkingPolicy{Floor: 30}, Thinking{}, nil, 100, `- "" 70`},
		{"floor over all", ThinkingPolicy{Floor: 300}, Thinking{On: yes}, nil, 100, `true "" 1`},
		{"floor, no most", ThinkingPolicy{Floor: 30}, Thinking{}, nil, 0, `- "" -`},
		{"minimal", ThinkingPolicy{}, Thinking{Effort: "minimal"}, nil, 1000, `true "minimal" 100`},
		{"low", ThinkingPolicy{}, Thinking{Effort: "low"}, nil, 1000, `true "low" 200`},
		{"medium", ThinkingPolicy{}, Thinking{Effort: "medium"}, nil, 1000, `true "medium" 500`},
		{"medium of all that an integer holds", ThinkingPolicy{}, Thinking{Effort: "medium"}, nil, 1 << 62, `true "medium" 2305843009213693952`},
		{"high", ThinkingPolicy{Budget: 10}, Thinking{Effort: "high"}, nil, 1000, `true "high" 800`},
		{"xhigh", ThinkingPolicy{MaxBudget: 900}, Thinking{Effort: "xhigh"}, nil, 1000, `true "xhigh" 900`},
		{"max", ThinkingPolicy{}, Thinking{Effort: "max"}, nil, 1000, `true "max" -`},
		{"effort and budget", ThinkingPolicy{}, Thinking{Effort: "low", Budget: new(300)}, nil, 1000, `true "low" 300`},
		{"effort of little", ThinkingPolicy{}, Thinking{Effort: "minimal"}, nil, 1, `true "minimal" 1`},
		{"effort that the template reads", ThinkingPolicy{Budget: 10}, Thinking{Effort: "low"}, []string{"low"}, 1000, `true "low" 10`},
	}
	for _, c := range cases {
		got := c.policy.Resolve(c.asked, c.known, c.most)
		if got.String() != c.want {
			t.Errorf("%s: %+v, asked %v with %d tokens: got %v, want %s", c.name, c.policy, c.asked, c.most, got, c.want)
		}
		if again := c.policy.Resolve(got, c.known, 0); again.Off() != got.Off() || again.Effort != got.Effort {
			t.Errorf("%s: resolved again: got %v, want %v", c.name, again, got)
		}
	}
}

// What published templates know of thinking, and where the prompts that they write end with it on, off and as they please.
func TestThinkingOfTemplates(t *testing.T) {
	const think, channel = "<think> </think>", "<|channel> <channel|>"
	cases := []struct {
		template string
		marks    string
		on       string // whether it can be switched, the efforts and what it calls thoughts
		within   string // on, off and default
	}{
		{"Qwen-Qwen3-0.6B", think, "true [] reasoning_content", "false false false"},
		{"Qwen3.5-4B", think, "true [] reasoning_content", "true false true"},
		{"ollama-qwen38", think, "true [low medium xhigh] reasoning_content", "true false true"},
		{"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", think, "true [] reasoning_content", "true false true"},
		{"ollama-nemotron35", think, "true [] reasoning_content", "true false true"},
		{"GLM-4.7-Flash", think, "true [] reasoning_content", "true false true"},
		{"GLM-5.2", think, "true [high] reasoning_content", "true false true"},
		{"stepfun-ai-Step-3.5-Flash", think, "false [] reasoning_content", "true true true"},
		{"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", think, "false [] ", "true true true"},
		{"deepseek-ai-DeepSeek-V3.1", think, "true [] ", "true false false"},
		{"deepseek-ai-DeepSeek-V4", think, "true [high max] reasoning_content", "true false false"},
		{"HuggingFaceTB-SmolLM3-3B", think, "true [] ", "false false false"},
		{"google-gemma-4-31B-it", channel, "true [] reasoning_content", "false false false"},
		{"google-gemma-4-31B-it-interleaved", channel, "true [] reasoning_content", "false false false"},
		{"ollama-gemma4_31b", channel, "true [] reasoning_content", "false false false"},
		{"mistralai-Ministral-3-14B-Reasoning-2512", "[THINK] [/THINK]", "false [] parts", "false false false"},
		{"Cohere2MoE", "<|START_THINKING|> <|END_THINKING|>", "true [] reasoning_content", "true false true"},
		{"Bielik-11B-v3.0-Instruct", think, "true [] reasoning_content", "true false false"},
		{"Qwen-Qwen2.5-7B-Instruct", think, "false [] ", "false false false"},
		{"LFM2-8B-A1B", think, "false [] ", "false false false"},
		{"meta-llama-Llama-3.2-3B-Instruct", think, "false [] ", "false false false"},
		{"google-gemma-2-2b-it", think, "false [] ", "false false false"},
	}
	for _, c := range cases {
		template, err := ParseTemplate(source(t, c.template+".jinja"), special)
		if err != nil {
			t.Fatal(err)
		}
		can := template.Capabilities()
		if got := fmt.Sprint(can.Switch, can.Efforts, " ", can.Thoughts); got != c.on {
			t.Errorf("%s: can %s, want %s", c.template, got, c.on)
		}
		open, shut, _ := strings.Cut(c.marks, " ")
		var ends []bool
		for _, on := range []*bool{new(true), new(false), nil} {
			end := func(text string) bool {
				p, err := template.Prompt(t.Context(), &Request{Messages: []Message{user(text)}, AddGenerationPrompt: true, Thinking: Thinking{On: on}}, now)
				if err != nil {
					t.Fatalf("%s: %v", c.template, err)
				}
				return p.Within(open, shut)
			}
			ends = append(ends, end("hi"))
			for _, text := range []string{"hi " + open, shut, open + shut + open} { // what a client says changes nothing
				if got := end(text); got != ends[len(ends)-1] {
					t.Errorf("%s, %q: ends within thoughts: got %t", c.template, text, got)
				}
			}
		}
		if got := fmt.Sprint(ends[0], ends[1], ends[2]); got != c.within {
			t.Errorf("%s: ends within thoughts: got %s, want %s", c.template, got, c.within)
		}
	}
}

// Where an answer goes on with a message, its thoughts are closed.
func TestWithinAtTheEndOfAMessage(t *testing.T) {
	for _, id := range []string{"Qwen-Qwen3-0.6B", "Qwen3.5-4B", "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"} {
		template, err := ParseTemplate(source(t, id+".jinja"), special)
		if err != nil {
			t.Fatal(err)
		}
		last := Message{Role: "assistant", Content: Content{Text: "So <think> it"}, Reasoning: "Hm."}
		p, err := template.Prompt(t.Context(), &Request{Messages: []Message{user("hi"), last}, Continue: true}, now)
		if err != nil || p.Within("<think>", "</think>") || !strings.HasSuffix(p.Text, "So <think> it") {
			t.Errorf("%s: %v, ends within thoughts: %q", id, err, p.Text)
		}
	}
}

func TestWithin(t *testing.T) {
	cases := []struct {
		text string // data is in braces
		want bool
	}{
		{"", false}, {"a", false}, {"<t>", true}, {"<t>x</t>", false}, {"</t><t>", true}, {"{<t>}", false}, {"<t>{</t>}", true}, {"<t>{a}</t>{<t>}", false},
		{"<{t}>", false}, {"{<}t>", false}, {"<t{>}", false}, {"<t>{<t>a}</t{>}", true}, {"{<t><t>}<t>{<t><t>}", true}, {"</t>{a}{b}<t>{</t>}c", true}, {"<t>a</t>{<t>}b", false},
	}
	for _, c := range cases {
		var p Prompt
		for _, r := range c.text {
			switch r {
			case '{':
				p.Data = append(p.Data, Range{len(p.Text), len(p.Text)})
			case '}':
				p.Data[len(p.Data)-1].End = len(p.Text)
			default:
				p.Text += string(r)
			}
		}
		if got := p.Within("<t>", "</t>"); got != c.want {
			t.Errorf("%q: got %t, want %t", c.text, got, c.want)
		}
	}
}

// Templates that can show thoughts get those behind the last question, under the name that they read.
func TestThoughtsOfEarlierTurns(t *testing.T) {
	cases := []struct{ template, want string }{
		{"Qwen-Qwen3-0.6B", "<think>\nHm.\n</think>\n\n"}, {"Qwen3.5-4B", "<think>\nHm.\n</think>\n\n"}, {"ollama-qwen38", "<think>\nHm.\n</think>\n\n"},
		{"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "<think>\nHm.\n</think>\n"}, {"ollama-nemotron35", "<think>\nHm.</think>\n"},
		{"GLM-4.7-Flash", "<think>Hm.</think>"}, {"GLM-5.2", "<think>Hm.</think>"}, {"stepfun-ai-Step-3.5-Flash", "<think>\nHm.\n</think>\n"}, {"deepseek-ai-DeepSeek-V4", "<think>Hm.</think>"},
		{"google-gemma-4-31B-it", "<|channel>thought\nHm.\n<channel|>"}, {"google-gemma-4-31B-it-interleaved", "<|channel>thought\nHm.<channel|>"}, {"ollama-gemma4_31b", "<|channel>thought\nHm.\n<channel|>"},
		{"mistralai-Ministral-3-14B-Reasoning-2512", "[THINK]Hm.[/THINK]"}, {"Cohere2MoE", "<|START_THINKING|>Hm.<|END_THINKING|>"}, {"Bielik-11B-v3.0-Instruct", "<think>\nHm.\n</think>\n\n"},
		{"CohereForAI-c4ai-command-r7b-12-2024-tool_use", "<|START_THINKING|>Hm.<|END_THINKING|>"},
	}
	for _, c := range cases {
		template, err := ParseTemplate(source(t, c.template+".jinja"), special)
		if err != nil {
			t.Fatal(err)
		}
		call := callOf(Content{Null: true})
		call.Reasoning = "Hm."
		p, err := template.Prompt(t.Context(), &Request{Messages: []Message{user("q"), call, resultOf("tool")}, AddGenerationPrompt: true, Thinking: Thinking{On: new(true)}}, now)
		at := strings.Index(p.Text, "Hm.")
		if err != nil || !strings.Contains(p.Text, c.want) || strings.Count(p.Text, "Hm.") != 1 || !p.isData(at, at+3) {
			t.Errorf("%s: %v, want %q once in %q", c.template, err, c.want, p.Text)
		}
	}
}

// What templates are told of a request's thoughts, by what they read.
func TestThinkingVariables(t *testing.T) {
	const (
		turns   = `{% for m in messages %}{{ m.content }}{% endfor %}`
		words   = turns + `{% if reasoning_effort is defined %}[{{ reasoning_effort }}]{% endif %}`                                                                                                             // as gpt-oss
		strict  = turns + `{% set e = reasoning_effort|default('none') %}{% if e not in ['none', 'high'] %}{{ raise_exception('effort') }}{% endif %}[{{ e }}]`                                                 // as Mistral-Small-4
		granite = turns + `{% if thinking %}[on]{% endif %}`                                                                                                                                                    // another name
		qwen    = turns + `{% if enable_thinking is defined and enable_thinking is false %}[off]{% endif %}`                                                                                                    // a default
		three   = turns + `{% if enable_thinking|default(true) %}{% set e = reasoning_effort|default('high') %}{% if e not in ['low', 'high'] %}{{ raise_exception('effort') }}{% endif %}[{{ e }}]{% endif %}` // both
	)
	cases := []struct {
		name, template string
		thinking       Thinking
		want           string
	}{
		{"words", words, Thinking{}, ""}, {"words", words, Thinking{On: new(true)}, ""}, {"words", words, Thinking{On: new(false)}, ""}, {"words", words, Thinking{Effort: "low"}, "[low]"},
		{"strict", strict, Thinking{}, "[none]"}, {"strict", strict, Thinking{On: new(true)}, "[high]"}, {"strict", strict, Thinking{On: new(false)}, "[none]"},
		{"strict", strict, Thinking{On: new(true), Effort: "low"}, "[high]"}, {"strict", strict, Thinking{On: new(true), Effort: "high"}, "[high]"},
		{"granite", granite, Thinking{}, ""}, {"granite", granite, Thinking{On: new(true)}, "[on]"}, {"granite", granite, Thinking{On: new(false)}, ""},
		{"qwen", qwen, Thinking{}, ""}, {"qwen", qwen, Thinking{On: new(false)}, "[off]"}, {"qwen", qwen, Thinking{On: new(true), Effort: "max"}, ""},
		{"three", three, Thinking{}, "[high]"}, {"three", three, Thinking{On: new(false)}, ""}, {"three", three, Thinking{On: new(true), Effort: "low"}, "[low]"}, {"three", three, Thinking{On: new(true), Effort: "max"}, "[high]"},
	}
	for _, c := range cases {
		template, err := ParseTemplate(c.template, special)
		if err != nil {
			t.Fatal(err)
		}
		p, err := template.Prompt(t.Context(), &Request{Messages: []Message{user("hi")}, Thinking: c.thinking}, now)
		if err != nil || p.Text != "hi"+c.want {
			t.Errorf("%s, %v: got %q, %v, want %q", c.name, c.thinking, p.Text, err, "hi"+c.want)
		}
	}
	// What holds of thinking goes over a variable of the same name.
	variables := jsontree.NewObject()
	variables.Set("enable_thinking", jsontree.Bool(true))
	template, err := ParseTemplate(qwen, special)
	if err != nil {
		t.Fatal(err)
	}
	p, err := template.Prompt(t.Context(), &Request{Messages: []Message{user("hi")}, Thinking: Thinking{On: new(false)}, Variables: variables}, now)
	if err != nil || p.Text != "hi[off]" {
		t.Errorf("with a variable: got %q, %v", p.Text, err)
	}
}
