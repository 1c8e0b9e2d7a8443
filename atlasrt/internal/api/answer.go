package api

import (
	"strconv"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// Head is what every piece of one answer repeats.
type Head struct {
	ID           string // such as chatcmpl-…
	Created      int64  // seconds since 1970
	Model        string
	Prompts      int
	Choices      int // answers to each prompt
	IncludeUsage bool
}

// all is how many answers there are.
func (h *Head) all() int { return h.Prompts * h.Choices }

// Usage counts tokens, over all choices.
type Usage struct {
	PromptTokens     int           `json:"prompt_tokens"`
	CompletionTokens int           `json:"completion_tokens"`
	TotalTokens      int           `json:"total_tokens"`
	PromptDetails    PromptDetails `json:"prompt_tokens_details"`
}

// PromptDetails says where prompt tokens came from.
type PromptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

func usageOf(u chat.Usage) Usage {
	return Usage{u.Prompt, u.Output, u.Prompt + u.Output, PromptDetails{u.Cached}}
}

// events appends the events of one stream. What they share is encoded once.
type events struct {
	open  []byte // up to the choices
	close []byte // behind the choices
	usage bool
}

func newEvents(object string, h Head) events {
	e := events{open: appendHead([]byte("data: "), object, h), usage: h.IncludeUsage}
	e.open = append(e.open, `"choices":[`...)
	e.close = []byte("]}\n\n")
	if h.IncludeUsage {
		e.close = []byte("],\"usage\":null}\n\n")
	}
	return e
}

func appendHead(b []byte, object string, h Head) []byte {
	b = append(b, `{"id":`...)
	b = jsontree.AppendString(b, h.ID)
	b = append(b, `,"object":`...)
	b = jsontree.AppendString(b, object)
	b = append(b, `,"created":`...)
	b = strconv.AppendInt(b, h.Created, 10)
	b = append(b, `,"model":`...)
	b = jsontree.AppendString(b, h.Model)
	return append(b, ',')
}

// end appends the usage, where it was asked for, and the end of the stream.
func (e *events) end(b []byte, u chat.Usage) []byte {
	if e.usage {
		b = append(b, e.open...)
		b = append(b, `],"usage":`...)
		b = appendJSON(b, usageOf(u))
		b = append(b, "}\n\n"...)
	}
	return append(b, "data: [DONE]\n\n"...)
}

// index appends the beginning of a choice.
func (e *events) index(b []byte, choice int) []byte {
	b = append(b, e.open...)
	b = append(b, `{"index":`...)
	return strconv.AppendInt(b, int64(choice), 10)
}

// finish appends how a choice goes on, and its end and the event's.
func (e *events) finish(b []byte, f chat.Finish) []byte {
	b = append(b, `,"finish_reason":`...)
	b = appendOptional(b, string(f))
	b = append(b, '}')
	return append(b, e.close...)
}

// AppendPing appends a comment that keeps a stream's connection open.
func AppendPing(b []byte) []byte { return append(b, ": ping\n\n"...) }

// AppendError appends an error as the last event of a stream.
func AppendError(b []byte, e *Error) []byte {
	b = append(b, "data: "...)
	b = append(b, e.Body()...)
	return append(b, "\n\n"...)
}
