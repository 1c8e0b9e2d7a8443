package openai

import (
	"cmp"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// messages reads the turns of a conversation.
func (f fields) messages(limits api.Limits) []chat.Message {
	items := f.List("messages")
	switch {
	case f.Err() != nil:
		return nil
	case len(items) == 0:
		f.Invalid("messages", "must be an array of at least one message")
		return nil
	case !f.AtMost(api.LimitMessages, "messages", len(items), limits.Messages):
		return nil
	}
	messages := make([]chat.Message, len(items))
	for i, m := range f.Objects("messages", items) {
		messages[i] = fields{m}.message()
	}
	return messages
}

// roles are those of the OpenAI API, and ipython, as Llama's templates call tool.
var roles = []string{"developer", "system", "user", "assistant", "tool", "function", "ipython"}

// message reads one turn. Fields that have no place in chat.Message stay in Extra, for templates that know them.
func (f fields) message() chat.Message {
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
		f.Invalid("content", "is required: only a message of the assistant with tool_calls may go without")
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
func (f fields) reasoning() string {
	var old, short, details string
	f.Text("reasoning_content", &old)
	f.Text("reasoning", &short)
	for _, detail := range f.Objects("reasoning_details", f.List("reasoning_details")) { // OpenRouter's; what is encrypted says nothing to us
		text, summary := "", ""
		detail.Text("text", &text)
		detail.Text("summary", &summary)
		details += cmp.Or(text, summary)
	}
	return cmp.Or(old, short, details)
}

// content reads a text, or parts of one. Where a tool gave it, what cannot be read is said.
func (f fields) content(given bool) chat.Content {
	switch v := f.Take("content").(type) {
	case nil:
		return chat.Content{Null: true}
	case jsontree.String:
		return chat.Content{Text: string(v)}
	case jsontree.Array:
		return chat.Content{Text: Parts(f.Fields, "content", v, given)}
	default:
		f.Invalid("content", "must be a string, an array of parts or null, not %s", v.Kind())
	}
	return chat.Content{}
}

// Parts reads the parts of a text, which are joined by line breaks. They have the names of both APIs. Where a tool gave them, what
// is no text is named as left out.
func Parts(f *api.Fields, name string, list jsontree.Array, given bool) string {
	texts := make([]string, len(list))
	for i, part := range f.Objects(name, list) {
		field := "text"
		switch kind := part.Required("type"); kind {
		case "text", "input_text", "output_text", "reasoning_text", "summary_text":
		case "refusal":
			field = kind
		case "image_url", "input_image", "input_audio", "file", "input_file":
			if given {
				texts[i] = api.LeftOut(kind)
				continue
			}
			fallthrough
		default:
			part.Fail(api.Unsupported(part.Path("type"), "%s is %q; this server reads parts of type text only, leave out others.", part.Path("type"), api.Clip(kind, 40)))
		}
		if !part.Text(field, &texts[i]) {
			part.Invalid(field, "is required")
		}
	}
	return strings.Join(texts, "\n")
}

// toolCalls reads the calls that the model made in an earlier turn.
func (f fields) toolCalls() []chat.ToolCall {
	items := f.List("tool_calls")
	calls := make([]chat.ToolCall, 0, len(items))
	for _, call := range f.Objects("tool_calls", items) {
		calls = append(calls, fields{call}.toolCall())
	}
	return calls
}

func (f fields) toolCall() chat.ToolCall {
	var c chat.ToolCall
	f.Text("id", &c.ID)
	if function := f.Object("function"); function != nil {
		readCall(function, &c)
	} else {
		f.Invalid("function", "is required: this server reads calls of functions only")
	}
	return c
}

// olderCall reads function_call and the role function, which came before tool_calls and tool. They have no ids, so the name of
// the function stands for one.
func (f fields) olderCall(m *chat.Message) {
	if function := f.Object("function_call"); function != nil && len(m.ToolCalls) == 0 {
		var c chat.ToolCall
		readCall(function, &c)
		c.ID = "call_" + c.Name
		m.ToolCalls = []chat.ToolCall{c}
	}
	if m.Role == "function" && m.ToolCallID == "" {
		m.ToolCallID = "call_" + m.Name
	}
}

// readCall reads the name and the arguments of a call.
func readCall(function *api.Fields, c *chat.ToolCall) {
	c.Name = function.Required("name")
	switch v := function.Take("arguments").(type) {
	case nil:
	case jsontree.String:
		c.Arguments = string(v)
	case *jsontree.Object:
		c.Arguments = string(jsontree.Append(nil, v))
	default:
		function.WrongKind("arguments", "the JSON of an object, as a string", v)
	}
}
