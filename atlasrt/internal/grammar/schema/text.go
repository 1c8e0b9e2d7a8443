package schema

import (
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
)

type textKind uint8

const (
	anyString    textKind = iota // every string
	words                        // some strings
	search                       // strings in which a pattern matches
	whole                        // strings that a pattern of ours matches as a whole
	length                       // strings of least to most characters
	bothStrings                  // those of both parts
	someStrings                  // those of some part
	otherStrings                 // those not of the part
)

// texts is a set of strings. It is an expression, since strings are spelled in several ways; nil is the empty set.
type texts struct {
	kind        textKind
	words       []string // sorted
	pattern     string
	least, most int // characters; most may be unbounded
	parts       []*texts
}

const unbounded = -1

var anyText = &texts{kind: anyString}

func wordTexts(list []string) *texts {
	list = slices.Clone(list)
	slices.Sort(list)
	if list = slices.Compact(list); len(list) == 0 {
		return nil
	}
	return &texts{kind: words, words: list}
}

func (c *compiler) bothTexts(a, b *texts) *texts {
	switch {
	case a == nil || b == nil:
		return nil
	case a == anyText || a == b:
		return b
	case b == anyText:
		return a
	case a.kind == words || b.kind == words:
		if a.kind != words || b.kind == words && len(b.words) < len(a.words) {
			a, b = b, a
		}
		kept := make([]string, 0, len(a.words))
		for _, w := range a.words {
			if c.matches(b, w) {
				kept = append(kept, w)
			}
		}
		return wordTexts(kept)
	case a.kind == length && b.kind == length:
		return lengthTexts(max(a.least, b.least), lower(a.most, b.most))
	}
	return &texts{kind: bothStrings, parts: []*texts{a, b}}
}

// lower is the lower of two bounds.
func lower(a, b int) int {
	if a == unbounded || b != unbounded && b < a {
		return b
	}
	return a
}

func lengthTexts(least, most int) *texts {
	switch {
	case least <= 0 && most == unbounded:
		return anyText
	case most != unbounded && most < least:
		return nil
	}
	return &texts{kind: length, least: least, most: most}
}

func eitherTexts(a, b *texts) *texts {
	switch {
	case a == nil || b == anyText || a == b:
		return b
	case b == nil || a == anyText:
		return a
	case a.kind == words && b.kind == words:
		return wordTexts(append(a.words[:len(a.words):len(a.words)], b.words...))
	}
	return &texts{kind: someStrings, parts: []*texts{a, b}}
}

func notTexts(a *texts) *texts {
	switch {
	case a == nil:
		return anyText
	case a == anyText:
		return nil
	case a.kind == otherStrings:
		return a.parts[0]
	}
	return &texts{kind: otherStrings, parts: []*texts{a}}
}

// speller spells strings as expressions.
type speller struct {
	set       *regex.Set
	character func(s *regex.Set, class []rune) regex.Ref // nil: UTF-8
	word      func(text string) string                   // nil: as it is
	forms     map[*texts]regex.Ref                       // that were made
}

func (s *speller) any() regex.Ref {
	class := []rune{0, utf8.MaxRune}
	if s.character == nil {
		return s.set.Runes(class...)
	}
	return s.character(s.set, class)
}

// form is the expression of a set of strings, in its one spelling per string.
func (s *speller) form(t *texts) (regex.Ref, error) {
	if t == nil {
		return regex.Nothing, nil
	}
	if r, known := s.forms[t]; known {
		return r, nil
	}
	r, err := s.makeForm(t)
	if err == nil {
		s.forms[t] = r
	}
	return r, err
}

func (s *speller) makeForm(t *texts) (regex.Ref, error) {
	switch t.kind {
	case anyString:
		return s.set.Repeat(s.any(), 0, unbounded), nil
	case words:
		literals := make([]regex.Ref, len(t.words))
		for i, w := range t.words {
			if s.word != nil {
				w = s.word(w)
			}
			literals[i] = s.set.Literal(w)
		}
		return s.set.Or(literals...), nil
	case length:
		return s.set.Repeat(s.any(), t.least, t.most), nil
	case search, whole:
		return s.set.Parse(t.pattern, regex.Syntax{Character: s.character, Anchored: t.kind == whole})
	}
	parts := make([]regex.Ref, len(t.parts))
	for i, p := range t.parts {
		r, err := s.form(p)
		if err != nil {
			return r, err
		}
		parts[i] = r
	}
	switch t.kind {
	case bothStrings:
		return s.set.And(parts...), nil
	case someStrings:
		return s.set.Or(parts...), nil
	}
	return s.set.And(s.set.Repeat(s.any(), 0, unbounded), s.set.Not(parts[0])), nil
}

// plain is the expression of a set of strings as they are.
func (c *compiler) plain(t *texts) regex.Ref {
	r, err := c.raw.form(t)
	if err != nil {
		c.unsupported("pattern", err.Error())
		return regex.Nothing
	}
	return r
}

func (c *compiler) matches(t *texts, word string) bool {
	switch {
	case t == nil:
		return false
	case t == anyText:
		return true
	case t.kind == words:
		_, found := slices.BinarySearch(t.words, word)
		return found
	case t.kind == length:
		n := utf8.RuneCountInString(word)
		return n >= t.least && (t.most == unbounded || n <= t.most)
	case t.kind == otherStrings:
		return !c.matches(t.parts[0], word)
	case t.kind == bothStrings:
		return c.matches(t.parts[0], word) && c.matches(t.parts[1], word)
	case t.kind == someStrings:
		return c.matches(t.parts[0], word) || c.matches(t.parts[1], word)
	}
	return c.spend(1+len(word)/16) && c.rules.Regexes.Matches(c.plain(t), word)
}

// someText says whether there is a string in a set.
func (c *compiler) someText(t *texts) bool {
	if t == nil || t.kind <= words || t.kind == length {
		return t != nil
	}
	return c.living(c.plain(t))
}

// stepsOfRegexes is how many steps of expressions cost as much as one of reading a schema.
const stepsOfRegexes = 8

// living says whether an expression matches some text. What is too costly to tell counts as living.
func (c *compiler) living(r regex.Ref) bool {
	before := c.rules.Regexes.Steps()
	alive, err := c.rules.Regexes.Alive(r)
	c.spend(1 + (c.rules.Regexes.Steps()-before)/stepsOfRegexes)
	return alive || err != nil
}

// patternTexts is the set of strings in which a pattern matches.
func (c *compiler) patternTexts(keyword, pattern string) *texts {
	if t, known := c.patterns[pattern]; known {
		return t
	}
	t := &texts{kind: search, pattern: pattern}
	if !c.spend(1 + len(pattern)) {
		return nil
	}
	if _, err := c.raw.form(t); err != nil {
		reason := err.Error()
		if e := (*regex.Error)(nil); errors.As(err, &e) {
			reason = e.Reason
		}
		c.unsupported(keyword, "the pattern "+quote(pattern)+": "+reason)
	}
	c.patterns[pattern] = t
	return t
}
