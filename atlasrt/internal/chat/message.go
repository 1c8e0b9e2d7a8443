package chat

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/jinja"
)

// Message is one turn of a conversation.
type Message struct {
	Role       string // system, developer, user, assistant, tool, or a name that the template knows
	Content    Content
	Name       string
	ToolCalls  []ToolCall
	ToolCallID string // of the call that a tool message answers
	Reasoning  string // what the model thought before an assistant message, reasoning_content for templates
	// Extra holds the fields of the client's message that have no place above; templates see them as they are.
	Extra *jinja.Dict
}

// Content is the text of a message, or its parts. The zero value is the empty text.
type Content struct {
	Text  string
	Parts []Part // where not nil, Text does not count
	Null  bool   // the client sent null
}

// Part is one piece of a message: text or a reference to media.
type Part struct {
	Type string // text, image, audio, video
	Text string // of a text part
	// Extra holds the other fields of the part; templates see them as they are.
	Extra *jinja.Dict
}

// ToolCall is a call that the model made.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is JSON text. An object reaches the template as a mapping, anything else as a string, for templates of
	// today iterate over the arguments while clients send a string.
	Arguments string
}

// Tool is a function that the model may call.
type Tool struct {
	Name        string
	Description string
	Parameters  jinja.Value // JSON schema, nil where the function takes none
	// Definition is the tool as the client wrote it; where it is not nil templates see it and nothing of the above.
	Definition *jinja.Dict
}

// ParseMessage reads a message of an OpenAI request. Fields that Message does not name stay in Extra.
func ParseMessage(v jinja.Value) (Message, error) {
	fields, ok := v.(*jinja.Dict)
	if !ok {
		return Message{}, fmt.Errorf("a message must be an object")
	}
	var m Message
	var failed error
	text := func(key string, v jinja.Value, to *string) {
		switch s := v.(type) {
		case jinja.Str:
			*to = s.Text()
		case jinja.None:
		default:
			failed = fmt.Errorf("%s of a message must be a string", key)
		}
	}
	fields.Each(func(key string, v jinja.Value) {
		switch key {
		case "role":
			text(key, v, &m.Role)
		case "name":
			text(key, v, &m.Name)
		case "tool_call_id":
			text(key, v, &m.ToolCallID)
		case "reasoning_content", "reasoning":
			text(key, v, &m.Reasoning)
		case "content":
			if c, err := parseContent(v); err != nil {
				failed = err
			} else {
				m.Content = c
			}
		case "tool_calls":
			if calls, err := parseToolCalls(v); err != nil {
				failed = err
			} else {
				m.ToolCalls = calls
			}
		default:
			if m.Extra == nil {
				m.Extra = jinja.NewDict()
			}
			m.Extra.Set(jinja.Data(key), v)
		}
	})
	if failed == nil && m.Role == "" {
		failed = fmt.Errorf("a message needs a role")
	}
	return m, failed
}

func parseContent(v jinja.Value) (Content, error) {
	switch v := v.(type) {
	case jinja.None:
		return Content{Null: true}, nil
	case jinja.Str:
		return Content{Text: v.Text()}, nil
	case *jinja.List:
		c := Content{Parts: []Part{}}
		for _, item := range v.Items() {
			part, err := parsePart(item)
			if err != nil {
				return c, err
			}
			c.Parts = append(c.Parts, part)
		}
		return c, nil
	}
	return Content{}, fmt.Errorf("content of a message must be a string, a list of parts or null")
}

func parsePart(v jinja.Value) (Part, error) {
	fields, ok := v.(*jinja.Dict)
	if !ok {
		return Part{}, fmt.Errorf("a part of a message's content must be an object")
	}
	var p Part
	fields.Each(func(key string, v jinja.Value) {
		s, isText := v.(jinja.Str)
		switch {
		case key == "type" && isText:
			p.Type = s.Text()
		case key == "text" && isText:
			p.Text = s.Text()
		default:
			if p.Extra == nil {
				p.Extra = jinja.NewDict()
			}
			p.Extra.Set(jinja.Data(key), v)
		}
	})
	if p.Type == "" {
		return p, fmt.Errorf("a part of a message's content needs a type")
	}
	return p, nil
}

func parseToolCalls(v jinja.Value) ([]ToolCall, error) {
	if _, none := v.(jinja.None); none {
		return nil, nil
	}
	list, ok := v.(*jinja.List)
	if !ok {
		return nil, fmt.Errorf("tool_calls of a message must be a list")
	}
	var calls []ToolCall
	for _, item := range list.Items() {
		call, ok := item.(*jinja.Dict)
		if !ok {
			return nil, fmt.Errorf("a tool call must be an object")
		}
		function, ok := field[*jinja.Dict](call, "function")
		if !ok {
			return nil, fmt.Errorf("a tool call needs a function")
		}
		id, _ := field[jinja.Str](call, "id")
		name, ok := field[jinja.Str](function, "name")
		if !ok {
			return nil, fmt.Errorf("the function of a tool call needs a name")
		}
		c := ToolCall{ID: id.Text(), Name: name.Text()}
		if s, ok := field[jinja.Str](function, "arguments"); ok {
			c.Arguments = s.Text()
		} else if v, ok := function.Get("arguments"); ok {
			text, err := jinja.MarshalJSON(v)
			if err != nil {
				return nil, fmt.Errorf("arguments of the tool call %q: %w", c.Name, err)
			}
			c.Arguments = text
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// field is the entry of a dictionary where it has the type T.
func field[T jinja.Value](d *jinja.Dict, key string) (T, bool) {
	v, _ := d.Get(key)
	t, ok := v.(T)
	return t, ok
}

// ParseTool reads a tool of an OpenAI request and keeps it as it is.
func ParseTool(v jinja.Value) (Tool, error) {
	definition, ok := v.(*jinja.Dict)
	if !ok {
		return Tool{}, fmt.Errorf("a tool must be an object")
	}
	function, ok := field[*jinja.Dict](definition, "function")
	if !ok {
		return Tool{}, fmt.Errorf("a tool needs a function")
	}
	name, ok := field[jinja.Str](function, "name")
	if !ok || name.Text() == "" {
		return Tool{}, fmt.Errorf("the function of a tool needs a name")
	}
	description, _ := field[jinja.Str](function, "description")
	parameters, _ := function.Get("parameters")
	return Tool{Name: name.Text(), Description: description.Text(), Parameters: parameters, Definition: definition}, nil
}
