package sample

import "slices"

func ban(c *cause)   { c.bans++ }
func allow(c *cause) { c.bans-- }

// LetGo lets the tokens that were held back be sampled.
func (e *Edits) LetGo() {
	if e == nil {
		return
	}
	for _, token := range e.held {
		e.change(token, allow)
	}
	e.held = nil
}

// banWords rules out the words of one token.
func (e *Edits) banWords() {
	for _, word := range e.params.BadWords {
		if len(word) == 1 {
			e.change(word[0], ban)
		}
	}
}

// endWords rules out the last tokens of words whose others were generated just now, and no longer those of the token before.
func (e *Edits) endWords() {
	before := e.ended
	e.ended = nil
	if !e.looks {
		return
	}
	generated := e.context[e.prompt:]
	for _, word := range e.params.BadWords {
		last := len(word) - 1
		if last > 0 && len(generated) >= last && slices.Equal(generated[len(generated)-last:], word[:last]) {
			e.ended = append(e.ended, word[last])
			e.change(word[last], ban)
		}
	}
	for _, token := range before {
		e.change(token, allow)
	}
}
