package ebnf

import (
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
)

// GBNF adds a grammar in the language of llama.cpp, or in one of its relatives, and gives its root. Errors are *Error.
func GBNF(b *rules.Builder, text string) (root rules.Symbol, err error) {
	g := &gbnf{newBook(b, text)}
	err = read(func() {
		g.valid()
		g.rules()
		root = g.finish("root")
	})
	return root, err
}

// gbnf reads GBNF.
type gbnf struct{ *book }

func (g *gbnf) rules() {
	for g.space(); g.at < len(g.text); g.space() {
		from := g.at
		name := g.name()
		if name == "" {
			g.unexpected("the name of a rule")
		}
		if g.space(); !g.take("::=") {
			g.unexpected("::=")
		}
		g.define(&rule{name: name, at: from, body: g.choice()})
		if g.at < len(g.text) && !g.ruleBegins() {
			g.unexpected("a part of a rule, | or the next rule")
		}
	}
}

func (g *gbnf) name() string { return g.word("-") }

// space reads white space and comments.
func (g *gbnf) space() {
	for {
		switch c := g.peek(); {
		case isSpace(c):
			g.at++
		case c == '#' && (g.number() == 0 || g.lineBegins()):
			g.line()
		case c == '/' && g.ahead(1) == '*':
			n := strings.Index(g.text[g.at+2:], "*/")
			if n < 0 {
				g.fail(g.at, "the comment does not end (add */)")
			}
			g.at += n + 4
		default:
			return
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// number is how many digits a character has that is written as #x20 here; 0: none is.
func (g *gbnf) number() (digits int) {
	if g.peek() != '#' || g.ahead(1) != 'x' {
		return 0
	}
	for isHex(g.ahead(2 + digits)) {
		digits++
	}
	if c := g.ahead(2 + digits); isWord(c) {
		return 0
	}
	return digits
}

// numbered reads a character by its number of so many digits.
func (g *gbnf) numbered(digits int) rune {
	from := g.at
	if digits > 8 {
		g.fail(from, "%.20s is no character of Unicode", g.text[from:])
	}
	g.at += 2
	return g.hex(from, digits, digits)
}

// ruleBegins tells whether a rule begins here.
func (g *gbnf) ruleBegins() bool {
	from := g.at
	defer func() { g.at = from }()
	if g.name() == "" {
		return false
	}
	g.space()
	return g.take("::=")
}

// choice reads parts between bars.
func (g *gbnf) choice() *node {
	from := g.at
	parts := []*node{g.sequence()}
	for g.take("|") {
		parts = append(parts, g.sequence())
	}
	return g.join(either, from, parts...)
}

// sequence reads parts up to a bar, the end of a bracket, or the next rule.
func (g *gbnf) sequence() *node {
	g.space()
	from := g.at
	var parts []*node
	for {
		c := g.peek()
		if c == 0 || c == '|' || c == ')' || isWord(c) && g.ruleBegins() {
			return g.join(sequence, from, parts...)
		}
		if c == '-' && len(parts) > 0 {
			g.at++
			g.space()
			last := len(parts) - 1
			parts[last] = g.join(except, parts[last].at, parts[last], g.part())
			continue
		}
		parts = append(parts, g.part())
	}
}

// part reads one part, how often it is repeated, and the space behind it.
func (g *gbnf) part() *node {
	n := g.item()
	for {
		g.space()
		switch {
		case g.take("*"):
			n = g.repeated(n, 0, rules.Unbounded)
		case g.take("+"):
			n = g.repeated(n, 1, rules.Unbounded)
		case g.take("?"):
			n = g.repeated(n, 0, 1)
		case g.peek() == '{':
			least, most := g.bounds()
			n = g.repeated(n, least, most)
		default:
			return n
		}
	}
}

// bounds reads {m}, {m,}, {m,n} or {,n}.
func (g *gbnf) bounds() (least, most int) {
	from := g.at
	g.at++
	if g.space(); g.peek() != ',' {
		least = g.times()
	}
	most = least
	if g.space(); g.take(",") {
		most = rules.Unbounded
		if g.space(); g.peek() != '}' {
			most = g.times()
		}
	}
	if g.space(); !g.take("}") {
		g.unexpected("}")
	}
	if most != rules.Unbounded && most < least {
		g.fail(from, "%s: the least number is more than the most", g.text[from:g.at])
	}
	return least, most
}

// macros are parts that look like functions, in xgrammar's language.
var macros = []string{"TagDispatch", "TokenTagDispatch", "Token", "ExcludeToken"}

func (g *gbnf) item() *node {
	from, set := g.at, g.b.Regexes
	leaf := func(r regex.Ref) *node { return &node{kind: plain, at: from, regex: r} }
	switch c := g.peek(); {
	case g.take(`"`):
		return leaf(set.Literal(g.quoted(from)))
	case g.take("'"):
		text, _, whole := strings.Cut(g.text[g.at:], "'")
		if !whole || strings.Contains(text, "\n") {
			g.fail(from, "the text does not end on its line (add ')")
		}
		g.at += len(text) + 1
		return leaf(set.Literal(text))
	case g.take("."):
		return leaf(set.NotRunes())
	case g.take("["):
		return leaf(g.class(from))
	case g.take("(="):
		g.fail(from, "(= looks ahead, which is not supported")
	case g.take("("):
		g.enter(from)
		n := g.choice()
		if !g.take(")") {
			g.fail(from, "the bracket does not end before the rule does (add a closing one)")
		}
		g.depth--
		return n
	case c == '#':
		r := g.numbered(g.number())
		return leaf(set.Runes(r, r))
	case c == '<', c == '!':
		g.fail(from, "tokens as <name> or <[id]> are not supported (write their text between quotes)")
	case isWord(c):
		name := g.name()
		for _, macro := range macros {
			if name == macro && g.peek() == '(' {
				g.fail(from, "%s(…) is not supported", name)
			}
		}
		return &node{kind: refer, at: from, name: name}
	}
	g.unexpected("a part of a rule")
	return nil
}

// quoted reads text up to its quote.
func (g *gbnf) quoted(from int) string {
	var b strings.Builder
	for {
		switch {
		case g.at == len(g.text) || g.peek() == '\n':
			g.fail(from, `the text does not end on its line (add ", and write line ends as \n)`)
		case g.take(`"`):
			return b.String()
		case g.take(`\`):
			b.WriteRune(g.escape(`\"[]`))
		default:
			b.WriteByte(g.peek())
			g.at++
		}
	}
}

// class reads characters up to the closing bracket.
func (g *gbnf) class(from int) regex.Ref {
	not := g.take("^")
	var ranges []rune
	for !g.take("]") {
		lo := g.member(from)
		hi := lo
		if g.peek() == '-' && g.ahead(1) != ']' {
			g.at++
			if hi = g.member(from); hi < lo {
				g.fail(from, "the range of characters from %q to %q is empty", lo, hi)
			}
		}
		ranges = append(ranges, lo, hi)
	}
	switch {
	case not:
		return g.b.Regexes.NotRunes(ranges...)
	case len(ranges) == 0:
		g.fail(from, "no character is between the brackets")
	}
	return g.b.Regexes.Runes(ranges...)
}

// member reads a character between brackets.
func (g *gbnf) member(from int) rune {
	if g.at == len(g.text) || g.peek() == '\n' {
		g.fail(from, "the characters do not end on their line (add ])")
	}
	if digits := g.number(); digits > 0 {
		if c := g.ahead(2 + digits); c == ']' || c == '-' || c == '#' {
			return g.numbered(digits)
		}
	}
	if g.take(`\`) {
		return g.escape(`\"[]-^/'`)
	}
	return g.character()
}
