package anthropic

import (
	"fmt"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
)

// conversation gathers the messages of a request.
type conversation struct {
	messages []chat.Message
	names    []string        // what the request calls each
	waiting  map[string]bool // calls of the last assistant turn that have no result yet
	held     conversationPart
}

// conversationPart is system messages that came while calls waited.
type conversationPart struct {
	messages []chat.Message
	names    []string
}

func (c *conversation) add(name string, m chat.Message) {
	c.messages, c.names = append(c.messages, m), append(c.names, name)
}

// release adds what was held.
func (c *conversation) release() {
	c.messages, c.names = append(c.messages, c.held.messages...), append(c.names, c.held.names...)
	c.held = conversationPart{}
}

// conversation reads system and messages.
func (d *decoder) conversation() {
	c := &conversation{}
	if text := d.system(); text != "" {
		c.add("system", chat.Message{Role: "system", Content: chat.Content{Text: text}})
	}
	items := d.List("messages")
	switch {
	case d.Err() != nil:
	case len(items) == 0:
		d.Invalid("messages", "must be an array of at least one message")
	case d.AtMost(api.LimitMessages, "messages", len(items), d.limits.Messages):
		for i, f := range d.Objects("messages", items) {
			c.turn(f, fmt.Sprintf("messages[%d]", i))
		}
	}
	c.release()
	d.finish(c)
}

// finish makes the request of the conversation: an assistant's turn at its end is what the answer goes on with.
func (d *decoder) finish(c *conversation) {
	r := d.request.Chat
	r.Messages, r.Names = c.messages, c.names
	if last := len(c.messages) - 1; last >= 0 && c.messages[last].Role == "assistant" {
		r.Continue = true
		if len(c.messages[last].ToolCalls) > 0 {
			d.Invalid(c.names[last], "has calls of tools; a user message with their results must follow")
		}
	}
	r.AddGenerationPrompt = !r.Continue
}

// billing begins a text that one client puts first into its system texts, another one with each request. It is for the vendor of
// this API, no model should read it, and no cache would know the prompt again.
const billing = "x-anthropic-billing-header:"

// system reads the text before the conversation.
func (d *decoder) system() string {
	var texts []string
	read(d.Fields, "system", func(text string) {
		if len(texts) == 0 && strings.HasPrefix(text, billing) {
			_, text, _ = strings.Cut(text, "\n")
		}
		texts = append(texts, text)
	}, nil, textBlocks)
	return join(texts...)
}

// turn reads one message.
func (c *conversation) turn(f *api.Fields, name string) {
	var role string
	f.Text("role", &role)
	if f.Take("content") == nil {
		f.Invalid("content", "is required")
	}
	switch role {
	case "user", "ctx", "msg": // the second and third are what some clients call notes of their own
		c.user(f, name)
	case "assistant":
		c.assistant(f, name)
	case "system":
		c.system(f, name)
	default:
		f.Invalid("role", "must be one of user, assistant, system")
	}
}

// system reads a system message, which waits while calls do.
func (c *conversation) system(f *api.Fields, name string) {
	m := chat.Message{Role: "system"}
	read(f, "content", func(text string) { m.Content.Text = join(m.Content.Text, text) }, nil, textBlocks)
	if len(c.waiting) == 0 {
		c.add(name, m)
		return
	}
	c.held.messages, c.held.names = append(c.held.messages, m), append(c.held.names, name)
}

// user reads a user's turn: its results of tools, then its text.
func (c *conversation) user(f *api.Fields, name string) {
	var texts []string
	results := 0
	read(f, "content", func(text string) { texts = append(texts, text) }, func(kind string, b *api.Fields) {
		if kind == "search_result" {
			texts = append(texts, searchResult(b))
			return
		}
		m := toolResult(b)
		delete(c.waiting, m.ToolCallID)
		c.add(name, m)
		results++
	}, userBlocks)
	text := join(texts...)
	if text != "" || len(c.waiting) == 0 {
		c.release()
	}
	if text != "" || results == 0 {
		c.add(name, chat.Message{Role: "user", Content: chat.Content{Text: text}})
	}
}

// assistant reads an assistant's turn, which goes on with one right before it.
func (c *conversation) assistant(f *api.Fields, name string) {
	c.release()
	m := chat.Message{Role: "assistant"}
	if last := len(c.messages) - 1; last >= 0 && c.messages[last].Role == "assistant" {
		m, name = c.messages[last], c.names[last]
		c.messages, c.names = c.messages[:last], c.names[:last]
	}
	read(f, "content", func(text string) { m.Content.Text = join(m.Content.Text, text) }, func(kind string, b *api.Fields) {
		switch kind {
		case "tool_use":
			m.ToolCalls = append(m.ToolCalls, toolUse(b))
		case "thinking":
			m.Reasoning = join(m.Reasoning, given(b, "thinking"))
		case "redacted_thinking": // nobody can read it
		}
	}, assistantBlocks)
	m.Content.Null = m.Content.Text == "" && len(m.ToolCalls) > 0
	c.waiting = map[string]bool{}
	for i := range m.ToolCalls {
		c.waiting[m.ToolCalls[i].ID] = true
	}
	c.add(name, m)
}

// join puts texts on lines of their own; empty ones have none.
func join(texts ...string) string {
	var b strings.Builder
	for _, text := range texts {
		if text != "" && b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(text)
	}
	return b.String()
}
