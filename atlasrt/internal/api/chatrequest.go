package api

import (
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// ChatRequest is the body of POST /v1/chat/completions.
type ChatRequest struct {
	Generation
	Chat chat.Request
}

// DecodeChat reads a chat request; defaults are the sampling parameters where it gives none. Errors are *Error.
func DecodeChat(body []byte, limits Limits, defaults sample.Params) (*ChatRequest, error) {
	f, err := readObject(body, chatRoute)
	if err != nil {
		return nil, err
	}
	r := &ChatRequest{Generation: f.generation(limits, defaults)}
	r.Chat = f.conversation(limits)
	// The newer field wins, but both must make sense.
	given := f.integer("max_tokens", &r.Options.MaxTokens)
	given = f.integer("max_completion_tokens", &r.Options.MaxTokens) || given
	f.predict(&r.Options.MaxTokens, given)
	f.minTokens(&r.Generation)
	f.chatLogProbs(&r.Generation)
	r.Unknown = f.unknown()
	return r, f.failure()
}

// minTokens holds min_tokens against max_tokens.
func (f *fields) minTokens(g *Generation) {
	if o := g.Options; o.MaxTokens > 0 && o.MinTokens > o.MaxTokens {
		f.invalid("min_tokens", "is %d, must not be more than max_tokens, which is %d", o.MinTokens, o.MaxTokens)
	}
}

func (f *fields) chatLogProbs(g *Generation) {
	on, top := false, 0
	f.boolean("logprobs", &on)
	if f.integer("top_logprobs", &top) && top > 0 && !on {
		f.invalid("top_logprobs", "needs logprobs to be true")
	}
	if on {
		g.Options.LogProbs = top
	}
}

// conversation reads what the template gets to see, and refuses what only a model with tools, media or grammars could do.
func (f *fields) conversation(limits Limits) chat.Request {
	r := chat.Request{AddGenerationPrompt: true, Variables: jsontree.NewObject()}
	asked := f.boolean("add_generation_prompt", &r.AddGenerationPrompt)
	f.boolean("continue_final_message", &r.Continue)
	if r.Continue && asked && r.AddGenerationPrompt {
		f.invalid("continue_final_message", "and add_generation_prompt cannot both be true: the answer goes on with the last message, or begins a new one")
	}
	r.AddGenerationPrompt = r.AddGenerationPrompt && !r.Continue
	r.Messages = f.messages(limits)
	f.effort(r.Variables)
	var thinking bool
	if f.boolean("enable_thinking", &thinking) { // as some servers have it, in place of chat_template_kwargs
		r.Variables.Set("enable_thinking", jsontree.Bool(thinking))
	}
	f.templateVariables(r.Variables)
	f.toolUse()
	f.refuse("documents", empty)
	f.refuse("response_format", plainFormat)
	f.refuse("modalities", func(v jsontree.Value) bool {
		l, ok := v.(jsontree.Array)
		return ok && !slices.ContainsFunc(l, func(v jsontree.Value) bool { return !isText("text")(v) })
	})
	for _, name := range []string{"audio", "web_search_options", "suffix", "chat_template", "mm_processor_kwargs"} {
		f.refuse(name, never)
	}
	for _, name := range []string{"echo", "add_special_tokens"} {
		f.refuse(name, isFalse)
	}
	return r
}

// toolUse refuses tools, unless tool_choice says that none may be called: then the model does not get to see them either.
func (f *fields) toolUse() {
	uses := []struct{ tools, choice string }{{"tools", "tool_choice"}, {"functions", "function_call"}} // the second are the older names
	for _, use := range uses {
		choice := f.take(use.choice)
		off := choice != nil && isText("none")(choice)
		if f.refuse(use.tools, func(v jsontree.Value) bool { _, list := v.(jsontree.Array); return empty(v) || off && list }); choice != nil && !off && !isText("auto")(choice) {
			f.fail(Unsupported(use.choice, "%s must be none or auto: this server does not call tools.", use.choice))
		}
	}
	var parallel bool
	f.boolean("parallel_tool_calls", &parallel) // there are no calls to make
}

// plainFormat is the response_format that asks for nothing.
func plainFormat(v jsontree.Value) bool {
	d, ok := v.(*jsontree.Object)
	if !ok {
		return false
	}
	format, _ := d.Get("type")
	return isText("text")(format)
}

// effort hands reasoning_effort to the template; none turns thinking off where the template can.
func (f *fields) effort(variables *jsontree.Object) {
	var effort string
	f.enum("reasoning_effort", &effort, "none", "minimal", "low", "medium", "high", "xhigh", "max")
	if effort != "" {
		variables.Set("reasoning_effort", jsontree.String(effort))
	}
	if effort == "none" {
		variables.Set("enable_thinking", jsontree.Bool(false))
	}
}

// templateVariables reads chat_template_kwargs. Only these names: a template trusts its variables.
func (f *fields) templateVariables(variables *jsontree.Object) {
	d := f.dict("chat_template_kwargs")
	if d == nil {
		return
	}
	v := f.inner(d, "chat_template_kwargs")
	for _, name := range []string{"enable_thinking", "thinking"} {
		var on bool
		if v.boolean(name, &on) {
			variables.Set(name, jsontree.Bool(on))
		}
	}
	v.effort(variables)
	for key := range d.All() {
		if !v.known[key] {
			v.fail(Unsupported("chat_template_kwargs", "chat_template_kwargs sets %q; a request may set enable_thinking, thinking and reasoning_effort.", clip(key, 100)))
		}
	}
	if v.err != nil {
		f.fail(v.err)
	}
}
