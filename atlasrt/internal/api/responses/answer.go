package responses

import (
	"fmt"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/store"
)

// Status is how far an answer is.
type Status string

// What an answer may be.
const (
	StatusQueued     Status = "queued"      // it waits
	StatusInProgress Status = "in_progress" // it is being made
	StatusCompleted  Status = "completed"
	StatusIncomplete Status = "incomplete" // it has no more tokens
	StatusFailed     Status = "failed"
	StatusCancelled  Status = "cancelled"
)

// Answer writes the answer to one request. It is an api.Answer whose state can be looked at.
type Answer struct {
	head     api.Head
	echo     []byte
	thoughts kind // reasoning, or summary
	status   Status
	problem  *api.Error // of one that failed
	usage    *chat.Usage
	items    []*item
	open     bool         // the last item goes on
	pending  []chat.Token // that came before the text that they belong to
	finish   chat.Finish
	sequence int    // number of the next event
	scratch  []byte // events that nobody reads
}

// kind is what an item is.
type kind uint8

const (
	message kind = iota
	reasoning
	summary // thoughts where a summary of them is looked for
	functionCall
)

// item is one item of the output.
type item struct {
	kind     kind
	id       string
	status   Status
	text     strings.Builder  // or the thoughts, or the arguments
	logProbs []openai.LogProb // of a message; nil: none were asked for
	callID   string
	name     string // of the function
	index    int    // of the call
}

// NewAnswer begins the answer to a request.
func NewAnswer(r *api.Request, h api.Head) *Answer {
	a := &Answer{head: h, echo: r.Echo, thoughts: reasoning, status: StatusInProgress}
	if r.SumUp {
		a.thoughts = summary
	}
	return a
}

// ID is what the answer is called.
func (a *Answer) ID() string { return "resp_" + a.head.ID }

// Begin implements api.Answer.
func (a *Answer) Begin(b []byte) []byte {
	for _, kind := range []string{"response.created", "response.in_progress"} {
		b = a.whole(b, kind)
	}
	return b
}

// Ping implements api.Answer.
func (a *Answer) Ping(b []byte) []byte { return api.AppendComment(b) }

// Fail implements api.Answer: the item that goes on stays as it is.
func (a *Answer) Fail(b []byte, e *api.Error) []byte {
	a.stop(StatusFailed)
	a.problem = e
	return a.whole(b, "response.failed")
}

// Cancel ends an answer that nobody waits for any more.
func (a *Answer) Cancel() { a.stop(StatusCancelled) }

// stop ends the answer where it is.
func (a *Answer) stop(as Status) {
	if a.status = as; a.open {
		a.items[len(a.items)-1].status, a.open = StatusIncomplete, false
	}
}

// Done tells whether the answer came to an end, whichever.
func (a *Answer) Done() bool { return a.status != StatusInProgress }

// Add implements api.Answer.
func (a *Answer) Add(of []chat.Event) { a.scratch = a.Append(a.scratch[:0], of) }

// Body implements api.Answer.
func (a *Answer) Body() []byte { return a.Shown(a.status) }

// Append implements api.Answer.
func (a *Answer) Append(b []byte, of []chat.Event) []byte {
	for i := range of {
		e := &of[i]
		switch e.Kind {
		case chat.EventStart:
		case chat.EventText:
			b = a.write(b, e)
		case chat.EventReasoning:
			b = a.turn(b, a.thoughts)
			b = a.delta(b, e.Text, nil)
		case chat.EventToolCall:
			b = a.call(b, &e.Call)
		case chat.EventFinish:
			b = a.end(b, e.Finish)
		case chat.EventEnd:
			b = a.complete(b, e.Usage)
		default:
			panic(fmt.Sprintf("BUG: an event of kind %d in a response", e.Kind))
		}
	}
	return b
}

// write goes on with a text. What has log-probabilities and shows nothing begins none: they wait for the text that it is part of.
func (a *Answer) write(b []byte, e *chat.Event) []byte {
	last := len(a.items) - 1
	if e.Text == "" && !(a.open && a.items[last].kind == message) {
		a.pending = append(a.pending, e.Tokens...)
		return b
	}
	tokens := append(a.pending, e.Tokens...)
	b = a.turn(b, message)
	return a.delta(b, e.Text, tokens)
}

// turn makes an item of a kind the one that goes on.
func (a *Answer) turn(b []byte, to kind) []byte {
	a.pending = nil // of a text they would have been written by now
	if a.open && a.items[len(a.items)-1].kind == to {
		return b
	}
	return a.begin(a.close(b, StatusCompleted), &item{kind: to})
}

// call goes on with a call.
func (a *Answer) call(b []byte, c *chat.ToolCallDelta) []byte {
	a.pending = nil
	if last := len(a.items) - 1; !a.open || a.items[last].kind != functionCall || a.items[last].index != c.Index {
		b = a.begin(a.close(b, StatusCompleted), &item{kind: functionCall, name: c.Name, index: c.Index, callID: "call_" + a.head.CallID(0, c.Index)})
	}
	if c.Arguments == "" {
		return b
	}
	return a.delta(b, c.Arguments, nil)
}

// end ends the only choice. An answer without a text or a call has an empty text, unless its tokens went on thoughts.
func (a *Answer) end(b []byte, f chat.Finish) []byte {
	status := StatusCompleted
	if f == chat.FinishLength {
		status = StatusIncomplete
	}
	if n := len(a.items); n == 0 || status == StatusCompleted && a.items[n-1].kind == a.thoughts {
		pending := a.pending
		if b = a.turn(b, message); pending != nil {
			b = a.delta(b, "", pending)
		}
	}
	a.finish = f
	return a.close(b, status)
}

// complete ends the answer.
func (a *Answer) complete(b []byte, usage chat.Usage) []byte {
	a.usage, a.status = &usage, StatusCompleted
	if a.finish == chat.FinishLength {
		a.status = StatusIncomplete
	}
	return a.whole(b, "response."+string(a.status))
}

// Output is the items of the output, to be kept. A call that is not whole is none to go on from.
func (a *Answer) Output() []store.Item {
	var items []store.Item
	for _, it := range a.items {
		if it.kind != functionCall || it.status == StatusCompleted {
			items = append(items, store.Item{ID: it.id, JSON: it.append(nil, it.status)})
		}
	}
	return items
}
