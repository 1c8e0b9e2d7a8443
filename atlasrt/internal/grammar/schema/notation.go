package schema

import (
	"strings"
	"unicode/utf8"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// style is how a notation writes values.
type style struct {
	null, no, yes           regex.Ref
	openObject, closeObject regex.Ref
	openArray, closeArray   regex.Ref
	first                   regex.Ref // before the first member or item
	comma, colon            regex.Ref
	sorted                  bool      // properties come by name
	quote, quoteEnd         regex.Ref // around strings
	free                    regex.Ref // within the quotes of a string that is not bound
	within                  regex.Ref // that what is within quotes must match as well
	spell                   *speller  // of strings
	key                     func(name string) regex.Ref
	freeKey                 regex.Ref                                                         // of any property
	keys                    func(names regex.Ref) regex.Ref                                   // those of some names, as strings
	member                  func(before, key regex.Ref, name string, value node) rules.Symbol // nil: key, colon and value. name is "" where the schema has none
}

// mostBlanks bounds white space in a row.
const mostBlanks = 20

// jsonStyle is that of a notation of JSON.
func jsonStyle(s *regex.Set, n Notation) *style {
	space, behind := regex.Empty, regex.Empty
	switch n {
	case Spaced:
		behind = s.Literal(" ")
	case Flexible:
		blank := s.Or(s.Literal(" "), s.Literal("\t"))
		space = s.Concat(s.Repeat(s.Literal("\n"), 0, 1), s.Repeat(blank, 0, mostBlanks))
		behind = space
	}
	quote := s.Literal(`"`)
	free := s.Repeat(freeCharacter(s), 0, unbounded)
	quoted := func(r regex.Ref) regex.Ref { return s.Concat(quote, r, quote) }
	return &style{
		null: s.Literal("null"), no: s.Literal("false"), yes: s.Literal("true"),
		openObject: s.Literal("{"), closeObject: s.Concat(space, s.Literal("}")),
		openArray: s.Literal("["), closeArray: s.Concat(space, s.Literal("]")),
		first: space, comma: s.Concat(space, s.Literal(","), behind), colon: s.Concat(space, s.Literal(":"), behind),
		quote: quote, quoteEnd: quote, free: free, within: anything(s), spell: jsonSpeller(s),
		key:     func(name string) regex.Ref { return s.Literal(string(jsontree.AppendString(nil, name))) },
		freeKey: quoted(free),
		keys:    quoted,
	}
}

// anything is every text of bytes.
func anything(s *regex.Set) regex.Ref { return s.Not(regex.Nothing) }

func jsonSpeller(s *regex.Set) *speller {
	return &speller{
		set:       s,
		character: jsonCharacter,
		word: func(text string) string {
			quoted := jsontree.AppendString(nil, text)
			return string(quoted[1 : len(quoted)-1])
		},
		forms: map[*texts]regex.Ref{},
	}
}

// shortEscapes are characters that JSON escapes by one letter, and those letters.
const shortEscapes, shortLetters = "\"\\\b\f\n\r\t", `"\bfnrt`

// jsonCharacter is a character of a class as Python writes it within a string of JSON: escaped only where it must be.
func jsonCharacter(s *regex.Set, class []rune) regex.Ref {
	var plain []rune
	var forms []regex.Ref
	for i := 0; i+1 < len(class); i += 2 {
		low, high := class[i], class[i+1]
		for r := low; r <= min(high, 0x1f); r++ {
			forms = append(forms, escapedCharacter(s, r))
		}
		for _, r := range `"\` {
			if low <= r && r <= high {
				forms = append(forms, escapedCharacter(s, r))
			}
		}
		for _, part := range [][2]rune{{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, utf8.MaxRune}} {
			if from, to := max(low, part[0]), min(high, part[1]); from <= to {
				plain = append(plain, from, to)
			}
		}
	}
	if len(plain) > 0 {
		forms = append(forms, s.Runes(plain...))
	}
	return s.Or(forms...)
}

// escapedCharacter is the escape of one character: by a letter, or by its number, in upper or lower case.
func escapedCharacter(s *regex.Set, r rune) regex.Ref {
	if i := strings.IndexRune(shortEscapes, r); i >= 0 {
		return s.Literal(`\` + shortLetters[i:i+1])
	}
	const lower, upper = "0123456789abcdef", "0123456789ABCDEF"
	number := `\u00` + lower[r>>4:r>>4+1]
	return s.Concat(s.Literal(number), s.Or(s.Literal(lower[r&15:r&15+1]), s.Literal(upper[r&15:r&15+1])))
}

// freeCharacter is a character of a JSON string in any spelling.
func freeCharacter(s *regex.Set) regex.Ref {
	hex := s.Or(s.Bytes('0', '9'), s.Bytes('a', 'f'), s.Bytes('A', 'F'))
	two := s.Concat(hex, hex)
	d := s.Or(s.Literal("d"), s.Literal("D"))
	notD := s.Or(s.Bytes('0', '9'), s.Bytes('a', 'c'), s.Bytes('e', 'f'), s.Bytes('A', 'C'), s.Bytes('E', 'F'))
	high := s.Concat(d, s.Or(s.Bytes('8', '9'), s.Bytes('a', 'b'), s.Bytes('A', 'B')), two)
	low := s.Concat(d, s.Or(s.Bytes('c', 'f'), s.Bytes('C', 'F')), two)
	single := s.Or(s.Concat(notD, hex, two), s.Concat(d, s.Bytes('0', '7'), two))
	letters := make([]regex.Ref, 0, 8)
	for _, letter := range `"\/bfnrt` {
		letters = append(letters, s.Literal(string(letter)))
	}
	escape := s.Or(append(letters, s.Concat(s.Literal("u"), s.Or(single, s.Concat(high, s.Literal(`\u`), low))))...)
	return s.Or(s.Concat(s.Literal(`\`), escape), s.NotRunes(0, 0x1f, '"', '"', '\\', '\\'))
}
