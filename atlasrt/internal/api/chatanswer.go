package api

import (
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// ChatAnswer writes the answer to a chat request: either as a stream, chunk by chunk, or as a whole. Use one way only.
type ChatAnswer struct {
	head    Head
	events  events
	started []bool // choices that have told their role
	choices []chatChoice
	texts   []strings.Builder
}

type chatResponse struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	Usage   Usage        `json:"usage"`
}

type chatChoice struct {
	Index    int           `json:"index"`
	Message  chatMessage   `json:"message"`
	LogProbs *chatLogProbs `json:"logprobs"`
	Finish   string        `json:"finish_reason"`
}

type chatMessage struct {
	Role    string  `json:"role"`
	Content string  `json:"content"`
	Refusal *string `json:"refusal"`
}

// NewChatAnswer begins an answer.
func NewChatAnswer(h Head) *ChatAnswer {
	a := &ChatAnswer{head: h, events: newEvents("chat.completion.chunk", h), started: make([]bool, h.Choices),
		choices: make([]chatChoice, h.Choices), texts: make([]strings.Builder, h.Choices)}
	for i := range a.choices {
		a.choices[i] = chatChoice{Index: i, Message: chatMessage{Role: "assistant"}}
	}
	return a
}

// AppendChunk appends the events of a chunk of a choice: its role first, then text, then why it ended.
func (a *ChatAnswer) AppendChunk(b []byte, choice int, c completion.Chunk) []byte {
	e := &a.events
	if !a.started[choice] {
		a.started[choice] = true
		b = e.index(b, choice)
		b = append(b, `,"delta":{"role":"assistant","content":""},"logprobs":null`...)
		b = e.finish(b, "")
	}
	if c.Text != "" || c.Tokens != nil {
		b = e.index(b, choice)
		b = append(b, `,"delta":{"content":`...)
		b = jsontree.AppendString(b, c.Text)
		b = append(b, `},"logprobs":`...)
		if c.Tokens == nil {
			b = append(b, "null"...)
		} else {
			b = appendJSON(b, chatLogProbs{Content: chatTokens(c.Tokens)})
		}
		b = e.finish(b, "")
	}
	if c.Finish != "" {
		b = e.index(b, choice)
		b = append(b, `,"delta":{},"logprobs":null`...)
		b = e.finish(b, c.Finish)
	}
	return b
}

// AppendEnd appends the usage, where it was asked for, and the end of the stream.
func (a *ChatAnswer) AppendEnd(b []byte, u completion.Usage) []byte { return a.events.end(b, u) }

// Add takes a chunk of a choice.
func (a *ChatAnswer) Add(choice int, c completion.Chunk) {
	a.texts[choice].WriteString(c.Text)
	to := &a.choices[choice]
	if c.Tokens != nil {
		if to.LogProbs == nil {
			to.LogProbs = &chatLogProbs{}
		}
		to.LogProbs.Content = append(to.LogProbs.Content, chatTokens(c.Tokens)...)
	}
	if c.Finish != "" {
		to.Finish = string(c.Finish)
	}
}

// Body is the whole answer.
func (a *ChatAnswer) Body(u completion.Usage) []byte {
	for i := range a.choices {
		a.choices[i].Message.Content = a.texts[i].String()
	}
	return appendJSON(nil, chatResponse{a.head.ID, "chat.completion", a.head.Created, a.head.Model, a.choices, usageOf(u)})
}
