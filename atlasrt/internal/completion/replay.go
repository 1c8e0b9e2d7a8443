package completion

import (
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
)

// Replay reads an answer that is there through the stages of a Generator that has no engine.
type Replay struct {
	Generator *Generator // its Tokenizer, End and Formats count
	Prompt    Prompt     // that the answer goes on from
	Options   Options    // without tools any tool may be called
}

// Piece is what the stages behind the detokenizer get of an answer.
type Piece struct {
	Text    string // valid UTF-8
	Control bool   // it is a control token that has a meaning
}

// start makes the stages.
func (r *Replay) start() answer {
	c := r.Generator.reading(&r.Prompt, &r.Options)
	c.Tools, c.AnyTool = r.Generator.Formats.Tools, len(r.Options.Tools) == 0
	return r.Generator.stages(&r.Options, c)
}

// Tokens reads tokens one by one, up to the one that ends the answer or to the last, behind which the model ended it. It gives the events,
// those in one that go on with one another, and how many tokens were read.
func (r *Replay) Tokens(tokens []int32) (events []chat.Event, read int) {
	a := r.start()
	defer a.close()
	var all answer // for what it makes of events
	finish := chat.Finish("")
	for read < len(tokens) && finish == "" {
		e := engine.Event{Token: tokens[read]}
		if read++; read == len(tokens) || slices.Contains(r.Generator.End, e.Token) {
			e.Finish = engine.FinishStop
		}
		var made []chat.Event
		made, finish = a.read(e, r.Generator.End)
		all.add(made)
	}
	if finish == "" { // there are no tokens
		finish = a.finish(engine.FinishStop)
	}
	return append(all.events, chat.Event{Kind: chat.EventFinish, Finish: finish, Match: a.matcher.found}), read
}

// Pieces are what tokens become, a piece for each that becomes something.
func (r *Replay) Pieces(tokens []int32) (pieces []Piece) {
	a := r.start()
	defer a.close()
	add := func(text string, control bool) {
		if text != "" {
			pieces = append(pieces, Piece{text, control})
		}
	}
	for _, token := range tokens {
		if control, ok := a.controls[token]; ok {
			add(a.detokenizer.Flush(), false)
			add(control, true)
		} else if !slices.Contains(r.Generator.End, token) {
			add(a.detokenizer.Push(token), false)
		}
		if slices.Contains(r.Generator.End, token) {
			break
		}
	}
	add(a.detokenizer.Flush(), false)
	return pieces
}

// Cut reads pieces as Tokens reads what they were made of: the events must be the same, however a text is cut.
func (r *Replay) Cut(pieces []Piece) []chat.Event {
	a := r.start()
	defer a.close()
	finish := chat.Finish("")
	for _, p := range pieces {
		if p.Control {
			a.control(p.Text)
		} else {
			a.text(a.matcher.push(p.Text))
		}
		if finish = a.finish(""); finish != "" {
			break
		}
	}
	if finish == "" {
		finish = a.finish(engine.FinishStop)
	}
	return append(a.events, chat.Event{Kind: chat.EventFinish, Finish: finish, Match: a.matcher.found})
}
