package openai

import (
	"fmt"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// chatAnswer writes the answer to a chat request.
type chatAnswer struct {
	stream
	head    api.Head
	events  events
	started []bool // choices that have told their role
	choices []chatChoice
	texts   []strings.Builder
	usage   usage
}

type chatResponse struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	Usage   usage        `json:"usage"`
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

// Answer implements api.Dialect.
func (Chat) Answer(r *api.Request, h api.Head) api.Answer {
	h.ID = "chatcmpl-" + h.ID
	n := r.Choices()
	a := &chatAnswer{head: h, events: newEvents("chat.completion.chunk", h, r.StreamUsage), started: make([]bool, n),
		choices: make([]chatChoice, n), texts: make([]strings.Builder, n)}
	for i := range a.choices {
		a.choices[i] = chatChoice{Index: i, Message: chatMessage{Role: "assistant"}}
	}
	return a
}

// Append implements api.Answer: the role of a choice comes first, then text, then why it ended;
// behind all choices the usage, where it was asked for, and the end of the stream.
func (a *chatAnswer) Append(b []byte, of []chat.Event) []byte {
	e := &a.events
	for i := range of {
		event := &of[i]
		switch event.Kind {
		case chat.EventStart:
			continue
		case chat.EventEnd:
			return e.end(b, event.Usage)
		}
		choice := event.Choice
		if !a.started[choice] {
			a.started[choice] = true
			b = e.index(b, choice)
			b = append(b, `,"delta":{"role":"assistant","content":""},"logprobs":null`...)
			b = e.finish(b, "")
		}
		b = e.index(b, choice)
		switch event.Kind {
		case chat.EventText:
			b = append(b, `,"delta":{"content":`...)
			b = jsontree.AppendString(b, event.Text)
			b = append(b, `},"logprobs":`...)
			if event.Tokens == nil {
				b = append(b, "null"...)
			} else {
				b = appendJSON(b, chatLogProbs{Content: chatTokens(event.Tokens)})
			}
		case chat.EventFinish:
			b = append(b, `,"delta":{},"logprobs":null`...)
		default:
			panic(fmt.Sprintf("BUG: an event of kind %d in a chat", event.Kind))
		}
		b = e.finish(b, event.Finish)
	}
	return b
}

// Add implements api.Answer.
func (a *chatAnswer) Add(of []chat.Event) {
	for i := range of {
		event := &of[i]
		to := &a.choices[event.Choice]
		switch event.Kind {
		case chat.EventStart:
		case chat.EventText:
			a.texts[event.Choice].WriteString(event.Text)
			if event.Tokens != nil {
				if to.LogProbs == nil {
					to.LogProbs = &chatLogProbs{}
				}
				to.LogProbs.Content = append(to.LogProbs.Content, chatTokens(event.Tokens)...)
			}
		case chat.EventFinish:
			to.Finish = string(event.Finish)
		case chat.EventEnd:
			a.usage = usageOf(event.Usage)
		default:
			panic(fmt.Sprintf("BUG: an event of kind %d in a chat", event.Kind))
		}
	}
}

// Body implements api.Answer.
func (a *chatAnswer) Body() []byte {
	for i := range a.choices {
		a.choices[i].Message.Content = a.texts[i].String()
	}
	return appendJSON(nil, chatResponse{a.head.ID, "chat.completion", a.head.Created, a.head.Model, a.choices, a.usage})
}
