package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jinja"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// ChatRequest is the body of POST /v1/chat/completions.
type ChatRequest struct {
	Generation
	Chat chat.Request
}

// DecodeChat reads a chat request; defaults are the sampling parameters where it gives none. Errors are *Error.
func DecodeChat(body []byte, limits Limits, defaults sample.Params) (*ChatRequest, error) {
	f, err := readObject(body)
	if err != nil {
		return nil, err
	}
	r := &ChatRequest{Generation: f.generation(limits, defaults)}
	r.Chat = f.conversation(limits)
	// The newer field wins, but both must make sense.
	f.integer("max_tokens", &r.Options.MaxTokens, 1, 1<<62)
	f.integer("max_completion_tokens", &r.Options.MaxTokens, 1, 1<<62)
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
	if f.integer("top_logprobs", &top, 0, 20) && top > 0 && !on {
		f.invalid("top_logprobs", "needs logprobs to be true")
	}
	if on {
		g.Options.LogProbs = top
	}
}

// conversation reads what the template gets to see, and refuses what only a model with tools, media or grammars could do.
func (f *fields) conversation(limits Limits) chat.Request {
	r := chat.Request{AddGenerationPrompt: true, Variables: jinja.NewDict()}
	f.boolean("add_generation_prompt", &r.AddGenerationPrompt)
	r.Messages = f.messages(limits)
	f.effort(r.Variables)
	f.templateVariables(r.Variables)

	for _, name := range []string{"tools", "functions", "documents"} {
		f.refuse(name, empty)
	}
	f.refuse("tool_choice", isText("none"))
	f.refuse("function_call", isText("none"))
	var parallel bool
	f.boolean("parallel_tool_calls", &parallel) // there are no calls to make
	f.refuse("response_format", plainFormat)
	f.refuse("modalities", func(v jinja.Value) bool {
		l, ok := v.(*jinja.List)
		return ok && !slices.ContainsFunc(l.Items(), func(v jinja.Value) bool { return !isText("text")(v) })
	})
	for _, name := range []string{"audio", "web_search_options", "suffix", "chat_template", "mm_processor_kwargs"} {
		f.refuse(name, never)
	}
	for _, name := range []string{"echo", "continue_final_message", "add_special_tokens"} {
		f.refuse(name, isFalse)
	}
	return r
}

// plainFormat is the response_format that asks for nothing.
func plainFormat(v jinja.Value) bool {
	d, ok := v.(*jinja.Dict)
	if !ok {
		return false
	}
	format, _ := d.Get("type")
	return isText("text")(format)
}

// effort hands reasoning_effort to the template; none turns thinking off where the template can.
func (f *fields) effort(variables *jinja.Dict) {
	var effort string
	f.enum("reasoning_effort", &effort, "none", "minimal", "low", "medium", "high", "xhigh", "max")
	if effort != "" {
		variables.Set(jinja.Control("reasoning_effort"), jinja.Data(effort))
	}
	if effort == "none" {
		variables.Set(jinja.Control("enable_thinking"), jinja.Bool(false))
	}
}

// templateVariables reads chat_template_kwargs. Only these names: a template trusts its variables.
func (f *fields) templateVariables(variables *jinja.Dict) {
	d := f.dict("chat_template_kwargs")
	if d == nil {
		return
	}
	v := newFields(d, "chat_template_kwargs.")
	for _, name := range []string{"enable_thinking", "thinking"} {
		var on bool
		if v.boolean(name, &on) {
			variables.Set(jinja.Control(name), jinja.Bool(on))
		}
	}
	v.effort(variables)
	d.Each(func(key string, _ jinja.Value) {
		if !v.known[key] {
			v.fail(Unsupported("chat_template_kwargs", "chat_template_kwargs sets %q; a request may set enable_thinking, thinking and reasoning_effort.", clip(key, 100)))
		}
	})
	if v.err != nil {
		f.fail(v.err)
	}
}

func (f *fields) messages(limits Limits) []chat.Message {
	items := f.list("messages")
	switch {
	case f.err != nil:
		return nil
	case len(items) == 0:
		f.invalid("messages", "must be an array of at least one message")
		return nil
	case len(items) > limits.Messages:
		f.fail(TooMuch(LimitMessages, "messages", "messages has %d entries, at most %d are allowed.", len(items), limits.Messages))
		return nil
	}
	messages := make([]chat.Message, len(items))
	for i, item := range items {
		name := fmt.Sprintf("messages[%d]", i)
		m, err := chat.ParseMessage(item)
		if err != nil {
			f.fail(Invalid(name, "%s: %s.", name, err))
			return nil
		}
		if bad := checkMessage(&m, name); bad != nil {
			f.fail(bad)
			return nil
		}
		messages[i] = m
	}
	return messages
}

// roles are those of the OpenAI API.
var roles = []string{"developer", "system", "user", "assistant", "tool", "function"}

// checkMessage holds a message against the API's rules and makes its text parts one text, for templates of text models
// expect a string. Several parts are joined by line breaks.
func checkMessage(m *chat.Message, name string) *Error {
	c := &m.Content
	switch {
	case !slices.Contains(roles, m.Role):
		return Invalid(name+".role", "%s.role must be one of %s.", name, strings.Join(roles, ", "))
	case m.Role == "tool" && m.ToolCallID == "":
		return Invalid(name+".tool_call_id", "%s.tool_call_id is required in a message of role tool.", name)
	case c.Null && !(m.Role == "assistant" && len(m.ToolCalls) > 0):
		return Invalid(name+".content", "%s.content must not be null, but for an assistant's with tool_calls.", name)
	case c.Parts == nil:
		return nil
	}
	texts := make([]string, len(c.Parts))
	for i, part := range c.Parts {
		if part.Type != "text" {
			return Unsupported(fmt.Sprintf("%s.content[%d].type", name, i), "%s.content[%d] is of type %q; this server reads parts of type text only.", name, i, clip(part.Type, 40))
		}
		if part.Extra != nil {
			if v, ok := part.Extra.Get("text"); ok {
				return Invalid(fmt.Sprintf("%s.content[%d].text", name, i), "%s.content[%d].text must be a string, not %s.", name, i, kind(v))
			}
		}
		texts[i] = part.Text
	}
	*c = chat.Content{Text: strings.Join(texts, "\n")}
	return nil
}
