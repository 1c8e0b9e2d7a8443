package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
)

// textTemplate renders conversations with a template as a model's files have one.
type textTemplate struct {
	template  *chat.Template
	tokenizer *tokenizer.Tokenizer
}

func (x textTemplate) Prompt(ctx context.Context, r *chat.Request, now time.Time, limit int) (completion.Prompt, error) {
	p, err := x.template.Prompt(ctx, r, now)
	if err != nil {
		return completion.Prompt{}, err
	}
	data := make([]tokenizer.Range, len(p.Data))
	for i, r := range p.Data {
		data[i] = tokenizer.Range(r)
	}
	tokens, err := x.tokenizer.EncodePromptWithin(ctx, p.Text, data, limit)
	return completion.Prompt{Tokens: tokens, Text: p.Text, Data: p.Data}, err
}

// What the engine is asked for a conversation, as text.
func TestConversationsReachTheEngine(t *testing.T) {
	const source = `{% for m in messages %}{% if m.role not in ['system', 'user', 'assistant'] %}{{ raise_exception('no such role') }}{% endif %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}`
	template, err := chat.ParseTemplate(source, nil)
	if err != nil {
		t.Fatal(err)
	}
	tok := byteTokenizer(t)
	asked := make(chan string, 1)
	r := newRig(t, func(request engineRequest) reply {
		asked <- tok.Decode(request.Prompt, false)
		return reply{text: "ok"}
	}, func(c *Config) { c.Model.Template = textTemplate{template, tok} })
	cases := []struct{ body, want string }{
		{`"messages":[{"role":"developer","content":"s"},{"role":"user","content":"u"}]`, "<|system|>s<|end|><|user|>u<|end|><|assistant|>"},
		{`"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a"}]`, "<|user|>u<|end|><|assistant|>a<|end|><|assistant|>"},
		{`"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a b"}],"continue_final_message":true,"add_generation_prompt":false`, "<|user|>u<|end|><|assistant|>a b"},
		{`"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a"}],"continue_final_message":true`, "<|user|>u<|end|><|assistant|>a"},
		{`"messages":[{"role":"user","content":"u"}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none"`, "<|user|>u<|end|><|assistant|>"},
		{`"messages":[{"role":"user","content":"u"}],"add_generation_prompt":false`, "<|user|>u<|end|>"},
	}
	for _, c := range cases {
		got := r.post("/v1/chat/completions", `{`+c.body+`}`)
		d := object(t, got.body)
		if got.status != 200 || at(d, "model") != "tiny" || at(d, "choices", 0, "message", "content") != "ok" {
			t.Errorf("%s: %d %s", c.body, got.status, got.body)
			continue
		}
		if prompt := <-asked; prompt != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.body, prompt, c.want)
		}
	}
	bad := []struct{ body, param, message string }{
		{`"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}]`, "messages[2]", "second assistant message"},
		{`"messages":[{"role":"user","content":"u"}],"continue_final_message":true`, "messages[0]", "must be an assistant message"},
		{`"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a"}],"continue_final_message":true,"add_generation_prompt":true`, "continue_final_message", "cannot both be true"},
	}
	for _, c := range bad {
		for _, path := range []string{"/v1/chat/completions", "/tokenize"} {
			got := r.post(path, `{`+c.body+`}`)
			if d := object(t, got.body); got.status != 400 || at(d, "error", "param") != c.param || !strings.Contains(at(d, "error", "message"), c.message) {
				t.Errorf("%s %s: %d %s", path, c.body, got.status, got.body)
			}
		}
	}
}

// The served model answers where a request names none.
func TestModelMayBeLeftOut(t *testing.T) {
	r := newRig(t, answering, nil)
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"messages":[{"role":"user","content":"u"}]%s}`, "/v1/completions": `{"prompt":"x"%s}`,
	} {
		for _, model := range []string{``, `,"model":null`, `,"model":""`, `,"model":"tiny"`} {
			if got := r.post(path, fmt.Sprintf(body, model)); got.status != 200 || at(object(t, got.body), "model") != "tiny" {
				t.Errorf("%s %s: %d %s", path, model, got.status, got.body)
			}
		}
	}
}

// Offsets count the characters of the text that is shown, and control tokens that it leaves out have none.
func TestOffsetsOfHiddenTokens(t *testing.T) {
	r := newRig(t, func(engineRequest) reply { return reply{text: "é!"} }, nil)
	cases := []struct{ fields, text, offsets string }{
		{`"prompt":[97,257,98]`, "abé!", "[0 1 1 2 3 3 4]"},
		{`"prompt":[97,257,98],"skip_special_tokens":false`, "a<|user|>bé!", "[0 1 9 10 11 11 12]"},
		{`"prompt":"a<|user|>b"`, "a<|user|>bé!", "[0 1 9 10 11 11 12]"},
	}
	for _, c := range cases {
		d := object(t, r.post("/v1/completions", `{"echo":true,"logprobs":1,`+c.fields+`}`).body)
		if text, offsets := at(d, "choices", 0, "text"), at(d, "choices", 0, "logprobs", "text_offset"); text != c.text || offsets != c.offsets {
			t.Errorf("%s: got %q with %s, want %q with %s", c.fields, text, offsets, c.text, c.offsets)
		}
	}
	for _, value := range []string{"false", "null"} {
		if d := object(t, r.post("/v1/completions", `{"prompt":"a","logprobs":`+value+`}`).body); at(d, "choices", 0, "logprobs") != "<nil>" {
			t.Errorf("logprobs of %s: %v", value, d)
		}
	}
}

// A refusal blames what the client wrote, where that is not a message of its own, and tools that are not shown are refused.
func TestRefusalsNameWhatIsRefused(t *testing.T) {
	template, err := chat.ParseTemplate(`{% for m in messages %}{% if loop.index0 != 1 %}{{ m.content }}{% endif %}{% endfor %}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &Model{Template: textTemplate{template, byteTokenizer(t)}, Generator: &completion.Generator{}}
	say := func(role, text string) chat.Message {
		return chat.Message{Role: role, Content: chat.Content{Text: text}}
	}
	turns := []chat.Message{say("user", "to be"), say("assistant", "or not"), say("user", "what?")}
	cases := []struct {
		request chat.Request
		field   string
	}{
		{chat.Request{Messages: turns}, "messages[1]"},
		{chat.Request{Messages: turns, Names: []string{"input[0]", "input[2]", "input[3]"}}, "input[2]"},
		{chat.Request{Messages: turns, Tools: []chat.Tool{{Name: "f"}}}, "tools"},
	}
	for _, c := range cases {
		_, err := m.render(t.Context(), &c.request, "messages", 100)
		if e, ok := errors.AsType[*api.Error](err); !ok || e.Field != c.field {
			t.Errorf("%+v: got %v, want %s to be blamed", c.request, err, c.field)
		}
	}
}
