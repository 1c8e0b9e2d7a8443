package responses

import (
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// conversation grows item by item.
type conversation struct {
	messages  []chat.Message
	places    []string // by message: the field that it begins with
	assistant bool     // the last message is an assistant's, and its next item joins it
	texts     []string // of that message, until it is sealed
	thoughts  []string // before it
	skipped   int      // items that were left out
}

// add begins a message.
func (c *conversation) add(m chat.Message, place string) {
	c.seal()
	c.messages, c.places = append(c.messages, m), append(c.places, place)
	c.assistant = m.Role == "assistant"
}

// seal ends the assistant's message: its texts have blank lines between them.
func (c *conversation) seal() {
	if c.assistant {
		m := &c.messages[len(c.messages)-1]
		m.Content.Text, m.Reasoning = strings.Join(c.texts, "\n\n"), strings.Join(c.thoughts, "\n\n")
		c.assistant, c.texts, c.thoughts = false, nil, nil
	}
}

// own is the assistant's message that an item belongs to.
func (c *conversation) own(place string) *chat.Message {
	if !c.assistant {
		c.add(chat.Message{Role: "assistant", Content: chat.Content{Null: true}}, place)
	}
	return &c.messages[len(c.messages)-1]
}

// kindOf is the type of an item. Messages may lack it, and so may references, which have nothing but an id.
func kindOf(f *api.Fields) string {
	kind := ""
	if f.Text("type", &kind); kind != "" {
		return kind
	}
	if _, message := f.Peek("role"); message {
		return "message"
	}
	if _, reference := f.Peek("id"); reference {
		return "item_reference"
	}
	f.Invalid("type", "is required")
	return ""
}

// item reads an item of any type but item_reference.
func (c *conversation) item(f *api.Fields, place string) {
	switch kind := kindOf(f); kind {
	case "message":
		c.message(f, place)
	case "function_call":
		call := call(f)
		f.Text("arguments", &call.Arguments)
		c.call(call, place)
	case "custom_tool_call": // has a text, not arguments
		call, text := call(f), ""
		f.Text("input", &text)
		o := jsontree.NewObject()
		o.Set("input", jsontree.String(text))
		call.Arguments = string(jsontree.Append(nil, o))
		c.call(call, place)
	case "function_call_output", "custom_tool_call_output":
		m := chat.Message{Role: "tool", ToolCallID: f.Required("call_id")}
		m.Content.Text = content(f, "output", true)
		c.add(m, place)
	case "reasoning":
		if text := thoughts(f); text != "" {
			c.own(place)
			c.thoughts = append(c.thoughts, text)
		}
	case "web_search_call", "file_search_call", "mcp_list_tools": // what tools of OpenAI did: what came of it is in the texts
		c.skipped++
	case "":
	default:
		f.Fail(api.Unsupported(f.Path("type"), "%s is %q; this server reads messages, reasoning, and calls of functions with their outputs.", f.Path("type"), api.Clip(kind, 40)))
	}
}

func (c *conversation) message(f *api.Fields, place string) {
	var m chat.Message
	f.Enum("role", &m.Role, "user", "system", "developer", "assistant")
	if m.Role == "" {
		f.Invalid("role", "is required")
	}
	text := content(f, "content", false)
	if m.Role != "assistant" {
		m.Content.Text = text
		c.add(m, place)
		return
	}
	c.own(place).Content.Null = false
	if text != "" {
		c.texts = append(c.texts, text)
	}
}

func (c *conversation) call(call chat.ToolCall, place string) {
	m := c.own(place)
	m.ToolCalls = append(m.ToolCalls, call)
}

// call reads which call it is, and of what.
func call(f *api.Fields) chat.ToolCall {
	return chat.ToolCall{ID: f.Required("call_id"), Name: f.Required("name")}
}

// content reads a text, or parts of one, as openai.Parts does.
func content(f *api.Fields, name string, given bool) string {
	switch v := f.Take(name).(type) {
	case nil:
		f.Invalid(name, "is required")
	case jsontree.String:
		return string(v)
	case jsontree.Array:
		return openai.Parts(f, name, v, given)
	default:
		f.Invalid(name, "must be a string or an array of parts, not %s", v.Kind())
	}
	return ""
}

// thoughts reads a reasoning item: the thoughts, or else what sums them up. Encrypted ones are another server's, which nobody here can read.
func thoughts(f *api.Fields) string {
	text := openai.Parts(f, "content", f.List("content"), false)
	if summary := openai.Parts(f, "summary", f.List("summary"), false); text == "" {
		text = summary
	}
	f.Ignore("encrypted_content")
	return text
}
