package chat

import (
	"context"
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/jinja"
)

// Request is what a conversation asks of a template.
type Request struct {
	Messages            []Message
	Tools               []Tool
	Documents           *jinja.List // for templates with retrieval, or nil
	AddGenerationPrompt bool
	// Variables are further names for the template (chat_template_kwargs), such as enable_thinking. The caller decides which
	// a client may set; those that the engine sets are refused.
	Variables *jinja.Dict
	Context   context.Context // ends a render whose result nobody waits for; nil: nothing does
}

// variables are what Hugging Face's apply_chat_template passes.
func (r *Request) variables(special []SpecialToken) (*jinja.Dict, error) {
	v := jinja.NewDict()
	messages := make([]jinja.Value, len(r.Messages))
	for i := range r.Messages {
		messages[i] = r.Messages[i].value()
	}
	set(v, "messages", jinja.NewList(messages...))
	set(v, "tools", jinja.None{})
	if len(r.Tools) > 0 {
		tools := make([]jinja.Value, len(r.Tools))
		for i := range r.Tools {
			tools[i] = r.Tools[i].value()
		}
		set(v, "tools", jinja.NewList(tools...))
	}
	set(v, "documents", jinja.None{})
	if r.Documents != nil {
		set(v, "documents", r.Documents)
	}
	set(v, "add_generation_prompt", jinja.Bool(r.AddGenerationPrompt))
	for _, token := range special {
		set(v, token.Variable, jinja.Control(token.Text))
	}
	if r.Variables == nil {
		return v, nil
	}
	var failed error
	r.Variables.Each(func(key string, value jinja.Value) {
		if _, taken := v.Get(key); taken || isReserved(key) {
			failed = fmt.Errorf("the template variable %q is not for requests to set", key)
		}
		set(v, key, value)
	})
	return v, failed
}

// isReserved says whether a name belongs to the template's environment or to apply_chat_template.
func isReserved(variable string) bool {
	switch variable {
	case "raise_exception", "strftime_now", "range", "dict", "namespace", "cycler", "joiner", "lipsum",
		"tokenize", "chat_template", "conversation", "return_dict", "return_tensors", "continue_final_message", "tokenizer_kwargs":
		return true
	}
	return false
}

func set(d *jinja.Dict, key string, v jinja.Value) { d.Set(jinja.Control(key), v) }

// value is the message as templates see it: the fields that are there, in the order that clients write them.
func (m *Message) value() jinja.Value {
	d := jinja.NewDict()
	set(d, "role", roleText(m.Role))
	set(d, "content", m.Content.value())
	if m.Name != "" {
		set(d, "name", jinja.Data(m.Name))
	}
	if m.Reasoning != "" {
		set(d, "reasoning_content", jinja.Data(m.Reasoning))
	}
	if len(m.ToolCalls) > 0 {
		calls := make([]jinja.Value, len(m.ToolCalls))
		for i := range m.ToolCalls {
			calls[i] = m.ToolCalls[i].value()
		}
		set(d, "tool_calls", jinja.NewList(calls...))
	}
	if m.ToolCallID != "" {
		set(d, "tool_call_id", jinja.Data(m.ToolCallID))
	}
	merge(d, m.Extra)
	return d
}

// merge adds the fields of extra that d does not have.
func merge(d, extra *jinja.Dict) {
	if extra == nil {
		return
	}
	extra.Each(func(key string, v jinja.Value) {
		if _, taken := d.Get(key); !taken {
			d.Set(jinja.Data(key), v)
		}
	})
}

// roleText lets the known roles be part of a control token, as in '<|' + role + '|>'. Any other role is data.
func roleText(role string) jinja.Str {
	switch role {
	case "system", "developer", "user", "assistant", "tool", "function", "ipython":
		return jinja.Control(role)
	}
	return jinja.Data(role)
}

func (c *Content) value() jinja.Value {
	switch {
	case c.Parts != nil:
		parts := make([]jinja.Value, len(c.Parts))
		for i := range c.Parts {
			parts[i] = c.Parts[i].value()
		}
		return jinja.NewList(parts...)
	case c.Null:
		return jinja.None{}
	}
	return jinja.Data(c.Text)
}

func (p *Part) value() jinja.Value {
	d := jinja.NewDict()
	set(d, "type", jinja.Data(p.Type))
	if p.Type == "text" {
		set(d, "text", jinja.Data(p.Text))
	}
	merge(d, p.Extra)
	return d
}

func (c *ToolCall) value() jinja.Value {
	function := jinja.NewDict()
	set(function, "name", jinja.Data(c.Name))
	set(function, "arguments", c.arguments())
	d := jinja.NewDict()
	set(d, "id", jinja.Data(c.ID))
	set(d, "type", jinja.Data("function"))
	set(d, "function", function)
	return d
}

func (c *ToolCall) arguments() jinja.Value {
	if v, err := jinja.DecodeJSON([]byte(c.Arguments), jinja.JSONLimits{}); err == nil {
		if object, ok := v.(*jinja.Dict); ok {
			return object
		}
	}
	return jinja.Data(c.Arguments)
}

func (t *Tool) value() jinja.Value {
	if t.Definition != nil {
		return t.Definition
	}
	function := jinja.NewDict()
	set(function, "name", jinja.Data(t.Name))
	set(function, "description", jinja.Data(t.Description))
	if t.Parameters != nil {
		set(function, "parameters", t.Parameters)
	}
	d := jinja.NewDict()
	set(d, "type", jinja.Data("function"))
	set(d, "function", function)
	return d
}
