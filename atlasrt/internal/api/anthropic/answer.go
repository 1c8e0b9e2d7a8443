package anthropic

import (
	"fmt"
	"strconv"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// answer writes the answer to a request for messages.
type answer struct {
	head   api.Head
	hide   bool // thoughts are not shown
	begun  bool // a stream has its message_start
	block  block
	blocks []block // of a whole answer, before the one that is open
	end    chat.Event
	usage  chat.Usage
}

// Answer implements api.Dialect.
func (Messages) Answer(r *api.Request, h api.Head) api.Answer {
	return &answer{head: h, hide: r.HideReasoning, block: block{index: -1}}
}

// Begin implements api.Answer. The first event of a stream has the usage, which is not known yet.
func (a *answer) Begin(b []byte) []byte { return b }

// Ping implements api.Answer. No event may come before the first one, so that a comment stands for it.
func (a *answer) Ping(b []byte) []byte {
	if !a.begun {
		return api.AppendComment(b)
	}
	return api.EndEvent(api.AppendEvent(b, "ping"))
}

// Fail implements api.Answer.
func (a *answer) Fail(b []byte, e *api.Error) []byte {
	return api.EndEvent(appendError(api.AppendEvent(b, "error"), e))
}

// Append implements api.Answer: the message without its content comes first, then one block after the other, then why it ended.
func (a *answer) Append(b []byte, of []chat.Event) []byte {
	for i := range of {
		event := &of[i]
		switch event.Kind {
		case chat.EventStart:
			a.begun = true
			b = api.AppendEvent(b, "message_start")
			b = append(b, `,"message":`...)
			b = a.message(b, event.Usage)
			b = api.EndEvent(b)
		case chat.EventText, chat.EventReasoning, chat.EventToolCall:
			if a.begins(event) {
				b = a.closeBlock(b)
				a.block = a.next(event)
				b = a.block.open(b)
			}
			if text := a.take(event); text != "" {
				b = a.block.delta(b, text)
			}
		case chat.EventFinish:
			b = a.closeBlock(b)
			a.end = *event
		case chat.EventEnd:
			b = api.AppendEvent(b, "message_delta")
			b = append(b, `,"delta":{`...)
			b = a.reason(b)
			b = append(b, `},"usage":`...)
			b = appendUsage(b, event.Usage)
			b = api.EndEvent(b)
			b = api.EndEvent(api.AppendEvent(b, "message_stop"))
		default:
			panic(fmt.Sprintf("BUG: an event of kind %d in a message", event.Kind))
		}
	}
	return b
}

// closeBlock appends the end of the block that is open, if one is.
func (a *answer) closeBlock(b []byte) []byte {
	if !a.block.opened {
		return b
	}
	a.block.opened = false
	switch {
	case a.block.kind == chat.EventReasoning:
		b = a.block.piece(b, "signature_delta", "signature", a.block.signature)
	case a.block.kind == chat.EventToolCall && a.block.blank:
		b = a.block.delta(b, "{}")
	}
	return api.EndEvent(a.block.place(b, "content_block_stop"))
}

// begins tells whether an event is the first of a block.
func (a *answer) begins(e *chat.Event) bool {
	if e.Kind != chat.EventToolCall && e.Text == "" {
		return false
	}
	return !a.block.opened || a.block.kind != e.Kind || e.Kind == chat.EventToolCall && a.block.call != e.Call.Index
}

// next is the block that an event begins.
func (a *answer) next(e *chat.Event) block {
	n := block{opened: true, kind: e.Kind, index: a.block.index + 1, call: e.Call.Index, name: e.Call.Name, blank: true}
	switch id := a.head.CallID(e.Choice, e.Call.Index); e.Kind {
	case chat.EventToolCall:
		n.id = "toolu_" + id
	case chat.EventReasoning:
		n.signature = signature(a.head.CallID(e.Choice, n.index))
	}
	return n
}

// take is what an event adds to its block.
func (a *answer) take(e *chat.Event) string {
	text := e.Text
	switch {
	case e.Kind == chat.EventToolCall:
		text = e.Call.Arguments
		a.block.blank = a.block.blank && blank(text)
	case e.Kind == chat.EventReasoning && a.hide:
		text = ""
	}
	return text
}

// Add implements api.Answer.
func (a *answer) Add(of []chat.Event) {
	for i := range of {
		event := &of[i]
		switch event.Kind {
		case chat.EventStart:
		case chat.EventText, chat.EventReasoning, chat.EventToolCall:
			if a.begins(event) {
				a.keep()
				a.block = a.next(event)
			}
			a.block.text = append(a.block.text, a.take(event)...)
		case chat.EventFinish:
			a.keep()
			a.end = *event
		case chat.EventEnd:
			a.usage = event.Usage
		default:
			panic(fmt.Sprintf("BUG: an event of kind %d in a message", event.Kind))
		}
	}
}

// keep ends the block that is open, if one is.
func (a *answer) keep() {
	if a.block.opened {
		a.blocks = append(a.blocks, a.block)
		a.block.opened = false
	}
}

// Body implements api.Answer.
func (a *answer) Body() []byte { return a.message(nil, a.usage) }

// message appends the message as far as it is known.
func (a *answer) message(b []byte, u chat.Usage) []byte {
	b = append(b, `{"id":`...)
	b = jsontree.AppendString(b, "msg_"+a.head.ID)
	b = append(b, `,"type":"message","role":"assistant","model":`...)
	b = jsontree.AppendString(b, a.head.Model)
	b = append(b, `,"content":[`...)
	for i := range a.blocks {
		if i > 0 {
			b = append(b, ',')
		}
		b = a.blocks[i].whole(b)
	}
	b = append(b, `],`...)
	b = a.reason(b)
	b = append(b, `,"usage":`...)
	return append(appendUsage(b, u), '}')
}

// reason appends why the message ended, as the fields of an object.
func (a *answer) reason(b []byte) []byte {
	text := ""
	switch {
	case a.end.Finish == chat.FinishLength:
		text = "max_tokens"
	case a.end.Finish == chat.FinishToolCalls:
		text = "tool_use"
	case a.end.Match != "":
		text = "stop_sequence"
	case a.end.Finish == chat.FinishStop:
		text = "end_turn"
	}
	b = append(b, `"stop_reason":`...)
	b = api.AppendOptional(b, text)
	b = append(b, `,"stop_sequence":`...)
	return api.AppendOptional(b, a.end.Match)
}

// appendUsage appends counts of tokens. Those of a prompt are either new or read from a cache; none is paid for to be kept there.
func appendUsage(b []byte, u chat.Usage) []byte {
	b = append(b, `{"input_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Prompt-u.Cached), 10)
	b = append(b, `,"cache_creation_input_tokens":0,"cache_read_input_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Cached), 10)
	b = append(b, `,"output_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Output), 10)
	b = append(b, `,"output_tokens_details":{"thinking_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Reasoning), 10)
	return append(b, "}}"...)
}
