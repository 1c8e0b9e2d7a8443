package openai

import (
	"strconv"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// usage counts tokens, over all choices.
type usage struct {
	PromptTokens     int           `json:"prompt_tokens"`
	CompletionTokens int           `json:"completion_tokens"`
	TotalTokens      int           `json:"total_tokens"`
	PromptDetails    promptDetails `json:"prompt_tokens_details"`
	OutputDetails    outputDetails `json:"completion_tokens_details"`
}

// promptDetails says where prompt tokens came from.
type promptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// outputDetails says what generated tokens are. None is of a prediction that the client made.
type outputDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
	Accepted        int `json:"accepted_prediction_tokens"`
	Rejected        int `json:"rejected_prediction_tokens"`
}

func usageOf(u chat.Usage) usage {
	return usage{u.Prompt, u.Output, u.Prompt + u.Output, promptDetails{u.Cached}, outputDetails{ReasoningTokens: u.Reasoning}}
}

// stream is what both routes say beside events of tokens.
type stream struct{}

// Begin implements api.Answer.
func (stream) Begin(b []byte) []byte { return b }

// Ping implements api.Answer.
func (stream) Ping(b []byte) []byte { return api.AppendComment(b) }

// Fail implements api.Answer.
func (stream) Fail(b []byte, e *api.Error) []byte { return fail(b, e) }

// events appends the events of one stream. What they share is encoded once.
type events struct {
	open  []byte // up to the choices
	close []byte // behind the choices
	usage bool
}

func newEvents(object string, h api.Head, usage bool) events {
	e := events{open: appendHead([]byte("data: "), object, h), usage: usage}
	e.open = append(e.open, `"choices":[`...)
	e.close = []byte("]}\n\n")
	if usage {
		e.close = []byte("],\"usage\":null}\n\n")
	}
	return e
}

func appendHead(b []byte, object string, h api.Head) []byte {
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
		b = api.AppendJSON(b, usageOf(u))
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
	b = api.AppendOptional(b, string(f))
	b = append(b, '}')
	return append(b, e.close...)
}
