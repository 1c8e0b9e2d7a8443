package match

import (
	"unicode/utf8"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
)

// kinds is a set of kinds of characters. Tokens are grouped by the kinds of their characters: where all characters of some kinds may come, one
// behind the other, all tokens of these kinds may come.
type kinds uint16

// Kinds of characters. Patterns mostly take all of a kind or none.
const (
	lower kinds = 1 << iota
	upper
	digit
	underscore
	hyphen
	dot
	slash
	blank
	mark     // the other visible characters of ASCII
	quotes   // " and \\, which JSON strings do not have as they are
	control  // of ASCII
	foreign  // all behind ASCII
	numKinds = iota

	anyText  kinds = 1<<numKinds - 1
	jsonText       = anyText &^ (quotes | control)
	noText   kinds = 1 << 15 // bytes that are no characters, and control tokens
)

// tailKinds are those that tokens are ordered for by what is behind characters of them.
var tailKinds = [...]kinds{anyText, jsonText}

// kindOf is the kind of a character that begins with a byte.
func kindOf(b byte) kinds {
	switch {
	case b >= 0x80:
		return foreign
	case b < ' ' || b == 0x7F:
		return control
	case b >= 'a' && b <= 'z':
		return lower
	case b >= 'A' && b <= 'Z':
		return upper
	case b >= '0' && b <= '9':
		return digit
	}
	switch b {
	case '_':
		return underscore
	case '-':
		return hyphen
	case '.':
		return dot
	case '/':
		return slash
	case ' ':
		return blank
	case '"', '\\':
		return quotes
	}
	return mark
}

// kindsOf are the kinds of the characters of a text, which may end within one.
func kindsOf(text []byte) kinds {
	if !isText(text) {
		return noText
	}
	var all kinds
	for _, b := range text {
		all |= kindOf(b)
	}
	return all
}

// prefix is how many bytes of a text are whole characters of some kinds, from the first on.
func (k kinds) prefix(text []byte) int {
	whole, at := 0, atStart
	for i, b := range text {
		if kindOf(b)&k == 0 {
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

// character is one character of some kinds.
func (k kinds) character(s *regex.Set) regex.Ref {
	var ranges []rune
	for c := range rune(0x80) {
		if kindOf(byte(c))&k != 0 {
			ranges = append(ranges, c, c)
		}
	}
	if k&foreign != 0 {
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
