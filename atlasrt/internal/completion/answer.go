package completion

import (
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
)

// answer is one choice on its way: the stages that its tokens go through.
type answer struct {
	detokenizer *tokenizer.Detokenizer
	matcher     matcher
	parser      *parse.Parser    // nil: all is text
	controls    map[int32]string // control tokens that the parser gets
	events      []chat.Event     // of the last token

	started bool // a token came
	echoed  bool // of the first choice of a prompt: its EventPrompt was given
	over    bool
}

// answer makes the stages of an answer to a prompt.
func (g *Generator) answer(p *Prompt, o *Options) answer {
	a := answer{detokenizer: g.Tokenizer.NewDetokenizer(!o.KeepSpecial), matcher: matcher{stops: o.Stop}}
	c := parse.Config{
		Reasoning: g.Formats.Reasoning, Thinking: p.Thinking, Declared: o.Tools, OneCall: o.OneCall,
		Control: func(text string) bool { id, ok := g.Tokenizer.ID(text); return ok && g.Tokenizer.IsSpecial(id) },
	}
	if len(o.Tools) > 0 {
		c.Tools = g.Formats.Tools
	}
	if !o.Chat || c.Reasoning == nil && c.Tools == nil {
		return a
	}
	a.parser, a.controls = parse.New(c), map[int32]string{}
	for _, text := range c.Controls() {
		id, _ := g.Tokenizer.ID(text)
		a.controls[id] = text
	}
	return a
}

// read takes a token and gives the events that it made, and why the answer ended if it did.
func (a *answer) read(e engine.Event, ends []int32) (events []chat.Event, finish chat.Finish) {
	a.events = a.events[:0]
	if control, ok := a.controls[e.Token]; ok {
		a.control(control)
	} else if e.Finish != engine.FinishStop || !slices.Contains(ends, e.Token) {
		a.text(a.matcher.push(a.detokenizer.Push(e.Token)))
	}
	switch {
	case a.matcher.found != "":
		finish = chat.FinishStop
	case a.parser != nil && a.parser.Over():
		return a.events, chat.FinishToolCalls
	case e.Finish != "":
		a.flush()
		finish = chat.FinishLength
		if e.Finish == engine.FinishStop || a.matcher.found != "" {
			finish = chat.FinishStop
		}
	}
	if finish != "" && a.parser != nil {
		a.add(a.parser.End())
		if finish == chat.FinishStop && a.matcher.found == "" && a.parser.Calls() > 0 {
			finish = chat.FinishToolCalls
		}
	}
	return a.events, finish
}

// control takes a control token that means something to the parser. No stop string and no code point goes over it.
func (a *answer) control(text string) {
	a.flush()
	if a.matcher.found == "" {
		a.add(a.parser.Control(text))
	}
}

// flush hands on what was held back and can no longer become something else.
func (a *answer) flush() {
	a.text(a.matcher.push(a.detokenizer.Flush()))
	if a.matcher.found == "" {
		a.text(a.matcher.flush())
	}
}

// text takes text that may be shown.
func (a *answer) text(text string) {
	switch {
	case text == "":
	case a.parser != nil:
		a.add(a.parser.Push(text))
	default:
		a.add([]chat.Event{{Kind: chat.EventText, Text: text}})
	}
}

// add keeps events. Those that go on with the one before become a part of it.
func (a *answer) add(events []chat.Event) {
	for _, e := range events {
		if n := len(a.events); n > 0 && a.events[n-1].Kind == e.Kind && (e.Kind != chat.EventToolCall || e.Call.Name == "") {
			last := &a.events[n-1]
			last.Text += e.Text
			last.Call.Arguments += e.Call.Arguments
			continue
		}
		a.events = append(a.events, e)
	}
}

// thinking tells whether the next token belongs to thoughts.
func (a *answer) thinking() bool { return a.parser != nil && a.parser.Thinking() }

// close gives back what the stages hold.
func (a *answer) close() {
	if a.parser != nil {
		a.parser.Close()
	}
}
