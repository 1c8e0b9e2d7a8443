package chat

import (
	"fmt"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// Request is what a conversation asks of a template, whatever dialect it came in.
type Request struct {
	Messages            []Message      // in order
	Names               []string       // what the client's request calls each message; nil: messages[0] and so on
	Tools               []Tool         // that the model may call
	Documents           jsontree.Array // for templates with retrieval, or nil
	AddGenerationPrompt bool           // the prompt ends with the beginning of an assistant's turn
	// Continue makes the prompt end within the last message, an assistant's, so that the answer goes on with it. The prompt of a
	// new turn is not added then.
	Continue bool
	Thinking Thinking // before the answer
	// Variables are further names for the template (chat_template_kwargs). The caller decides which
	// a client may set; those that the engine sets are refused.
	Variables *jsontree.Object
	Defaults  *jsontree.Object // likewise, where neither Variables nor Thinking sets them
}

// Name is what the client's request calls a message.
func (r *Request) Name(message int) string {
	if r.Names == nil {
		return fmt.Sprintf("messages[%d]", message)
	}
	return r.Names[message]
}

// Message is one turn of a conversation.
type Message struct {
	Role       string     // system, developer, user, assistant, tool, function, ipython, or a name that the template knows
	Content    Content    // its text
	Name       string     // of the speaker or the function; "": none
	ToolCalls  []ToolCall // of an assistant
	ToolCallID string     // of the call that a tool message answers
	Reasoning  string     // what the model thought before an assistant message, reasoning_content for templates
	// Extra holds the fields of the client's message that have no place above; templates see them as they are.
	Extra *jsontree.Object
}

// Content is the text of a message, or its parts. The zero value is the empty text.
type Content struct {
	Text  string
	Parts []Part // where not nil, Text does not count
	Null  bool   // the client sent null, or nothing
}

// Part is one piece of a message: text or a reference to media.
type Part struct {
	Type string // text, image, audio, video
	Text string // of a text part
	// Extra holds the other fields of the part; templates see them as they are.
	Extra *jsontree.Object
}

// ToolCall is a call that the model made.
type ToolCall struct {
	ID        string // that the tool's message refers to
	Name      string // of the function
	Arguments string // JSON text of an object, as the model wrote it: it may be broken or cut. The empty text is an object without entries
}

// BrokenArguments is the one key of the object that stands for arguments that are none, where an object must be: their text is its
// value.
const BrokenArguments = "INVALID_JSON"

// Tool is a function that the model may call.
type Tool struct {
	Name        string         // of the function
	Description string         // for the model
	Parameters  jsontree.Value // JSON schema, nil where the function takes none
	Strict      bool           // arguments must follow Parameters
	// Definition is the tool as the client wrote it; where it is not nil templates see it and nothing of the above.
	Definition *jsontree.Object
}

// isText says whether the content has no media.
func (c *Content) isText() bool {
	for i := range c.Parts {
		if c.Parts[i].Type != "text" {
			return false
		}
	}
	return true
}

// joined is the text of the content; parts are joined by line breaks.
func (c *Content) joined() string {
	if c.Parts == nil {
		return c.Text
	}
	var texts []string
	for i := range c.Parts {
		if c.Parts[i].Type == "text" {
			texts = append(texts, c.Parts[i].Text)
		}
	}
	return strings.Join(texts, "\n")
}

// texts calls visit for every text of the content, to read or to change.
func (c *Content) texts(visit func(*string)) {
	if c.Parts == nil {
		visit(&c.Text)
	}
	for i := range c.Parts {
		if c.Parts[i].Type == "text" {
			visit(&c.Parts[i].Text)
		}
	}
}
