package responses

import (
	"fmt"
	"strconv"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// appendEvent begins an event of a stream. Its fields and api.EndEvent follow.
func (a *Answer) appendEvent(b []byte, kind string) []byte {
	b = api.AppendEvent(b, kind)
	b = append(b, `,"sequence_number":`...)
	b = strconv.AppendInt(b, int64(a.sequence), 10)
	a.sequence++
	return b
}

// whole appends an event that shows the answer as it is.
func (a *Answer) whole(b []byte, kind string) []byte {
	b = a.appendEvent(b, kind)
	b = append(b, `,"response":`...)
	b = a.appendBody(b, a.status)
	return api.EndEvent(b)
}

// about begins an event of the last item.
func (a *Answer) about(b []byte, kind string) []byte {
	last := len(a.items) - 1
	b = a.appendEvent(b, kind)
	b = append(b, `,"item_id":`...)
	b = jsontree.AppendString(b, a.items[last].id)
	b = append(b, `,"output_index":`...)
	b = strconv.AppendInt(b, int64(last), 10)
	switch a.items[last].kind {
	case message, reasoning:
		b = append(b, `,"content_index":0`...)
	case summary:
		b = append(b, `,"summary_index":0`...)
	}
	return b
}

// item appends an event that shows the last item.
func (a *Answer) item(b []byte, kind string, status Status) []byte {
	last := len(a.items) - 1
	b = a.appendEvent(b, kind)
	b = append(b, `,"output_index":`...)
	b = strconv.AppendInt(b, int64(last), 10)
	b = append(b, `,"item":`...)
	b = a.items[last].append(b, status)
	return api.EndEvent(b)
}

// part appends an event that shows the content of the last item, which has one part.
func (a *Answer) part(b []byte, kind string) []byte {
	b = a.about(b, kind)
	b = append(b, `,"part":`...)
	b = a.items[len(a.items)-1].appendPart(b)
	return api.EndEvent(b)
}

// begin opens an item.
func (a *Answer) begin(b []byte, it *item) []byte {
	it.id = fmt.Sprintf("%s%so%04x", it.kind.prefix(), a.head.ID, len(a.items))
	a.items, a.open = append(a.items, it), true
	b = a.item(b, "response.output_item.added", StatusInProgress)
	if it.kind != functionCall {
		b = a.part(b, it.kind.partEvent()+".added")
	}
	return b
}

// delta goes on with the last item.
func (a *Answer) delta(b []byte, text string, tokens []chat.Token) []byte {
	it := a.items[len(a.items)-1]
	it.text.WriteString(text)
	b = a.about(b, it.kind.event()+".delta")
	b = append(b, `,"delta":`...)
	b = jsontree.AppendString(b, text)
	if it.kind == message {
		probs := openai.LogProbs(tokens)
		it.logProbs = append(it.logProbs, probs...)
		b = append(b, `,"logprobs":`...)
		b = api.AppendJSON(b, probs)
	}
	return api.EndEvent(b)
}

// close ends the last item, where it goes on.
func (a *Answer) close(b []byte, status Status) []byte {
	if !a.open {
		return b
	}
	it := a.items[len(a.items)-1]
	it.status, a.open = status, false
	b = a.about(b, it.kind.event()+".done")
	if it.kind == functionCall {
		b = append(b, `,"name":`...)
		b = jsontree.AppendString(b, it.name)
		b = append(b, `,"arguments":`...)
	} else {
		b = append(b, `,"text":`...)
	}
	b = jsontree.AppendString(b, it.text.String())
	if it.kind == message {
		b = append(b, `,"logprobs":`...)
		b = api.AppendJSON(b, it.probs())
	}
	b = api.EndEvent(b)
	if it.kind != functionCall {
		b = a.part(b, it.kind.partEvent()+".done")
	}
	return a.item(b, "response.output_item.done", status)
}

// event is how the events of an item's text begin.
func (k kind) event() string {
	switch k {
	case message:
		return "response.output_text"
	case reasoning:
		return "response.reasoning_text"
	case summary:
		return "response.reasoning_summary_text"
	}
	return "response.function_call_arguments"
}

// partEvent is how the events of the part that holds an item's text begin.
func (k kind) partEvent() string {
	if k == summary {
		return "response.reasoning_summary_part"
	}
	return "response.content_part"
}

// part is the type of that part.
func (k kind) part() string {
	switch k {
	case reasoning:
		return "reasoning_text"
	case summary:
		return "summary_text"
	}
	return "output_text"
}

// prefix is how ids of items begin.
func (k kind) prefix() string {
	switch k {
	case message:
		return prefixes["message"]
	case reasoning, summary:
		return prefixes["reasoning"]
	}
	return prefixes["function_call"]
}
