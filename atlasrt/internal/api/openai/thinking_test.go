package openai

import (
	"fmt"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// said writes what a request says of thoughts.
func said(t chat.Thinking) string {
	text := "-"
	if t.On != nil {
		text = fmt.Sprint(*t.On)
	}
	if text += " " + t.Effort; t.Budget != nil {
		text += fmt.Sprintf(" %d", *t.Budget)
	}
	return strings.TrimSpace(text)
}

// The spellings of thoughts that clients use.
func TestThinking(t *testing.T) {
	cases := []struct{ fields, want string }{
		{``, "-"}, {`,"thinking":null,"reasoning":null,"think":null,"reasoning_effort":null,"thinking_budget":null`, "-"},
		{`,"enable_thinking":true`, "true"}, {`,"thinking":false`, "false"}, {`,"think":true`, "true"}, {`,"think":"high"`, "- high"},
		{`,"thinking":{"type":"enabled","budget_tokens":1024}`, "true  1024"}, {`,"thinking":{"type":"disabled"}`, "false"}, {`,"thinking":{"type":"adaptive"}`, "-"},
		{`,"reasoning_effort":"none"`, "false none"}, {`,"reasoning_effort":"low"`, "- low"},
		{`,"reasoning":{"effort":"high"}`, "- high"}, {`,"reasoning":{"effort":"none"}`, "false none"}, {`,"reasoning":{"enabled":true,"max_tokens":9,"exclude":true,"summary":"auto"}`, "true  9"},
		{`,"reasoning":{"max_tokens":9}`, "true  9"}, {`,"reasoning":{"max_tokens":9,"enabled":false}`, "false  9"}, {`,"reasoning":{"max_tokens":9,"effort":"none"}`, "false none 9"},
		{`,"thinking_budget":5`, "-  5"}, {`,"thinking_token_budget":5`, "-  5"}, {`,"reasoning_budget":0`, "false"}, {`,"thinking_budget_tokens":-1`, "-"}, {`,"reasoning_budget":7,"thinking_budget":7`, "-  7"},
		{`,"chat_template_kwargs":{"enable_thinking":false}`, "false"}, {`,"chat_template_kwargs":{"thinking":true,"reasoning_effort":"max","thinking_budget":3}`, "true max 3"},
		{`,"enable_thinking":true,"chat_template_kwargs":{"enable_thinking":false}`, "false"},
	}
	for _, c := range cases {
		r := decode(Chat{}, body(c.fields))
		if r.err != nil || said(r.Chat.Thinking) != c.want || r.Unknown != 0 || r.HideReasoning != strings.Contains(c.fields, "exclude") {
			t.Errorf("%s: got %+v, %v, want %s", c.fields, r.Request, r.err, c.want)
		}
	}
	refusals := []struct{ fields, field string }{
		{`,"thinking":7`, "thinking"}, {`,"thinking":{"type":"on"}`, "thinking.type"}, {`,"think":7`, "think"}, {`,"think":"yes"`, "think"}, {`,"reasoning":true`, "reasoning"},
		{`,"reasoning":{"effort":"huge"}`, "reasoning.effort"}, {`,"reasoning":{"max_tokens":0}`, "reasoning.max_tokens"}, {`,"reasoning":{"exclude":1}`, "reasoning.exclude"}, {`,"reasoning":{"enabled":1}`, "reasoning.enabled"},
		{`,"reasoning_budget":7,"thinking_budget":8`, "reasoning_budget"}, {`,"include_reasoning":0`, "include_reasoning"},
	}
	for _, c := range refusals {
		refusedAs(t, body(c.fields), c.field, api.KindInvalid)
	}
}

// Earlier thoughts come back under each name, and details of them in parts.
func TestT061EarlierThoughts(t *testing.T) {
	cases := []struct{ fields, want string }{
		{`"reasoning_content":"a"`, "a"}, {`"reasoning":"a"`, "a"}, {`"reasoning":"a","reasoning_content":"a"`, "a"}, {`"reasoning":"a","reasoning_content":""`, "a"}, {`"reasoning":null`, ""},
		{`"reasoning_details":[{"type":"reasoning.text","text":"a","signature":"of another server"},{"type":"reasoning.summary","summary":"b"},{"type":"reasoning.encrypted","data":"zz"}]`, "ab"},
	}
	for _, c := range cases {
		r := decode(Chat{}, `{"messages":[{"role":"assistant","content":"x",`+c.fields+`}]}`)
		if r.err != nil || r.Chat.Messages[0].Reasoning != c.want || r.Chat.Messages[0].Extra != nil {
			t.Errorf("%s: got %+v, %v, want %q", c.fields, r.Request, r.err, c.want)
		}
	}
	refusedAs(t, `{"messages":[{"role":"assistant","content":"x","reasoning_details":[1]}]}`, "messages[0].reasoning_details[0]", api.KindInvalid)
}

// Templates trust their variables, so a request sets a few of them, and their values are plain.
func TestT085TemplateVariables(t *testing.T) {
	r := decode(Chat{}, body(`,"chat_template_kwargs":{"preserve_thinking":true,"enable_thinking":true,"date_string":"1 May","add_vision_id":null}`))
	if want := `{"preserve_thinking": true, "date_string": "1 May"}`; r.err != nil || string(jsontree.Append(nil, r.Chat.Variables)) != want {
		t.Errorf("got %+v, %v, want %s", r.Request, r.err, want)
	}
	deep := strings.Repeat("[", 40) + strings.Repeat("]", 40)
	cases := []struct {
		variables, field string
		kind             api.Kind
	}{
		{`{"tokenize":true}`, "chat_template_kwargs", api.KindUnsupported}, {`{"messages":[]}`, "chat_template_kwargs", api.KindUnsupported}, {`{"bos_token":"x"}`, "chat_template_kwargs", api.KindUnsupported},
		{`{"chat_template":"x"}`, "chat_template_kwargs", api.KindUnsupported}, {`{"unknown":1}`, "chat_template_kwargs", api.KindUnsupported},
		{`{"preserve_thinking":` + deep + `}`, "chat_template_kwargs.preserve_thinking", api.KindInvalid}, {`{"date_string":{}}`, "chat_template_kwargs.date_string", api.KindInvalid},
		{`{"date_string":"` + strings.Repeat("x", 17<<10) + `"}`, "chat_template_kwargs", api.KindInvalid}, {`[]`, "chat_template_kwargs", api.KindInvalid},
	}
	for _, c := range cases {
		refusedAs(t, body(`,"chat_template_kwargs":`+c.variables), c.field, c.kind)
	}
	refusedAs(t, body(`,"chat_template":"x"`), "chat_template", api.KindUnsupported) // T084
}
