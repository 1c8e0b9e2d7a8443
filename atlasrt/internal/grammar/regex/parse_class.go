package regex

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxRanges bounds what the classes of one pattern may take.
const maxRanges = 1 << 20

var (
	digits = []rune{'0', '9'}
	word   = []rune{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'}
	blanks = []rune{'\t', '\r', ' ', ' ', 0xA0, 0xA0, 0x1680, 0x1680, 0x2000, 0x200A, 0x2028, 0x2029, 0x202F, 0x202F, 0x205F, 0x205F, 0x3000, 0x3000, 0xFEFF, 0xFEFF}
)

// charge counts ranges gone through.
func (p *parser) charge(n int) {
	if p.work += n; p.work > maxRanges {
		p.fail(p.at, "the classes of characters are too many or too large")
	}
}

// fold adds the other cases of letters where case does not matter.
func (p *parser) fold(class []rune) []rune {
	if !p.modes.ignoreCase || p.err != nil {
		return class
	}
	folded := slices.Clone(class)
	if len(class) == 2 && class[0] == class[1] {
		for c := unicode.SimpleFold(class[0]); c != class[0]; c = unicode.SimpleFold(c) {
			folded = append(folded, c, c)
		}
		return normalize(folded)
	}
	letters := cased()
	p.charge(len(letters))
	for _, c := range letters {
		if contains(class, c) {
			for d := unicode.SimpleFold(c); d != c; d = unicode.SimpleFold(d) {
				folded = append(folded, d, d)
			}
		}
	}
	return normalize(folded)
}

// contains reports whether a normalized class has a character.
func contains(class []rune, c rune) bool {
	at, exact := slices.BinarySearch(class, c)
	return exact || at%2 == 1
}

// escape reads what is behind a backslash outside of classes.
func (p *parser) escape(at int) *tree {
	boundary := &tree{op: opBoundary, at: at, asserts: true, context: true}
	switch {
	case p.skip("b"):
		return boundary
	case p.skip("B"):
		boundary.not = true
		return boundary
	case p.skip("A"):
		return &tree{op: opStart, at: at, asserts: true, context: true}
	case p.skip("z"):
		return &tree{op: opEnd, at: at, asserts: true}
	case p.skip("Z"):
		p.fail(at, `\Z has different meanings in other languages: write $`)
		return nil
	case p.at < len(p.pattern) && '1' <= p.pattern[p.at] && p.pattern[p.at] <= '9', p.skip("k"):
		p.fail(at, "back references cannot be held: they are not regular")
		return nil
	}
	class, _ := p.escaped(at)
	return &tree{op: opClass, at: at, class: p.fold(class)}
}

// escaped reads an escape that is one character, as which it reports it, or a class.
func (p *parser) escaped(at int) (class []rune, character bool) {
	if p.at == len(p.pattern) {
		p.fail(at, `the backslash escapes nothing: write \\ for the character`)
		return nil, false
	}
	switch c := p.next(); c {
	case 'd':
		return digits, false
	case 'D':
		return negate(digits), false
	case 'w':
		return p.fold(word), false
	case 'W':
		return negate(p.fold(word)), false
	case 's':
		return blanks, false
	case 'S':
		return negate(blanks), false
	case 'p', 'P':
		class := p.property(at)
		if c == 'P' && p.err == nil {
			return negate(p.fold(class)), false
		}
		return class, false
	default:
		c = p.escapedCharacter(at, c)
		return []rune{c, c}, true
	}
}

// escapedCharacter is the character that an escape means; c is behind the backslash.
func (p *parser) escapedCharacter(at int, c rune) rune {
	switch c {
	case 't':
		return '\t'
	case 'n':
		return '\n'
	case 'v':
		return '\v'
	case 'f':
		return '\f'
	case 'r':
		return '\r'
	case '0':
		if p.at < len(p.pattern) && '0' <= p.pattern[p.at] && p.pattern[p.at] <= '9' {
			p.fail(at, `octal escapes have different meanings in other languages: write \x and two digits`)
		}
		return 0
	case 'c':
		letter := p.next() | 0x20
		if letter < 'a' || letter > 'z' {
			p.fail(at, `\c needs a letter: write \cA, or \\c for the characters`)
		}
		return letter & 0x1F
	case 'x':
		return p.hex(at, 2)
	case 'u':
		return p.unicodeEscape(at)
	}
	if c < utf8.RuneSelf && (unicode.IsLetter(c) || unicode.IsDigit(c)) {
		p.fail(at, `\%c is not known here: leave the backslash out for the character`, c)
	}
	return c
}

// hex reads a number of hexadecimal digits.
func (p *parser) hex(at, count int) rune {
	value := rune(0)
	for range count {
		digit := strings.IndexRune("0123456789abcdef", unicode.ToLower(p.next()))
		if digit < 0 {
			p.fail(at, "the escape needs %d hexadecimal digits", count)
			return 0
		}
		value = value<<4 | rune(digit)
	}
	return value
}

// unicodeEscape reads what is behind \u: four digits, two times four for a pair of surrogates, or digits in braces.
func (p *parser) unicodeEscape(at int) rune {
	if p.skip("{") {
		digits, _, closed := strings.Cut(p.rest(), "}")
		digits = strings.TrimLeft(digits, "0")
		if !closed || len(digits) > 6 || p.rest()[0] == '}' {
			p.fail(at, `\u{…} needs up to six hexadecimal digits`)
			return 0
		}
		for p.skip("0") {
		}
		c := p.hex(at, len(digits))
		p.skip("}")
		if c > utf8.MaxRune || utf16.IsSurrogate(c) {
			p.fail(at, "U+%04X is no character", c)
		}
		return c
	}
	c := p.hex(at, 4)
	if utf16.IsSurrogate(c) {
		if p.skip(`\u`) {
			if c = utf16.DecodeRune(c, p.hex(at, 4)); c != unicode.ReplacementChar {
				return c
			}
		}
		p.fail(at, "half of a pair of surrogates is no character: write both halves, or the character")
	}
	return c
}

// class reads what is behind [.
func (p *parser) class(at int) []rune {
	not := p.skip("^")
	var ranges []rune
	for !p.skip("]") {
		if p.at == len(p.pattern) {
			p.fail(at, `the bracket [ is not closed: write \[ for the character`)
			return nil
		}
		from := p.at
		class, character := p.member()
		if character && p.at+1 < len(p.pattern) && p.pattern[p.at] == '-' && p.pattern[p.at+1] != ']' {
			before := p.at
			p.at++
			if end, character := p.member(); character && p.err == nil {
				if end[0] < class[0] {
					p.fail(from, "the range begins with U+%04X and ends before it, with U+%04X", class[0], end[0])
				}
				class = []rune{class[0], end[0]}
			} else if p.err == nil {
				p.at = before // [a-\d] is a, - and \d
			}
		}
		p.charge(len(class)/2 + 1)
		if p.err != nil {
			return nil
		}
		ranges = append(ranges, class...)
	}
	ranges = p.fold(normalize(ranges))
	if not {
		return negate(ranges)
	}
	return ranges
}

// member reads a character or an escape of a class.
func (p *parser) member() (class []rune, character bool) {
	at := p.at
	switch c := p.next(); c {
	case '\\':
		if p.skip("b") {
			return []rune{'\b', '\b'}, true
		}
		if p.at < len(p.pattern) && '1' <= p.pattern[p.at] && p.pattern[p.at] <= '9' {
			p.fail(at, `octal escapes have different meanings in other languages: write \x and two digits`)
			return nil, false
		}
		return p.escaped(at)
	case '[':
		if p.skip(":") {
			name, _, found := strings.Cut(p.rest(), ":]")
			if found && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz^") == "" {
				p.fail(at, `classes of POSIX, as [:%s:], are read differently by ECMA-262: write the ranges, or \p{…}`, name)
				return nil, false
			}
			p.at--
		}
		return []rune{c, c}, true
	default:
		return []rune{c, c}, true
	}
}
