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
	quotes   // " and \, which JSON strings do not have as they are
	control  // of ASCII
	foreign  // all behind ASCII but those that are odd
	odd      // white space behind ASCII
	numKinds = iota

	anyText  kinds = 1<<numKinds - 1
	jsonText       = anyText &^ (quotes | control)
	noText   kinds = 1 << 15 // bytes that are no characters, and control tokens
)

// tailKinds are those that tokens are ordered for by what is behind characters of them.
var tailKinds = [...]kinds{anyText, jsonText}

// oddRunes are the odd characters, as pairs of a first and a last.
var oddRunes = []rune{0x85, 0x85, 0xA0, 0xA0, 0x1680, 0x1680, 0x2000, 0x200A, 0x2028, 0x2029, 0x202F, 0x202F, 0x205F, 0x205F, 0x3000, 0x3000, 0xFEFF, 0xFEFF}

// kindOf is the kind of a character.
func kindOf(r rune) kinds {
	if r >= utf8.RuneSelf {
		for i := 0; i < len(oddRunes); i += 2 {
			if r >= oddRunes[i] && r <= oddRunes[i+1] {
				return odd
			}
		}
		return foreign
	}
	return asciiKind(byte(r))
}

// asciiKind is the kind of a character of ASCII.
func asciiKind(b byte) kinds {
	switch {
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
	for _, r := range string(text) {
		if r == utf8.RuneError {
			r = 0xFF // the text ends within a character, which may become one that is not odd
		}
		all |= kindOf(r)
	}
	return all
}

// prefix is how many bytes of a text are whole characters of some kinds, from the first on.
func (k kinds) prefix(text []byte) int {
	at := 0
	for at < len(text) {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size < 3 || kindOf(r)&k == 0 {
			break
		}
		at += size
	}
	return at
}

// character is one character of some kinds.
func (k kinds) character(s *regex.Set) regex.Ref {
	var ranges []rune
	for c := range rune(utf8.RuneSelf) {
		if kindOf(c)&k != 0 {
			ranges = append(ranges, c, c)
		}
	}
	if k&odd != 0 {
		ranges = append(ranges, oddRunes...)
	}
	if k&foreign != 0 {
		next := rune(utf8.RuneSelf)
		for i := 0; i < len(oddRunes); i += 2 {
			ranges = append(ranges, next, oddRunes[i]-1)
			next = oddRunes[i+1] + 1
		}
		ranges = append(ranges, next, utf8.MaxRune)
	}
	return s.Runes(ranges...)
}

// begins reports whether a byte may begin a character of some kinds. Kinds behind ASCII are not told apart.
func (k kinds) begins(b byte) bool { return k&firstKinds[b] != 0 }

// firstKinds are the kinds of the characters that begin with a byte.
var firstKinds = func() (all [256]kinds) {
	for b := range all {
		switch {
		case b < utf8.RuneSelf:
			all[b] = asciiKind(byte(b))
		case shapes[atStart][b] != noShape:
			all[b] = foreign | odd
		}
	}
	return all
}()

// known reports whether the kinds can be told by bytes: both kinds behind ASCII, or none.
func (k kinds) known() bool { return k&(foreign|odd) == 0 || k&(foreign|odd) == foreign|odd }

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
func shape(from int, b byte) int { return int(shapes[from][b]) }

// shapes are what follow the bytes, by shape.
var shapes = func() (all [numShapes][256]uint8) {
	for from := range all {
		for b := range all[from] {
			all[from][b] = uint8(makeShape(from, byte(b)))
		}
	}
	return all
}()

func makeShape(from int, b byte) int {
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
