package openai

import (
	"cmp"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// budgets are the names of the most tokens that thoughts may take.
var budgets = []string{"thinking_budget", "thinking_token_budget", "reasoning_budget", "thinking_budget_tokens"}

// thinking reads what servers and clients call the thoughts of a model. Of fields that say the same thing the later one counts.
func (f fields) thinking(t *chat.Thinking) {
	f.switched("enable_thinking", t)
	switch v := f.Take("thinking").(type) { // of DeepSeek's templates, and of Anthropic's API
	case nil:
	case *jsontree.Object:
		o := fields{f.Inner(v, "thinking")}
		kind := ""
		if o.Enum("type", &kind, "enabled", "disabled", "adaptive", "auto"); kind == "enabled" || kind == "disabled" {
			t.On = new(kind == "enabled")
		}
		o.budget("budget_tokens", t)
	default:
		f.switched("thinking", t)
	}
	if _, text := f.Take("think").(jsontree.String); text { // ollama's
		Effort(f.Fields, "think", t)
	} else {
		f.switched("think", t)
	}
	Effort(f.Fields, "reasoning_effort", t)
	if r := f.Object("reasoning"); r != nil { // OpenRouter's
		o := fields{r}
		Effort(r, "effort", t)
		o.switched("enabled", t)
		if o.budget("max_tokens", t); t.On == nil && t.Budget != nil { // it asks for thoughts there
			t.On = new(true)
		}
	}
	for _, name := range budgets {
		f.budget(name, t)
	}
}

// switched reads whether the model thinks.
func (f fields) switched(name string, t *chat.Thinking) {
	var on bool
	if f.Bool(name, &on) {
		t.On = &on
	}
}

// Effort reads how much the model thinks; none is not at all.
func Effort(f *api.Fields, name string, t *chat.Thinking) {
	effort := ""
	f.Enum(name, &effort, append([]string{"none"}, chat.Efforts()...)...)
	if effort == "none" {
		t.On = new(false)
	}
	t.Effort = cmp.Or(effort, t.Effort)
}

// budget reads how many tokens it may think; 0 is not at all, -1 as many as it likes.
func (f fields) budget(name string, t *chat.Thinking) {
	var n int
	switch {
	case !f.Integer(name, &n) || n < 0:
	case t.Budget != nil && *t.Budget != n:
		f.Invalid(name, "is %d, but another field bounds thoughts to %d tokens: give one bound", n, *t.Budget)
	case n == 0:
		t.On = new(false)
	default:
		t.Budget = &n
	}
}

// hidesReasoning reads whether the client wants no thoughts in the answer, though the model may have some.
func (f fields) hidesReasoning() bool {
	include, exclude := true, false
	f.Bool("include_reasoning", &include)
	if o := f.Object("reasoning"); o != nil {
		o.Bool("exclude", &exclude)
	}
	return exclude || !include
}

// maxVariableBytes bounds chat_template_kwargs.
const maxVariableBytes = 16 << 10

// switches are what templates know beside thoughts, and a request may set: what of earlier thoughts they show, how much the
// model shall think, how they number pictures, where tools go, and the date.
var switches = []string{"preserve_thinking", "clear_thinking", "drop_thinking", "truncate_history_thinking", "force_nonempty_content",
	"low_effort", "medium_effort", "reasoning_strength", "add_vision_id", "tools_in_user_message", "date_string"}

// variables reads chat_template_kwargs. Only some names: a template trusts its variables.
func (f fields) variables(r *chat.Request) {
	d := f.Dict("chat_template_kwargs")
	if d == nil {
		return
	}
	if size := len(jsontree.Append(nil, d)); size > maxVariableBytes {
		f.Invalid("chat_template_kwargs", "has %d bytes, at most %d are allowed", size, maxVariableBytes)
		return
	}
	v := fields{f.Inner(d, "chat_template_kwargs")}
	v.thinking(&r.Thinking)
	r.Variables = jsontree.NewObject()
	for _, name := range switches {
		switch value := v.Take(name).(type) {
		case nil:
		case jsontree.Bool, jsontree.String, jsontree.Number:
			r.Variables.Set(name, value)
		default:
			v.WrongKind(name, "true, false, a string or a number", value)
		}
	}
	for key := range v.Rest() {
		v.Fail(api.Unsupported("chat_template_kwargs", "chat_template_kwargs sets %q; a request may set enable_thinking, thinking, reasoning_effort, thinking_budget, %s.",
			api.Clip(key, 100), strings.Join(switches, ", ")))
	}
}
