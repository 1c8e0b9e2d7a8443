package parse

import (
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
)

// output makes events of what is found. White space next to a call, and line ends behind thoughts, belong to the format and are
// left out: such space is held back until what follows is known.
type output struct {
	events   []chat.Event // since the last push; the last one lacks its tail
	tail     []byte       // text of the last event
	thinking bool
	calls    int  // that have begun
	empty    bool // a call came last, and has no arguments yet
	over     bool // nothing more is taken

	held  []byte // white space that may be left out
	after string // white space that is left out, as thoughts or a call came last
}

const (
	lineEnds = "\r\n"
	blanks   = " \t" + lineEnds
)

// take gives the events since the last take. They are valid until the next one.
func (o *output) take() []chat.Event {
	o.settle()
	events := o.events
	o.events = o.events[:0]
	return events
}

// text takes a piece of what the model says. The bytes around control tokens are taken out of it.
func (o *output) text(text string) { o.say(chat.EventText, shown(text)) }

// thought takes a piece of what the model thinks.
func (o *output) thought(text string) { o.say(chat.EventReasoning, shown(text)) }

func (o *output) say(kind chat.EventKind, text string) {
	if o.after != "" {
		text = strings.TrimLeft(text, o.after)
		if text == "" {
			return
		}
		o.after = ""
	}
	solid := strings.TrimRight(text, blanks)
	if solid != "" {
		o.add(kind, string(o.held))
		o.add(kind, solid)
		o.held = o.held[:0]
	}
	o.held = append(o.held, text[len(solid):]...)
}

// part ends a stretch of text or thoughts without the white space at its end. What comes next begins without some, too.
func (o *output) part(after string) { o.held, o.after = o.held[:0], after }

// release gives white space that was held back and counts.
func (o *output) release() {
	kind := chat.EventText
	if o.thinking {
		kind = chat.EventReasoning
	}
	o.add(kind, string(o.held))
	o.held = o.held[:0]
}

// call begins a call.
func (o *output) call(name string) {
	if o.over {
		return
	}
	o.part(blanks)
	o.begin(chat.Event{Kind: chat.EventToolCall, Call: chat.ToolCallDelta{Index: o.calls, Name: name}})
	o.calls++
	o.empty = true
}

// arguments takes a piece of the arguments of the call that began last.
func (o *output) arguments(text string) {
	if text = shown(text); text != "" {
		o.empty = false
		o.add(chat.EventToolCall, text)
	}
}

// add adds to the last event, or begins another one.
func (o *output) add(kind chat.EventKind, text string) {
	if o.over || text == "" {
		return
	}
	if last := len(o.events) - 1; last < 0 || o.events[last].Kind != kind {
		e := chat.Event{Kind: kind}
		if kind == chat.EventToolCall {
			e.Call.Index = o.calls - 1
		} else {
			o.empty = false // what follows is not the call's
		}
		o.begin(e)
	}
	o.tail = append(o.tail, text...)
}

func (o *output) begin(e chat.Event) {
	o.settle()
	o.events = append(o.events, e)
}

// settle gives the last event its text.
func (o *output) settle() {
	if len(o.tail) == 0 {
		return
	}
	last := &o.events[len(o.events)-1]
	if last.Kind == chat.EventToolCall {
		last.Call.Arguments = string(o.tail)
	} else {
		last.Text = string(o.tail)
	}
	o.tail = o.tail[:0]
}

// shown is a text without the bytes around control tokens.
func shown(text string) string {
	if strings.Contains(text, controlBegin) || strings.Contains(text, controlEnd) {
		text = strings.ReplaceAll(strings.ReplaceAll(text, controlBegin, ""), controlEnd, "")
	}
	return text
}
