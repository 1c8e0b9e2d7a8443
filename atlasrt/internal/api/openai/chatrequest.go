package openai

import (
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// Decode implements api.Dialect.
func (Chat) Decode(body []byte, limits api.Limits) (*api.Request, error) {
	f, err := readObject(body, chatRanges)
	if err != nil {
		return nil, err
	}
	f.chat = true
	r := f.generation(limits)
	r.Chat = f.conversation(limits)
	// The newer field wins, but both must make sense.
	given := f.Integer("max_tokens", &r.Options.MaxTokens)
	given = f.Integer("max_completion_tokens", &r.Options.MaxTokens) || given
	f.predict(&r.Options.MaxTokens, given)
	f.minTokens(&r.Options)
	f.chatLogProbs(&r.Options)
	r.Unknown = f.Unknown()
	return r, f.Failure()
}

// minTokens holds min_tokens against max_tokens.
func (f *fields) minTokens(o *completion.Options) {
	if o.MaxTokens > 0 && o.MinTokens > o.MaxTokens {
		f.Invalid("min_tokens", "is %d, must not be more than max_tokens, which is %d", o.MinTokens, o.MaxTokens)
	}
}

func (f *fields) chatLogProbs(o *completion.Options) {
	on, top := false, 0
	f.Bool("logprobs", &on)
	if f.Integer("top_logprobs", &top) && top > 0 && !on {
		f.Invalid("top_logprobs", "needs logprobs to be true")
	}
	if on {
		o.LogProbs = top
	}
}

// conversation reads what the template gets to see, and refuses what only a model with tools, media or grammars could do.
func (f *fields) conversation(limits api.Limits) *chat.Request {
	r := &chat.Request{AddGenerationPrompt: true}
	asked := f.Bool("add_generation_prompt", &r.AddGenerationPrompt)
	f.Bool("continue_final_message", &r.Continue)
	if r.Continue && asked && r.AddGenerationPrompt {
		f.Invalid("continue_final_message", "and add_generation_prompt cannot both be true: the answer goes on with the last message, or begins a new one")
	}
	r.AddGenerationPrompt = r.AddGenerationPrompt && !r.Continue
	r.Messages = f.messages(limits)
	f.thinking(&r.Thinking)
	f.templateVariables(&r.Thinking)
	f.toolUse()
	f.Refuse("documents", api.Empty)
	f.Refuse("response_format", plainFormat)
	f.Refuse("modalities", func(v jsontree.Value) bool {
		l, ok := v.(jsontree.Array)
		return ok && !slices.ContainsFunc(l, func(v jsontree.Value) bool { return !api.IsText("text")(v) })
	})
	for _, name := range []string{"audio", "web_search_options", "suffix", "chat_template", "mm_processor_kwargs"} {
		f.Refuse(name, api.Never)
	}
	for _, name := range []string{"echo", "add_special_tokens"} {
		f.Refuse(name, api.IsFalse)
	}
	return r
}

// toolUse refuses tools, unless tool_choice says that none may be called: then the model does not get to see them either.
func (f *fields) toolUse() {
	uses := []struct{ tools, choice string }{{"tools", "tool_choice"}, {"functions", "function_call"}} // the second are the older names
	for _, use := range uses {
		choice := f.Take(use.choice)
		off := choice != nil && api.IsText("none")(choice)
		if f.Refuse(use.tools, func(v jsontree.Value) bool { _, list := v.(jsontree.Array); return api.Empty(v) || off && list }); choice != nil && !off && !api.IsText("auto")(choice) {
			f.Fail(api.Unsupported(use.choice, "%s must be none or auto: this server does not call tools.", use.choice))
		}
	}
	var parallel bool
	f.Bool("parallel_tool_calls", &parallel) // there are no calls to make
}

// plainFormat is the response_format that asks for nothing.
func plainFormat(v jsontree.Value) bool {
	d, ok := v.(*jsontree.Object)
	if !ok {
		return false
	}
	format, _ := d.Get("type")
	return api.IsText("text")(format)
}

// thinking reads what servers call the thoughts of a model; an effort of none turns them off where the template can.
func (f *fields) thinking(t *chat.Thinking) {
	for _, name := range []string{"enable_thinking", "thinking"} {
		var on bool
		if f.Bool(name, &on) {
			t.On = &on
		}
	}
	var effort string
	if f.Enum("reasoning_effort", &effort, "none", "minimal", "low", "medium", "high", "xhigh", "max"); effort == "none" {
		t.On = new(false)
	}
	if effort != "" {
		t.Effort = effort
	}
}

// templateVariables reads chat_template_kwargs. Only these names: a template trusts its variables.
func (f *fields) templateVariables(t *chat.Thinking) {
	d := f.Dict("chat_template_kwargs")
	if d == nil {
		return
	}
	v := f.inner(d, "chat_template_kwargs")
	v.thinking(t)
	for key := range v.Rest() {
		v.Fail(api.Unsupported("chat_template_kwargs", "chat_template_kwargs sets %q; a request may set enable_thinking, thinking and reasoning_effort.", api.Clip(key, 100)))
	}
	f.Fail(v.Err())
}
