package schema

import (
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
)

// bareExcluded are characters that keys without quotes do not have: those that end them, or that a reader leaves out or takes for a quote.
var bareExcluded = []rune{0, ' ', '"', '"', ',', ',', ':', ':', '<', '<', '[', '[', ']', ']', '{', '{', '}', '}', 0x7f, 0xa0, 0x1680, 0x1680, 0x2000, 0x200a, 0x2028, 0x2029, 0x202f, 0x202f,
	0x205f, 0x205f, 0x3000, 0x3000}

// gemmaStyle is Gemma-4's: keys bare and by name, and strings between marks, with nothing escaped. Source: its chat template.
func gemmaStyle(s *regex.Set, mark func(string) string) *style {
	const quoteMark = `<|"|>`
	spelled := mark(quoteMark)
	quote := s.Literal(spelled)
	inside := s.Text()
	if spelled == quoteMark {
		inside = s.And(inside, s.Without(quoteMark))
	}
	bareCharacter := s.NotRunes(bareExcluded...)
	bare := s.Repeat(bareCharacter, 1, unbounded)
	return &style{
		null: s.Or(s.Literal("null"), s.Literal("None")), no: s.Literal("false"), yes: s.Literal("true"),
		openObject: s.Literal("{"), closeObject: s.Literal("}"), openArray: s.Literal("["), closeArray: s.Literal("]"),
		first: regex.Empty, comma: s.Literal(","), colon: s.Literal(":"), sorted: true,
		quote: quote, quoteEnd: quote, free: inside, within: inside, spell: plainSpeller(s),
		key: func(name string) regex.Ref {
			if s.Matches(bare, name) {
				return s.Literal(name)
			}
			return s.Concat(quote, s.And(s.Literal(name), inside), quote)
		},
		freeKey: bare,
		keys:    func(names regex.Ref) regex.Ref { return s.And(names, bare) },
	}
}

func plainSpeller(s *regex.Set) *speller {
	return &speller{set: s, forms: map[*texts]regex.Ref{}}
}

// byName orders properties as the filter dictsort of templates does.
func byName(f, g field) int { return strings.Compare(strings.ToLower(f.name), strings.ToLower(g.name)) }
