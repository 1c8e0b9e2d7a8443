package parse

import (
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/kind"
)

// argument is a value that is written without quotes, on its way to JSON. Text is handed on as it comes, what may be of another
// kind when it is whole.
type argument struct {
	hand  func(string)
	kinds kind.Set
	lines bool // the line end at its end is none of the value

	begun   bool
	lineEnd bool   // came last, and is held back
	text    bool   // the value is text, and its quote was given
	held    []byte // what may be text or not
}

func newArgument(hand func(string), kinds kind.Set, lines bool) *argument {
	a := &argument{hand: hand, kinds: kinds, lines: lines}
	a.decide()
	return a
}

// atLine tells whether a line begins here.
func (a *argument) atLine() bool { return !a.begun || a.lineEnd }

// add takes a piece of the value.
func (a *argument) add(piece string) {
	if piece = shown(piece); piece == "" {
		return
	}
	a.begun = true
	if a.lineEnd {
		a.write("\n")
	}
	if a.lineEnd = a.lines && strings.HasSuffix(piece, "\n"); a.lineEnd {
		piece = piece[:len(piece)-1]
	}
	a.write(piece)
}

func (a *argument) write(piece string) {
	if a.text {
		a.hand(escaped(piece))
		return
	}
	a.held = append(a.held, piece...)
	a.decide()
}

// decide hands over what is held if it can be nothing but text.
func (a *argument) decide() {
	if a.text = isText(a.kinds, a.held); a.text {
		a.hand(`"` + escaped(string(a.held)))
	}
}

// end gives the rest of a whole value.
func (a *argument) end() {
	if a.text {
		a.hand(`"`)
	} else {
		a.hand(coerce(a.kinds, string(a.held)))
	}
}

// cut gives the rest of a value that the answer ends in, as it was written.
func (a *argument) cut() {
	if !a.text {
		a.hand(string(a.held))
	}
}
