package regex

import (
	"fmt"
	"unicode/utf8"
)

// Syntax says how Parse reads a pattern.
type Syntax struct {
	// Character spells one character of a class, which is sorted pairs of a first and a last without surrogates: as part of a JSON string,
	// say. A character may have several spellings; none may be another character's, or the beginning of one. Nil spells in UTF-8.
	Character func(s *Set, class []rune) Ref

	Anchored   bool // the pattern must match a whole text; otherwise some part of it
	IgnoreCase bool // letters match in either case, as in (?i)
	DotAll     bool // a dot matches line ends as well, as in (?s)
}

// Error says why a pattern is refused.
type Error struct {
	Pattern  string // as it was given
	Position int    // of the byte where the reason is
	Reason   string // what is wrong, and what to write in its place
}

// Error is a sentence that shows the pattern, shortened.
func (e *Error) Error() string {
	const most = 80
	shown := e.Pattern
	if len(shown) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(shown[cut]) {
			cut--
		}
		shown = shown[:cut] + "…"
	}
	return fmt.Sprintf("regular expression %q, at byte %d: %s", shown, e.Position, e.Reason)
}

// Bounds of patterns.
const (
	maxPattern = 1 << 16 // bytes
	maxDepth   = 200     // groups in groups
	maxUnroll  = 1 << 14 // parts that are written out again, because a look-ahead or the like is in a repetition
	maxWork    = 1 << 22 // steps of the set
)

// op is what a tree is.
type op uint8

const (
	opEmpty    op = iota
	opClass       // a character of class
	opConcat      // subs, one behind the other
	opUnion       // one of subs
	opRepeat      // subs[0], lo to hi times; hi is -1 where there is no bound
	opStart       // the start of the text
	opEnd         // the end of the text
	opBoundary    // \b, or \B where not
	opAhead       // subs[0] follows, or does not where not
)

// tree is a parsed pattern.
type tree struct {
	op       op
	not      bool
	asserts  bool // something inside looks at what is around it
	context  bool // something inside looks at what is before it
	at       int  // position in the pattern
	lo, hi   int
	class    []rune
	subs     []*tree
	language Ref // of a tree that does not assert, plus one
}

// Parse reads a pattern. What it cannot hold is an *Error.
func (s *Set) Parse(pattern string, syntax Syntax) (Ref, error) {
	p := parser{pattern: pattern, modes: modes{syntax.IgnoreCase, syntax.DotAll}}
	root := p.parse()
	if p.err != nil {
		return Nothing, p.err
	}
	c := compiler{set: s, syntax: syntax, pattern: pattern, limit: s.steps + maxWork}
	r := c.whole(root)
	if c.err != nil {
		return Nothing, c.err
	}
	return r, nil
}
