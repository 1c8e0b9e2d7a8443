package parse

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// turn is an assistant's message for a template, and what must be found in its rendering.
type turn struct {
	name      string
	Content   string     `json:"content"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []turnCall `json:"tool_calls,omitempty"`
}

type turnCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function turnFunction `json:"function"`
}

type turnFunction struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func toCall(id, name, arguments string) turnCall {
	return turnCall{id, "function", turnFunction{name, json.RawMessage(arguments)}}
}

const weather = `{"type": "object", "properties": {
	"location": {"type": "string"}, "days": {"type": "integer"}, "threshold": {"type": "number"}, "now": {"type": "boolean"},
	"opts": {"type": "object", "properties": {"verbose": {"type": "boolean"}, "o": {"type": "object"}}}, "tags": {"type": "array", "items": {"type": "string"}}}}`

// TestTemplates renders turns of an assistant with the templates of the models whose formats are known, and reads them.
func TestTemplates(t *testing.T) {
	const full = `{"location": "Zürich <CH> {\"a\": '}'}\n</b>", "days": 3, "threshold": 1.5, "now": true, "opts": {"verbose": false, "o": {"p": [1, null]}}, "tags": ["a", "b \"q\""], "z": "last"}`
	turns := []turn{
		{name: "one", Calls: []turnCall{toCall("call00001", "weather", full)}},
		{name: "with text", Content: "Let me look.", Calls: []turnCall{toCall("call00001", "weather", full)}},
		{name: "parallel", Calls: []turnCall{toCall("call00001", "weather", `{"location": "", "days": -1}`), toCall("call00002", "none", `{}`), toCall("call00003", "weather", full)}},
		{name: "thoughts", Content: "So.", Reasoning: "It rains\n\nin X.", Calls: []turnCall{toCall("call00001", "none", `{}`)}},
		{name: "thoughts and text", Content: "So.", Reasoning: "It rains\n\nin X."},
	}
	type family struct {
		tools, reasoning, begin string
		end                     string // a regular expression
		leaves                  string // out: names of turns that the template does not take or show whole
	}
	var (
		hermes2 = family{"hermes", "", "<|im_start|>assistant\n", `<\|im_end\|>`, "with text, thoughts, thoughts and text"}
		hermes  = family{"hermes", "", "<|im_start|>assistant\n", `<\|im_end\|>`, "thoughts, thoughts and text"}
		qwen3   = family{"hermes", "think", "<|im_start|>assistant\n", `<\|im_end\|>`, ""}
		coder   = family{"qwen3_coder", "", "<|im_start|>assistant\n", `<\|im_end\|>`, "thoughts, thoughts and text"}
		qwen35  = family{"qwen3_coder", "think", "<|im_start|>assistant\n", `<\|im_end\|>`, ""}
		nano    = family{"nemotron", "think", "<|im_start|>assistant\n", `<\|im_end\|>`, ""}
		mistral = family{"mistral", "mistral", "[/INST]", `</s>`, "with text, thoughts, thoughts and text"}
		small   = family{"mistral", "mistral", "[/INST]", `</s>`, "thoughts, thoughts and text"}
		gemma   = family{"gemma4", "gemma", "<|turn>model\n", `<turn\|>|<\|tool_response>`, "thoughts and text"}
		llama   = family{"llama3_json", "", "<|start_header_id|>assistant<|end_header_id|>\n\n", `<\|eot_id\|>`, "with text, parallel, thoughts, thoughts and text"}
	)
	cases := []struct {
		template string
		family   family
	}{
		{"Qwen-Qwen3-0.6B", qwen3}, {"Qwen-Qwen2.5-7B-Instruct", hermes}, {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", hermes2}, {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", hermes2},
		{"Qwen3-Coder", coder}, {"Qwen3.5-4B", qwen35}, {"ollama-qwen38", qwen35}, {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", nano}, {"ollama-nemotron35", nano},
		{"mistralai-Mistral-Nemo-Instruct-2407", mistral}, {"Mistral-Small-3.2-24B-Instruct-2506", mistral}, {"mistralai-Ministral-3-14B-Reasoning-2512", small},
		{"google-gemma-4-31B-it", gemma}, {"google-gemma-4-31B-it-interleaved", gemma}, {"ollama-gemma4_31b", gemma},
		{"meta-llama-Llama-3.1-8B-Instruct", llama}, {"meta-llama-Llama-3.2-3B-Instruct", llama}, {"meta-llama-Llama-3.3-70B-Instruct", llama},
	}
	for _, c := range cases {
		source, err := os.ReadFile(testdata.Shared(t, "templates/"+c.template+".jinja"))
		if err != nil {
			t.Fatal(err)
		}
		for _, turn := range turns {
			if strings.Contains(", "+c.family.leaves+",", ", "+turn.name+",") {
				continue
			}
			t.Run(c.template+" "+turn.name, func(t *testing.T) {
				rendered, err := chat.RenderRequest(string(source), turn.request(t), time.Unix(0, 0))
				if err != nil {
					t.Fatal(err)
				}
				_, answer, found := strings.Cut(rendered[strings.LastIndex(rendered, c.family.begin):], c.family.begin)
				end := regexp.MustCompile(c.family.end).FindStringIndex(answer)
				if !found || end == nil {
					t.Fatalf("no turn of an assistant in %q", rendered)
				}
				turn.check(t, c.family.tools, c.family.reasoning, answer[:end[0]])
				turn.held(t, c.family.tools, c.family.reasoning, answer[:end[0]])
			})
		}
	}
}

// request is a conversation that ends with the turn.
func (u *turn) request(t *testing.T) []byte {
	message, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	message = append([]byte(`{"role": "assistant", `), message[1:]...)
	var b bytes.Buffer
	b.WriteString(`{"bos_token": "<s>", "eos_token": "</s>", "tools": [`)
	b.WriteString(`{"type": "function", "function": {"name": "weather", "description": "It.", "parameters": ` + weather + `}},`)
	b.WriteString(`{"type": "function", "function": {"name": "none", "description": "No.", "parameters": {"type": "object", "properties": {}}}}], `)
	b.WriteString(`"messages": [{"role": "user", "content": "Hi"}, ` + string(message) + `]}`)
	return b.Bytes()
}

// check reads an answer, in pieces of each size, and compares.
func (u *turn) check(t *testing.T, tools, reasoning, answer string) {
	schema, err := jsontree.Decode([]byte(weather), jsontree.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Tools: FindTools(tools), Reasoning: FindReasoning(reasoning), Declared: []chat.Tool{{Name: "weather", Parameters: schema}, {Name: "none"}}}
	for _, control := range []bool{false, true} {
		if control {
			config.Control = controlsOf(&config)
		}
		pieces := atoms(&config, answer)
		for size := 1; size <= len(pieces); size++ {
			var cuts []int
			for at := size; at < len(pieces); at += size {
				cuts = append(cuts, at)
			}
			events, _ := read(config, pieces, cuts...)
			if got := u.found(t, events); !reflect.DeepEqual(got, u.plain(t)) {
				t.Fatalf("control tokens %v, %q in pieces of %d:\n got %+v\nwant %+v", control, answer, size, got, u.plain(t))
			}
		}
	}
}

// plainTurn is a turn whose arguments are values.
type plainTurn struct {
	content, reasoning string
	names              []string
	arguments          []any
}

func (u *turn) plain(t *testing.T) plainTurn {
	p := plainTurn{content: u.Content, reasoning: u.Reasoning}
	for _, c := range u.Calls {
		p.add(t, c.Function.Name, string(c.Function.Arguments))
	}
	return p
}

func (u *turn) found(t *testing.T, events []chat.Event) (p plainTurn) {
	for _, e := range events {
		switch e.Kind {
		case chat.EventText:
			p.content += e.Text
		case chat.EventReasoning:
			p.reasoning += e.Text
		case chat.EventToolCall:
			p.add(t, e.Call.Name, e.Call.Arguments)
		}
	}
	return p
}

func (p *plainTurn) add(t *testing.T, name, arguments string) {
	var v any
	if err := json.Unmarshal([]byte(arguments), &v); err != nil {
		t.Fatalf("arguments %q of %s: %v", arguments, name, err)
	}
	p.names = append(p.names, name)
	p.arguments = append(p.arguments, v)
}
