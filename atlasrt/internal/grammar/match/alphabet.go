package match

import (
	"unicode/utf8"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
)

// An alphabet is a set of characters. Each holds the next one, so that a state after which all texts of one may come also has those of the
// next: masks of these states are mostly computed once for a vocabulary.
type alphabet struct {
	ascii [128]bool
	more  bool // all characters behind ASCII
}

// Alphabets by number. The first is for tokens that are no text: its letters are never looked at.
const (
	bytesAlphabet   = iota
	textAlphabet    // any character
	stringAlphabet  // what a JSON string may have as it is
	printAlphabet   // those in ASCII
	visibleAlphabet // those without the blank
	nameAlphabet    // [A-Za-z0-9_.-]
	wordAlphabet    // [A-Za-z0-9_]
	alnumAlphabet   // [A-Za-z0-9]
	lowerAlphabet   // [a-z0-9]
	letterAlphabet  // [a-z]
	numAlphabets
)

// tailAlphabets are those that tokens are ordered for by what is behind their characters.
var tailAlphabets = [...]int{textAlphabet, stringAlphabet, visibleAlphabet, wordAlphabet}

var alphabets = makeAlphabets()

func makeAlphabets() (all [numAlphabets]alphabet) {
	for b := range 128 {
		letter := b >= 'a' && b <= 'z'
		lower := letter || b >= '0' && b <= '9'
		alnum := lower || b >= 'A' && b <= 'Z'
		word := alnum || b == '_'
		name := word || b == '.' || b == '-'
		visible := b > ' ' && b < 0x7F && b != '"' && b != '\\'
		print := visible || b == ' '
		for at, in := range [numAlphabets]bool{true, true, print || b == 0x7F, print, visible, name, word, alnum, lower, letter} {
			all[at].ascii[b] = in
		}
	}
	for at := range stringAlphabet + 1 {
		all[at].more = true
	}
	return all
}

// alphabetOf is the last alphabet that has every character of a text. The text may end within a character.
func alphabetOf(text []byte) int {
	if !isText(text) {
		return bytesAlphabet
	}
	for at := numAlphabets - 1; at > textAlphabet; at-- {
		if alphabets[at].has(text) {
			return at
		}
	}
	return textAlphabet
}

func (a *alphabet) has(text []byte) bool {
	for _, b := range text {
		if b < 0x80 && !a.ascii[b] || b >= 0x80 && !a.more {
			return false
		}
	}
	return true
}

// prefix is how many bytes of a text are whole characters of the alphabet, from the first on.
func (a *alphabet) prefix(text []byte) int {
	whole, at := 0, atStart
	for i, b := range text {
		if b < 0x80 && !a.ascii[b] || b >= 0x80 && !a.more {
			break
		}
		if at = shape(at, b); at == noShape {
			break
		}
		if at == atStart {
			whole = i + 1
		}
	}
	return whole
}

// character is one character of an alphabet.
func (a *alphabet) character(s *regex.Set) regex.Ref {
	var ranges []rune
	for b, in := range a.ascii {
		if in {
			ranges = append(ranges, rune(b), rune(b))
		}
	}
	if a.more {
		ranges = append(ranges, 0x80, utf8.MaxRune)
	}
	return s.Runes(ranges...)
}

// The bytes of a character in UTF-8, as an automaton: a shape is what may follow.
const (
	atStart   = iota // a character begins
	oneMore          // one more byte
	twoMore          // two
	threeMore        // three
	afterE0          // two, of which the first is not too low
	afterED          // two, and no surrogate
	afterF0          // three, of which the first is not too low
	afterF4          // three, of which the first is not too high
	numShapes
	noShape = numShapes
)

// shape is what follows a byte of a character, and noShape where it may not come.
func shape(from int, b byte) int {
	lo, hi, to := byte(0x80), byte(0xBF), from-1
	switch from {
	case atStart:
		switch {
		case b < 0x80:
			return atStart
		case b >= 0xC2 && b <= 0xDF:
			return oneMore
		case b == 0xE0:
			return afterE0
		case b == 0xED:
			return afterED
		case b >= 0xE1 && b <= 0xEF:
			return twoMore
		case b == 0xF0:
			return afterF0
		case b >= 0xF1 && b <= 0xF3:
			return threeMore
		case b == 0xF4:
			return afterF4
		}
		return noShape
	case afterE0:
		lo, to = 0xA0, oneMore
	case afterED:
		hi, to = 0x9F, oneMore
	case afterF0:
		lo, to = 0x90, twoMore
	case afterF4:
		hi, to = 0x8F, twoMore
	}
	if b < lo || b > hi {
		return noShape
	}
	return to
}

// isText reports whether bytes are UTF-8, but for an end within a character.
func isText(text []byte) bool {
	at := atStart
	for _, b := range text {
		if at = shape(at, b); at == noShape {
			return false
		}
	}
	return true
}
