package api

import (
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// TextAnswer writes the answer to a completions request: either as a stream, chunk by chunk, or as a whole. Use one way
// only.
type TextAnswer struct {
	head    Head
	events  events
	echoes  map[int]Echo // by choice, until they are written
	offsets []int        // code points of each choice so far
	choices []textChoice
	texts   []strings.Builder
}

// Echo is a prompt that goes before an answer. Tokens are set where log-probabilities were asked for; the first has none.
type Echo struct {
	Text   string
	Tokens []completion.Token
}

type textResponse struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []textChoice `json:"choices"`
	Usage   Usage        `json:"usage"`
}

type textChoice struct {
	Index    int           `json:"index"`
	Text     string        `json:"text"`
	LogProbs *textLogProbs `json:"logprobs"`
	Finish   string        `json:"finish_reason"`
}

// NewTextAnswer begins an answer.
func NewTextAnswer(h Head) *TextAnswer {
	a := &TextAnswer{head: h, events: newEvents("text_completion", h), echoes: map[int]Echo{}, offsets: make([]int, h.Choices),
		choices: make([]textChoice, h.Choices), texts: make([]strings.Builder, h.Choices)}
	for i := range a.choices {
		a.choices[i].Index = i
	}
	return a
}

// Echo sets what goes before a choice. In a stream it must be known before the choice's first chunk, else before Body.
func (a *TextAnswer) Echo(choice int, e Echo) { a.echoes[choice] = e }

// AppendChunk appends the events of a chunk of a choice.
func (a *TextAnswer) AppendChunk(b []byte, choice int, c completion.Chunk) []byte {
	if e, ok := a.echoes[choice]; ok {
		delete(a.echoes, choice)
		b = a.event(b, choice, e.Text, echoLogProbs(e, &a.offsets[choice]), "")
	}
	if c.Text == "" && c.Tokens == nil && c.Finish == "" {
		return b
	}
	return a.event(b, choice, c.Text, answerLogProbs(c.Tokens, &a.offsets[choice]), c.Finish)
}

func (a *TextAnswer) event(b []byte, choice int, text string, l *textLogProbs, f completion.Finish) []byte {
	b = a.events.index(b, choice)
	b = append(b, `,"text":`...)
	b = jsontree.AppendString(b, text)
	b = append(b, `,"logprobs":`...)
	b = appendJSON(b, l)
	return a.events.finish(b, f)
}

// AppendEnd appends the usage, where it was asked for, and the end of the stream.
func (a *TextAnswer) AppendEnd(b []byte, u completion.Usage) []byte { return a.events.end(b, u) }

// Add takes a chunk of a choice.
func (a *TextAnswer) Add(choice int, c completion.Chunk) {
	a.texts[choice].WriteString(c.Text)
	to := &a.choices[choice]
	to.LogProbs = to.LogProbs.join(answerLogProbs(c.Tokens, &a.offsets[choice]))
	if c.Finish != "" {
		to.Finish = string(c.Finish)
	}
}

// Body is the whole answer.
func (a *TextAnswer) Body(u completion.Usage) []byte {
	for i := range a.choices {
		c := &a.choices[i]
		c.Text = a.texts[i].String()
		if e, ok := a.echoes[i]; ok {
			c.Text = e.Text + c.Text
			length := 0
			before := echoLogProbs(e, &length)
			c.LogProbs.shift(length)
			c.LogProbs = before.join(c.LogProbs)
		}
	}
	return appendJSON(nil, textResponse{a.head.ID, "text_completion", a.head.Created, a.head.Model, a.choices, usageOf(u)})
}
