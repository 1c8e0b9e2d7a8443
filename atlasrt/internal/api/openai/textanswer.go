package openai

import (
	"fmt"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// textAnswer writes the answer to a completions request.
type textAnswer struct {
	stream
	head    api.Head
	each    int // choices to each prompt
	events  events
	echoes  map[int]chat.Event // prompts by choice, until they are written
	offsets []int              // code points of each choice so far
	choices []textChoice
	texts   []strings.Builder
	usage   usage
}

type textResponse struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []textChoice `json:"choices"`
	Usage   usage        `json:"usage"`
}

type textChoice struct {
	Index    int           `json:"index"`
	Text     string        `json:"text"`
	LogProbs *textLogProbs `json:"logprobs"`
	Finish   string        `json:"finish_reason"`
}

// Answer implements api.Dialect.
func (Text) Answer(r *api.Request, h api.Head) api.Answer {
	h.ID = "cmpl-" + h.ID
	n := r.Choices()
	a := &textAnswer{head: h, each: r.Options.Choices, events: newEvents("text_completion", h, r.StreamUsage), echoes: map[int]chat.Event{},
		offsets: make([]int, n), choices: make([]textChoice, n), texts: make([]strings.Builder, n)}
	for i := range a.choices {
		a.choices[i].Index = i
	}
	return a
}

// Append implements api.Answer: the prompt comes before the first event of a choice, then text and why it ended in one; behind
// all choices the usage, where it was asked for, and the end of the stream.
func (a *textAnswer) Append(b []byte, of []chat.Event) []byte {
	piece := a.join(of)
	switch piece.Kind {
	case chat.EventStart:
		return b
	case chat.EventEnd:
		return a.events.end(b, piece.Usage)
	}
	offset := &a.offsets[piece.Choice]
	if e, ok := a.echoes[piece.Choice]; ok {
		delete(a.echoes, piece.Choice)
		b = a.event(b, piece.Choice, e.Text, echoLogProbs(&e, offset), "")
	}
	return a.event(b, piece.Choice, piece.Text, answerLogProbs(piece.Tokens, offset), piece.Finish)
}

// join keeps the prompt among events for the choices that begin with it, and makes one event of the others.
func (a *textAnswer) join(of []chat.Event) (piece chat.Event) {
	for i := range of {
		event := &of[i]
		switch event.Kind {
		case chat.EventStart:
			continue
		case chat.EventPrompt:
			for choice := range a.each {
				a.echoes[event.Choice+choice] = *event
			}
			continue
		case chat.EventText:
			piece.Text += event.Text
			piece.Tokens = append(piece.Tokens, event.Tokens...)
		case chat.EventFinish:
			piece.Finish = event.Finish
		case chat.EventEnd:
			piece.Usage = event.Usage
		default:
			panic(fmt.Sprintf("BUG: an event of kind %d in a completion", event.Kind))
		}
		piece.Kind, piece.Choice = event.Kind, event.Choice
	}
	return piece
}

func (a *textAnswer) event(b []byte, choice int, text string, l *textLogProbs, f chat.Finish) []byte {
	b = a.events.index(b, choice)
	b = append(b, `,"text":`...)
	b = jsontree.AppendString(b, text)
	b = append(b, `,"logprobs":`...)
	b = api.AppendJSON(b, l)
	return a.events.finish(b, f)
}

// Add implements api.Answer.
func (a *textAnswer) Add(of []chat.Event) {
	piece := a.join(of)
	switch piece.Kind {
	case chat.EventStart:
		return
	case chat.EventEnd:
		a.usage = usageOf(piece.Usage)
		return
	}
	a.texts[piece.Choice].WriteString(piece.Text)
	to := &a.choices[piece.Choice]
	to.LogProbs = to.LogProbs.join(answerLogProbs(piece.Tokens, &a.offsets[piece.Choice]))
	if piece.Finish != "" {
		to.Finish = string(piece.Finish)
	}
}

// Body implements api.Answer.
func (a *textAnswer) Body() []byte {
	for i := range a.choices {
		c := &a.choices[i]
		c.Text = a.texts[i].String()
		if e, ok := a.echoes[i]; ok {
			c.Text = e.Text + c.Text
			length := 0
			before := echoLogProbs(&e, &length)
			c.LogProbs.shift(length)
			c.LogProbs = before.join(c.LogProbs)
		}
	}
	return api.AppendJSON(nil, textResponse{a.head.ID, "text_completion", a.head.Created, a.head.Model, a.choices, a.usage})
}
