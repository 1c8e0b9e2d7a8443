package chat

import (
	"cmp"
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/jinja"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// form is how a template is handed the values of a conversation.
type form struct {
	emptyTools    bool   // no tools are an empty list and not None
	argumentsText bool   // arguments of calls are JSON text and no mapping
	thoughts      string // as Capabilities.Thoughts
}

// values makes what Hugging Face's apply_chat_template passes. The first error is kept.
type values struct {
	form
	err error
}

func (v *values) request(r *Request, thinking *jsontree.Object, special []SpecialToken) *jinja.Dict {
	d := jinja.NewDict()
	messages := make([]jinja.Value, len(r.Messages))
	for i := range r.Messages {
		messages[i] = v.message(&r.Messages[i])
	}
	set(d, "messages", jinja.NewList(messages...))
	tools := make([]jinja.Value, len(r.Tools))
	for i := range r.Tools {
		tools[i] = v.tool(&r.Tools[i])
	}
	set(d, "tools", jinja.None{})
	if len(tools) > 0 || v.emptyTools {
		set(d, "tools", jinja.NewList(tools...))
	}
	set(d, "documents", jinja.None{})
	if r.Documents != nil {
		set(d, "documents", v.json(r.Documents))
	}
	set(d, "add_generation_prompt", jinja.Bool(r.AddGenerationPrompt && !r.Continue))
	for _, token := range special {
		if _, taken := d.Get(token.Variable); !taken && !isReserved(token.Variable) {
			set(d, token.Variable, token.value())
		}
	}
	for key, value := range thinking.All() {
		set(d, key, v.json(value))
	}
	for key, value := range r.Variables.All() {
		if _, said := thinking.Get(key); said {
			continue
		}
		if _, taken := d.Get(key); taken || isReserved(key) {
			v.fail(fmt.Errorf("the template variable %q is not for requests to set", key))
		}
		set(d, key, v.json(value))
	}
	for key, value := range r.Defaults.All() {
		if _, taken := d.Get(key); !taken && Settable(key) {
			set(d, key, v.json(value))
		}
	}
	return d
}

// Settable tells whether a template variable of a name may be set by somebody: those of the engine may not.
func Settable(variable string) bool {
	switch variable {
	case "messages", "tools", "documents", "add_generation_prompt":
		return false
	}
	return !isReserved(variable)
}

func (s SpecialToken) value() jinja.Value {
	if s.Texts == nil {
		return jinja.Control(s.Text)
	}
	texts := make([]jinja.Value, len(s.Texts))
	for i, text := range s.Texts {
		texts[i] = jinja.Control(text)
	}
	return jinja.NewList(texts...)
}

func (v *values) fail(err error) {
	if v.err == nil {
		v.err = err
	}
}

func (v *values) json(tree jsontree.Value) jinja.Value {
	value, err := jinja.FromJSON(tree)
	if err != nil {
		v.fail(err)
		return jinja.None{}
	}
	return value
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

// message is a message as templates see it: the fields that are there, in the order that clients write them.
func (v *values) message(m *Message) jinja.Value {
	d := jinja.NewDict()
	set(d, "role", roleText(m.Role))
	content := v.content(&m.Content)
	if m.Reasoning != "" && v.thoughts == ThoughtParts {
		content = v.thoughtParts(m)
	}
	set(d, "content", content)
	if m.Name != "" {
		set(d, "name", jinja.Data(m.Name))
	}
	if m.Reasoning != "" && v.thoughts != ThoughtParts {
		set(d, cmp.Or(v.thoughts, "reasoning_content"), jinja.Data(m.Reasoning))
	}
	if len(m.ToolCalls) > 0 {
		calls := make([]jinja.Value, len(m.ToolCalls))
		for i := range m.ToolCalls {
			calls[i] = v.call(&m.ToolCalls[i])
		}
		set(d, "tool_calls", jinja.NewList(calls...))
	}
	if m.ToolCallID != "" {
		set(d, "tool_call_id", jinja.Data(m.ToolCallID))
	}
	v.merge(d, m.Extra)
	return d
}

// merge adds the fields of extra that d does not have.
func (v *values) merge(d *jinja.Dict, extra *jsontree.Object) {
	for key, value := range extra.All() {
		if _, taken := d.Get(key); !taken {
			d.Set(jinja.Data(key), v.json(value))
		}
	}
}

// roleText lets the known roles be part of a control token, as in '<|' + role + '|>'. Any other role is data.
func roleText(role string) jinja.Str {
	switch role {
	case "system", "developer", "user", "assistant", "tool", "function", "ipython":
		return jinja.Control(role)
	}
	return jinja.Data(role)
}

func (v *values) content(c *Content) jinja.Value {
	switch {
	case c.Parts != nil:
		parts := make([]jinja.Value, len(c.Parts))
		for i := range c.Parts {
			parts[i] = v.part(&c.Parts[i])
		}
		return jinja.NewList(parts...)
	case c.Null:
		return jinja.None{}
	}
	return jinja.Data(c.Text)
}

// thoughtParts is the content of a message with its thoughts as the first part.
func (v *values) thoughtParts(m *Message) jinja.Value {
	thoughts := jinja.NewDict()
	set(thoughts, "type", jinja.Data("thinking"))
	set(thoughts, "thinking", jinja.Data(m.Reasoning))
	parts := []jinja.Value{thoughts}
	if m.Content.Parts == nil && m.Content.Text != "" {
		parts = append(parts, v.part(&Part{Type: "text", Text: m.Content.Text}))
	}
	for i := range m.Content.Parts {
		parts = append(parts, v.part(&m.Content.Parts[i]))
	}
	return jinja.NewList(parts...)
}

func (v *values) part(p *Part) jinja.Value {
	d := jinja.NewDict()
	set(d, "type", jinja.Data(p.Type))
	if p.Type == "text" {
		set(d, "text", jinja.Data(p.Text))
	}
	v.merge(d, p.Extra)
	return d
}

func (v *values) call(c *ToolCall) jinja.Value {
	function := jinja.NewDict()
	set(function, "name", jinja.Data(c.Name))
	set(function, "arguments", v.arguments(c.Arguments))
	d := jinja.NewDict()
	set(d, "id", jinja.Data(c.ID))
	set(d, "type", jinja.Data("function"))
	set(d, "function", function)
	return d
}

func (v *values) arguments(text string) jinja.Value {
	if v.argumentsText {
		return jinja.Data(text)
	}
	if read, err := jinja.FromJSON(argumentsOf(text)); err == nil {
		return read
	}
	return v.json(brokenArguments(text))
}

// argumentsOf reads the arguments of a call.
func argumentsOf(text string) *jsontree.Object {
	if text == "" {
		return jsontree.NewObject()
	}
	tree, err := jsontree.Decode([]byte(text), jsontree.Limits{})
	if read, ok := tree.(*jsontree.Object); err == nil && ok {
		return read
	}
	return brokenArguments(text)
}

// brokenArguments are what templates get of arguments that they cannot have as they are.
func brokenArguments(text string) *jsontree.Object {
	object := jsontree.NewObject()
	object.Set(BrokenArguments, jsontree.String(text))
	return object
}

func (v *values) tool(t *Tool) jinja.Value {
	if t.Definition != nil {
		return v.json(t.Definition)
	}
	function := jinja.NewDict()
	set(function, "name", jinja.Data(t.Name))
	set(function, "description", jinja.Data(t.Description))
	if t.Parameters != nil {
		set(function, "parameters", v.json(t.Parameters))
	}
	d := jinja.NewDict()
	set(d, "type", jinja.Data("function"))
	set(d, "function", function)
	return d
}
