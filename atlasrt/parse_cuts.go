package main

import (
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
)

// mostCut bounds the text that is read at every cut: the work grows with its square.
const mostCut = 16 << 10

// everyCut reads an answer cut in all ways and counts them; the error is about the first that gave other events.
func everyCut(r *completion.Replay, tokens []int32, want []chat.Event) (cuts int, err error) {
	byToken := r.Pieces(tokens)
	var byCharacter []completion.Piece
	for _, p := range byToken {
		if p.Control {
			byCharacter = append(byCharacter, p)
			continue
		}
		for text := p.Text; text != ""; {
			_, n := utf8.DecodeRuneInString(text)
			byCharacter = append(byCharacter, completion.Piece{Text: text[:n]})
			text = text[n:]
		}
	}
	if len(byCharacter) > mostCut {
		return 0, fmt.Errorf("--every-cut: the text has %d characters (it takes at most %d)", len(byCharacter), mostCut)
	}
	for _, unit := range []struct {
		name   string
		pieces []completion.Piece
	}{{"tokens", byToken}, {"characters", byCharacter}} {
		for n := 1; n <= len(unit.pieces); n++ {
			for _, way := range []struct {
				name string
				end  func(i int) bool // of a piece, behind the unit i
			}{
				{fmt.Sprintf("in pieces of %d %s", n, unit.name), func(i int) bool { return (i+1)%n == 0 }},
				{fmt.Sprintf("in two behind %d %s", n, unit.name), func(i int) bool { return i+1 == n }},
			} {
				if got := r.Cut(join(unit.pieces, way.end)); !reflect.DeepEqual(got, want) {
					return cuts, fmt.Errorf("cut %s there are other events:\ngot\n%swant\n%s", way.name, lines(got), lines(want))
				}
				cuts++
			}
		}
	}
	return cuts, nil
}

// join makes one piece of the texts up to each end. Control tokens stay pieces of their own.
func join(units []completion.Piece, end func(i int) bool) (pieces []completion.Piece) {
	open := false // the last piece may grow
	for i, u := range units {
		if open && !u.Control {
			pieces[len(pieces)-1].Text += u.Text
		} else {
			pieces = append(pieces, u)
		}
		open = !u.Control && !end(i)
	}
	return pieces
}
