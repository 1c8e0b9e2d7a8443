package parse

import (
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
)

// output makes events of what is found. White space between text and a call, and line ends behind thoughts and calls, belong to the
// format and are left out: such space is held back until what follows is known.
type output struct {
	events   []chat.Event // since the last push
	thinking bool
	calls    int  // that have begun
	empty    bool // the last call has no arguments yet
	over     bool // nothing more is taken

	held  []byte // white space that may be left out
	after bool   // thoughts or a call came last, so that line ends are left out
}

const (
	lineEnds = "\r\n"
	blanks   = " \t" + lineEnds
)

// text takes a piece of what the model says. The bytes around control tokens are taken out of it.
func (o *output) text(text string) { o.say(chat.EventText, shown(text)) }

// thought takes a piece of what the model thinks.
func (o *output) thought(text string) { o.say(chat.EventReasoning, shown(text)) }

func (o *output) say(kind chat.EventKind, text string) {
	if o.after {
		text = strings.TrimLeft(text, lineEnds)
		o.after = text == ""
	}
	solid := strings.TrimRight(text, blanks)
	if solid != "" {
		o.add(kind, string(o.held)+solid)
		o.held = o.held[:0]
	}
	o.held = append(o.held, text[len(solid):]...)
}

// part ends a stretch of text or thoughts without the white space at its end. What comes next begins without line ends.
func (o *output) part() { o.held, o.after = o.held[:0], true }

// release gives white space that was held back and counts.
func (o *output) release() {
	if len(o.held) > 0 {
		kind := chat.EventText
		if o.thinking {
			kind = chat.EventReasoning
		}
		o.add(kind, string(o.held))
		o.held = o.held[:0]
	}
}

// call begins a call.
func (o *output) call(name string) {
	o.part()
	o.events = append(o.events, chat.Event{Kind: chat.EventToolCall, Call: chat.ToolCallDelta{Index: o.calls, Name: name}})
	o.calls++
	o.empty = true
}

// arguments takes a piece of the arguments of the call that began last.
func (o *output) arguments(text string) {
	if text = shown(text); text == "" {
		return
	}
	o.empty = false
	if last := len(o.events) - 1; last >= 0 && o.events[last].Kind == chat.EventToolCall {
		o.events[last].Call.Arguments += text
		return
	}
	o.events = append(o.events, chat.Event{Kind: chat.EventToolCall, Call: chat.ToolCallDelta{Index: o.calls - 1, Arguments: text}})
}

func (o *output) add(kind chat.EventKind, text string) {
	if last := len(o.events) - 1; last >= 0 && o.events[last].Kind == kind {
		o.events[last].Text += text
		return
	}
	o.events = append(o.events, chat.Event{Kind: kind, Text: text})
}
