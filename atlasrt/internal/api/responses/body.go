package responses

import (
	"strconv"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// usage counts tokens.
type usage struct {
	Input        int           `json:"input_tokens"`
	InputDetails inputDetails  `json:"input_tokens_details"`
	Output       int           `json:"output_tokens"`
	Details      outputDetails `json:"output_tokens_details"`
	Total        int           `json:"total_tokens"`
}

type inputDetails struct {
	Cached  int `json:"cached_tokens"`
	Written int `json:"cache_write_tokens"` // nobody pays for these here
}

type outputDetails struct {
	Reasoning int `json:"reasoning_tokens"`
}

// Shown is the answer so far, as if it had a status.
func (a *Answer) Shown(status Status) []byte { return a.appendBody(nil, status) }

func (a *Answer) appendBody(b []byte, status Status) []byte {
	b = append(b, `{"id":`...)
	b = jsontree.AppendString(b, a.ID())
	b = append(b, `,"object":"response","created_at":`...)
	b = strconv.AppendInt(b, a.head.Created, 10)
	b = append(b, `,"status":`...)
	b = jsontree.AppendString(b, string(status))
	b = append(b, `,"error":`...)
	b = a.appendError(b)
	b = append(b, `,"incomplete_details":`...)
	if status == StatusIncomplete {
		b = append(b, `{"reason":"max_output_tokens"}`...)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"model":`...)
	b = jsontree.AppendString(b, a.head.Model)
	b = append(b, `,"output":[`...)
	for i, it := range a.items {
		if i > 0 {
			b = append(b, ',')
		}
		b = it.append(b, it.status)
	}
	b = append(b, `],"usage":`...)
	if u := a.usage; u == nil {
		b = append(b, "null"...)
	} else {
		b = api.AppendJSON(b, usage{u.Prompt, inputDetails{Cached: u.Cached}, u.Output, outputDetails{u.Reasoning}, u.Prompt + u.Output})
	}
	if a.echo != nil {
		b = append(b, ',')
		b = append(b, a.echo...)
	}
	return append(b, '}')
}

// appendError appends why the answer failed, in the API's codes and in two more that agents look for.
func (a *Answer) appendError(b []byte) []byte {
	e := a.problem
	if e == nil {
		return append(b, "null"...)
	}
	code := "server_error"
	switch e.Kind {
	case api.KindTooLong:
		code = "context_length_exceeded"
	case api.KindQueueFull:
		code = "rate_limit_exceeded"
	case api.KindInvalid, api.KindUnsupported:
		code = "invalid_prompt"
	}
	b = append(b, `{"code":`...)
	b = jsontree.AppendString(b, code)
	b = append(b, `,"message":`...)
	b = jsontree.AppendString(b, e.Error())
	return append(b, '}')
}

// append appends an item with what it has so far.
func (it *item) append(b []byte, status Status) []byte {
	b = append(b, `{"id":`...)
	b = jsontree.AppendString(b, it.id)
	b = append(b, `,"type":`...)
	switch it.kind {
	case message:
		b = append(b, `"message","role":"assistant","content":[`...)
	case reasoning:
		b = append(b, `"reasoning","summary":[],"content":[`...)
	case summary:
		b = append(b, `"reasoning","summary":[`...)
	case functionCall:
		b = append(b, `"function_call","call_id":`...)
		b = jsontree.AppendString(b, it.callID)
		b = append(b, `,"name":`...)
		b = jsontree.AppendString(b, it.name)
		b = append(b, `,"arguments":`...)
		b = jsontree.AppendString(b, it.text.String())
	}
	if it.kind != functionCall {
		if it.status != "" { // else its part comes next
			b = it.appendPart(b)
		}
		b = append(b, ']')
	}
	b = append(b, `,"status":`...)
	b = jsontree.AppendString(b, string(status))
	return append(b, '}')
}

// appendPart appends the content of an item.
func (it *item) appendPart(b []byte) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, it.kind.part()...)
	b = append(b, `","text":`...)
	b = jsontree.AppendString(b, it.text.String())
	if it.kind == message {
		b = append(b, `,"annotations":[],"logprobs":`...)
		b = api.AppendJSON(b, it.probs())
	}
	return append(b, '}')
}

// probs are those of a message; without any there is an empty list.
func (it *item) probs() []openai.LogProb {
	if it.logProbs == nil {
		return []openai.LogProb{}
	}
	return it.logProbs
}
