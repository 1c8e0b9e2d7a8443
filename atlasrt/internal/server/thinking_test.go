package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// What requests ask of thoughts reaches the template and the engine as the policy of the model lets it (T059, T060).
func TestThinkingReachesTheEngine(t *testing.T) {
	const source = `{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% if enable_thinking|default(true) %}<think>` + "\n" +
		`{% else %}<think>` + "\n\n" + `</think>` + "\n\n" + `{% endif %}{% endif %}`
	template, err := chat.ParseTemplate(source, nil)
	if err != nil {
		t.Fatal(err)
	}
	tok := byteTokenizer(t)
	plain := sample.Defaults()
	plain.TopK = 7
	cases := []struct {
		policy chat.ThinkingPolicy
		fields string
		want   string // end of the prompt, tokens of thoughts where they are bounded, whether they are within the prompt, top-k
	}{
		{chat.ThinkingPolicy{}, ``, "<think>\n - 0"},
		{chat.ThinkingPolicy{}, `,"enable_thinking":false`, "</think>\n\n 0 false 7"},
		{chat.ThinkingPolicy{}, `,"chat_template_kwargs":{"thinking":false}`, "</think>\n\n 0 false 7"},
		{chat.ThinkingPolicy{}, `,"reasoning_effort":"none"`, "</think>\n\n 0 false 7"},
		{chat.ThinkingPolicy{}, `,"reasoning_effort":"low"`, "<think>\n 20 true 0"},
		{chat.ThinkingPolicy{}, `,"reasoning_effort":"high"`, "<think>\n 80 true 0"},
		{chat.ThinkingPolicy{Default: new(false)}, ``, "</think>\n\n 0 false 7"},
		{chat.ThinkingPolicy{Default: new(false)}, `,"enable_thinking":true`, "<think>\n - 0"},
		{chat.ThinkingPolicy{Disabled: true}, `,"enable_thinking":true`, "</think>\n\n 0 false 7"},
		{chat.ThinkingPolicy{MaxBudget: 50}, `,"reasoning_effort":"high"`, "<think>\n 50 true 0"},
		{chat.ThinkingPolicy{Floor: 30}, ``, "<think>\n 59 true 0"}, // of 100, and 11 close
	}
	for _, c := range cases {
		asked := make(chan engineRequest, 1)
		r := newRig(t, func(request engineRequest) reply {
			asked <- request
			return reply{text: "</think>ok"}
		}, func(config *Config) {
			config.Model.Template = textTemplate{template, tok}
			g := config.Model.Generator
			g.Thinking, g.Plain, g.Formats = c.policy, &plain, completion.Formats{Reasoning: parse.FindReasoning("think")}
		})
		got := r.post("/v1/chat/completions", `{"max_tokens":100,"messages":[{"role":"user","content":"<think>"}]`+c.fields+`}`)
		if got.status != 200 {
			t.Errorf("%+v%s: %d %s", c.policy, c.fields, got.status, got.body)
			continue
		}
		request := <-asked
		_, end, _ := strings.Cut(tok.Decode(request.Prompt, false), "<|assistant|>")
		end = strings.TrimPrefix(end, "<think>\n\n")
		bound := "-"
		if b := request.Budget; b != nil {
			bound = fmt.Sprint(b.Most, b.Within)
		}
		if text := fmt.Sprint(end, " ", bound, " ", request.Sampling.TopK); text != c.want {
			t.Errorf("%+v%s: got %q, want %q", c.policy, c.fields, text, c.want)
		}
	}
}
