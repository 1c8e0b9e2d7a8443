package openai

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// messages reads the turns of a conversation.
func (f *fields) messages(limits api.Limits) []chat.Message {
	items := f.List("messages")
	switch {
	case f.Err() != nil:
		return nil
	case len(items) == 0:
		f.Invalid("messages", "must be an array of at least one message")
		return nil
	case len(items) > limits.Messages:
		f.Fail(api.TooMuch(api.LimitMessages, "messages", "messages has %d entries, at most %d are allowed.", len(items), limits.Messages))
		return nil
	}
	messages := make([]chat.Message, len(items))
	for i, item := range items {
		name := fmt.Sprintf("messages[%d]", i)
		object, ok := item.(*jsontree.Object)
		if !ok {
			f.WrongKind(name, "an object", item)
			return nil
		}
		m := f.inner(object, name)
		messages[i] = m.message()
		if m.Err() != nil {
			f.Fail(m.Err())
			return nil
		}
	}
	return messages
}

// roles are those of the OpenAI API, and ipython, as Llama's templates call tool.
var roles = []string{"developer", "system", "user", "assistant", "tool", "function", "ipython"}

// message reads one turn. Fields that have no place in chat.Message stay in Extra, for templates that know them.
func (f *fields) message() chat.Message {
	var m chat.Message
	f.Text("role", &m.Role)
	if !slices.Contains(roles, m.Role) {
		f.Invalid("role", "must be one of %s", strings.Join(roles, ", "))
	}
	f.Text("name", &m.Name)
	if f.Text("tool_call_id", &m.ToolCallID); m.Role == "tool" && m.ToolCallID == "" {
		f.Invalid("tool_call_id", "is required in a message of role tool")
	}
	m.Reasoning = f.reasoning()
	m.ToolCalls = f.toolCalls()
	f.olderCall(&m)
	m.Content = f.content(m.Role == "tool")
	var refusal string
	if f.Text("refusal", &refusal); m.Content.Null && refusal != "" {
		m.Content = chat.Content{Text: refusal}
	}
	if m.Content.Null && !(m.Role == "assistant" && (len(m.ToolCalls) > 0 || m.Reasoning != "")) {
		f.Invalid("content", "is required, but for an assistant's with tool_calls")
	}
	for key, value := range f.Rest() {
		if m.Extra == nil {
			m.Extra = jsontree.NewObject()
		}
		m.Extra.Set(key, value)
	}
	return m
}

// reasoning reads the thoughts of an earlier turn, under each name that clients send them back with. The first that is not
// empty counts.
func (f *fields) reasoning() string {
	var old, short, details string
	f.Text("reasoning_content", &old)
	f.Text("reasoning", &short)
	for i, item := range f.List("reasoning_details") { // OpenRouter's; what is encrypted says nothing to us
		f.entry("reasoning_details", i, item, func(detail *fields, _ *jsontree.Object) {
			text, summary := "", ""
			detail.Text("text", &text)
			detail.Text("summary", &summary)
			details += cmp.Or(text, summary)
		})
	}
	return cmp.Or(old, short, details)
}

// content reads a text, or parts of one: what this server reads of parts is text, and several are joined by line breaks. Where a
// tool gave it, what cannot be read is said.
func (f *fields) content(given bool) chat.Content {
	switch v := f.Take("content").(type) {
	case nil:
		return chat.Content{Null: true}
	case jsontree.String:
		return chat.Content{Text: string(v)}
	case jsontree.Array:
		texts := make([]string, len(v))
		for i, item := range v {
			name := fmt.Sprintf("content[%d]", i)
			object, ok := item.(*jsontree.Object)
			if !ok {
				f.WrongKind(name, "an object", item)
				break
			}
			part := f.inner(object, name)
			if texts[i] = part.textPart(given); part.Err() != nil {
				f.Fail(part.Err())
				break
			}
		}
		return chat.Content{Text: strings.Join(texts, "\n")}
	default:
		f.Invalid("content", "must be a string, an array of parts or null, not %s", v.Kind())
	}
	return chat.Content{}
}

// textPart reads a part of a content, which a tool may have given.
func (f *fields) textPart(given bool) string {
	var kind, text string
	if !f.Text("type", &kind) {
		f.Invalid("type", "is required")
	}
	field := kind
	switch kind {
	case "text", "refusal":
	case "input_text", "output_text": // the Responses API's names
		field = "text"
	case "image_url", "input_image", "input_audio", "file", "input_file":
		if given {
			return api.LeftOut(kind)
		}
		fallthrough
	default:
		f.Fail(api.Unsupported(f.Path("type"), "%s is %q; this server reads parts of type text only, leave out others.", f.Path("type"), api.Clip(kind, 40)))
	}
	if !f.Text(field, &text) {
		f.Invalid(field, "is required")
	}
	return text
}

// toolCalls reads the calls that the model made in an earlier turn.
func (f *fields) toolCalls() []chat.ToolCall {
	items := f.List("tool_calls")
	calls := make([]chat.ToolCall, 0, len(items))
	for i, item := range items {
		name := fmt.Sprintf("tool_calls[%d]", i)
		object, ok := item.(*jsontree.Object)
		if !ok {
			f.WrongKind(name, "an object", item)
			return nil
		}
		call := f.inner(object, name)
		calls = append(calls, call.toolCall())
		if call.Err() != nil {
			f.Fail(call.Err())
			return nil
		}
	}
	return calls
}

func (f *fields) toolCall() chat.ToolCall {
	var c chat.ToolCall
	f.Text("id", &c.ID)
	if object := f.Dict("function"); object != nil {
		f.function(object, "function", &c)
	} else {
		f.Invalid("function", "is required: this server reads calls of functions only")
	}
	return c
}

// olderCall reads function_call and the role function, which came before tool_calls and tool. They have no ids, so the name of
// the function stands for one.
func (f *fields) olderCall(m *chat.Message) {
	if object := f.Dict("function_call"); object != nil && len(m.ToolCalls) == 0 {
		var c chat.ToolCall
		f.function(object, "function_call", &c)
		c.ID = "call_" + c.Name
		m.ToolCalls = []chat.ToolCall{c}
	}
	if m.Role == "function" && m.ToolCallID == "" {
		m.ToolCallID = "call_" + m.Name
	}
}

// function reads the name and the arguments of a call.
func (f *fields) function(object *jsontree.Object, field string, c *chat.ToolCall) {
	function := f.inner(object, field)
	if !function.Text("name", &c.Name) || c.Name == "" {
		function.Invalid("name", "is required")
	}
	switch v := function.Take("arguments").(type) {
	case nil:
	case jsontree.String:
		c.Arguments = string(v)
	case *jsontree.Object:
		c.Arguments = string(jsontree.Append(nil, v))
	default:
		function.WrongKind("arguments", "the JSON of an object, as a string", v)
	}
	f.Fail(function.Err())
}
