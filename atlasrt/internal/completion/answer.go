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

	started bool          // a token came
	drafts  engine.Drafts // so far
	echoed  bool          // of the first choice of a prompt: its EventPrompt was given
	over    bool
}

// answer makes the stages of an answer to a prompt.
func (g *Generator) answer(p *Prompt, o *Options) answer { return g.stages(o, g.reading(p, o)) }

// reading is how an answer to a prompt is read.
func (g *Generator) reading(p *Prompt, o *Options) parse.Config {
	c := parse.Config{
		Reasoning: g.Formats.Reasoning, Thinking: p.Thinking, Declared: o.Tools, OneCall: o.OneCall,
		Control: func(text string) bool { id, ok := g.Tokenizer.ID(text); return ok && g.Tokenizer.IsSpecial(id) },
	}
	if len(o.Tools) > 0 {
		c.Tools = g.Formats.Tools
	}
	return c
}

// stages are those of an answer that is read as c says.
func (g *Generator) stages(o *Options, c parse.Config) answer {
	a := answer{detokenizer: g.Tokenizer.NewDetokenizer(!o.KeepSpecial), matcher: matcher{stops: o.Stop}}
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
	finish = a.finish(e.Finish)
	return a.events, finish
}

// finish is why the answer ended, if it did, where the engine says why it did. Events that become certain then are added.
func (a *answer) finish(engines engine.Finish) (finish chat.Finish) {
	switch {
	case a.matcher.found != "":
		finish = chat.FinishStop
	case a.parser != nil && a.parser.Over():
		return chat.FinishToolCalls
	case engines != "":
		a.flush()
		finish = chat.FinishLength
		if engines == engine.FinishStop || a.matcher.found != "" {
			finish = chat.FinishStop
		}
	}
	if finish != "" && a.parser != nil {
		a.add(a.parser.End(engines == engine.FinishStop && a.matcher.found == ""))
		if finish == chat.FinishStop && a.matcher.found == "" && a.parser.Calls() > 0 {
			finish = chat.FinishToolCalls
		}
	}
	return finish
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
