package ebnf

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
)

// Lark adds a grammar in the language of lark, and gives its start. Errors are *Error.
func Lark(b *rules.Builder, text string) (start rules.Symbol, err error) {
	g := &lark{book: newBook(b, text)}
	err = read(func() {
		g.valid()
		g.statements()
		g.ignore()
		start = g.finish("start")
	})
	return start, err
}

// lark reads lark's language.
type lark struct {
	*book
	ignores []*rule // terminals without a name
}

func (g *lark) statements() {
	for g.space(); g.at < len(g.text); g.space() {
		if g.peek() == '%' {
			g.directive()
			continue
		}
		from := g.at
		name := g.head()
		if name == "" {
			g.unexpected("a rule, a terminal or a directive")
		}
		g.define(&rule{name: name, at: from, terminal: isTerminal(name), body: g.choice(!isTerminal(name))})
		if g.at < len(g.text) && !g.statementBegins() {
			g.unexpected("a part of a rule, | or the next rule")
		}
	}
}

// head reads a definition up to its colon and gives its name.
func (g *lark) head() string {
	for g.take("?") || g.take("!") {
	}
	from := g.at
	name := g.name()
	switch g.peek() {
	case '{':
		g.fail(from, "%s{…} is a template, which is not supported (write a rule for each use)", name)
	case '[':
		g.fail(from, "%s[…] has attributes, which are not supported (leave them out)", name)
	}
	if name != "" && g.take(".") {
		g.take("-")
		g.word("") // the priority
	}
	if g.blank(); name != "" && !g.take(":") {
		g.unexpected(":")
	}
	return name
}

// statementBegins tells whether a definition or a directive begins here.
func (g *lark) statementBegins() bool {
	from := g.at
	defer func() { g.at = from }()
	for g.take("?") || g.take("!") {
	}
	switch {
	case g.peek() == '%':
		return true
	case g.name() == "":
		return false
	case g.peek() == '{', g.peek() == '[': // a template or attributes, if a colon follows
		shut := map[byte]string{'{': "}", '[': "]"}[g.peek()]
		inside, _, ok := strings.Cut(g.text[g.at:min(len(g.text), g.at+longestHead)], shut)
		if !ok {
			return false
		}
		g.at += len(inside) + 1
	case g.take("."):
		if g.take("-"); g.word("") == "" {
			return false
		}
	}
	g.blank()
	return g.peek() == ':'
}

// longestHead bounds how far a template's parameters are looked for.
const longestHead = 200

// name reads the name of a rule or a terminal.
func (g *lark) name() string {
	if isDigit(g.peek()) {
		return ""
	}
	return g.word("")
}

// isTerminal tells whether a name is that of a terminal: its first letter is large.
func isTerminal(name string) bool {
	name = strings.TrimLeft(name, "_")
	return name != "" && name[0] >= 'A' && name[0] <= 'Z'
}

// space reads white space and comments.
func (g *lark) space() {
	for {
		switch c := g.peek(); {
		case isSpace(c):
			g.at++
		case c == '#', c == '/' && g.ahead(1) == '/':
			g.line()
		default:
			return
		}
	}
}

// blank reads blanks.
func (g *lark) blank() {
	for g.peek() == ' ' || g.peek() == '\t' {
		g.at++
	}
}

// choice reads parts between bars; the parts of a rule may have aliases.
func (g *lark) choice(aliases bool) *node {
	from := g.at
	parts := []*node{g.sequence(aliases)}
	for g.take("|") {
		parts = append(parts, g.sequence(aliases))
	}
	return g.join(either, from, parts...)
}

// sequence reads parts up to a bar, the end of a bracket, or the next statement.
func (g *lark) sequence(aliases bool) *node {
	g.space()
	from := g.at
	var parts []*node
	for {
		switch c := g.peek(); {
		case aliases && g.take("->"):
			g.space()
			if at := g.at; g.name() == "" {
				g.at = at
				g.unexpected("a name behind ->")
			}
			g.space()
			return g.join(sequence, from, parts...)
		case c == 0, c == '|', c == ')', c == ']', g.statementBegins():
			return g.join(sequence, from, parts...)
		}
		parts = append(parts, g.part())
	}
}

// part reads one part, how often it is repeated, and the space behind it.
func (g *lark) part() *node {
	n := g.item()
	for {
		g.space()
		switch {
		case g.take("*"):
			n = g.repeated(n, 0, rules.Unbounded)
		case g.take("+"):
			n = g.repeated(n, 1, rules.Unbounded)
		case g.peek() == '?' && !g.statementBegins(): // not the prefix of the next rule
			g.at++
			n = g.repeated(n, 0, 1)
		case g.take("~"):
			n = g.counted(n)
		default:
			return n
		}
	}
}

// counted reads how often a part is repeated, behind ~.
func (g *lark) counted(n *node) *node {
	from := g.at
	g.space()
	least := g.times()
	most := least
	if g.blank(); g.take("..") {
		g.blank()
		most = g.times()
	}
	if most < least {
		g.fail(from, "~%s: the least number is more than the most", g.text[from:g.at])
	}
	return g.repeated(n, least, most)
}

func (g *lark) item() *node {
	from := g.at
	switch c := g.peek(); {
	case c == '"':
		return g.written(from)
	case c == '/':
		return &node{kind: plain, at: from, regex: g.expression(from)}
	case g.take("("):
		return g.bracket(from, ")")
	case g.take("["):
		return g.repeated(g.bracket(from, "]"), 0, 1)
	case c == '<', c == '@', c == '&', c == '~', c == '%':
		g.fail(from, "%q begins what lark itself does not have, and what is not supported", c)
	case isWord(c):
		name := g.name()
		if name == "" {
			break
		}
		switch g.peek() {
		case '{':
			g.fail(from, "%s{…} uses a template, which is not supported (write a rule for each use)", name)
		case '.':
			if g.ahead(1) == '.' {
				g.fail(from, "a range of characters is between two texts, such as \"a\"..\"z\"")
			}
		}
		return &node{kind: refer, at: from, name: name}
	}
	g.unexpected("a part of a rule")
	return nil
}

func (g *lark) bracket(from int, shut string) *node {
	g.enter(from)
	n := g.choice(true)
	if !g.take(shut) {
		g.fail(from, "the bracket does not end before the rule does (add %s)", shut)
	}
	g.depth--
	return n
}

// written reads text between quotes, or a range of characters.
func (g *lark) written(from int) *node {
	n := &node{kind: plain, at: from}
	text := g.quoted(from)
	set := g.b.Regexes
	switch {
	case g.take(".."):
		at := g.at
		if g.peek() != '"' {
			g.unexpected(`a character between quotes`)
		}
		last := g.quoted(at)
		if utf8.RuneCountInString(text) != 1 || utf8.RuneCountInString(last) != 1 {
			g.fail(from, "a range is from one character to another, not from %.20q to %.20q", text, last)
		}
		lo, _ := utf8.DecodeRuneInString(text)
		hi, _ := utf8.DecodeRuneInString(last)
		if hi < lo {
			g.fail(from, "the range of characters from %q to %q is empty", lo, hi)
		}
		n.regex = set.Runes(lo, hi)
	case g.peek() == 'i' && !isWord(g.ahead(1)):
		g.at++
		n.regex = anyCase(set, text)
	default:
		n.regex = set.Literal(text)
	}
	return n
}

// quoted reads text between quotes.
func (g *lark) quoted(from int) string {
	g.at++
	var b strings.Builder
	for {
		switch {
		case g.at == len(g.text) || g.peek() == '\n':
			g.fail(from, `the text does not end on its line (add ", and write line ends as \n)`)
		case g.take(`"`):
			return b.String()
		case g.take(`\f`):
			b.WriteByte('\f')
		case g.take(`\`):
			b.WriteRune(g.escape(`\"'/`))
		default:
			b.WriteByte(g.peek())
			g.at++
		}
	}
}

// anyCase is a text in small or large letters.
func anyCase(set *regex.Set, text string) regex.Ref {
	var parts []regex.Ref
	for _, r := range text {
		ranges := []rune{r, r}
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			ranges = append(ranges, f, f)
		}
		parts = append(parts, set.Runes(ranges...))
	}
	return set.Concat(parts...)
}

// expression reads a regular expression between slashes and its flags.
func (g *lark) expression(from int) regex.Ref {
	g.at++
	for g.peek() != '/' {
		if g.at == len(g.text) || g.peek() == '\n' {
			g.fail(from, "the regular expression does not end on its line (add /)")
		}
		if g.peek() == '\\' && g.at+1 < len(g.text) {
			g.at++
		}
		g.character()
	}
	pattern := g.text[from+1 : g.at]
	g.at++
	flags := ""
	for {
		switch c := g.peek(); c {
		case 'i', 's':
			flags += string(c)
		case 'u':
		case 'm', 'l', 'x':
			g.fail(g.at, "the flag %c of a regular expression is not supported (i, s and u are)", c)
		default:
			return g.parse(from, pattern, flags)
		}
		g.at++
	}
}

func (g *lark) parse(from int, pattern, flags string) regex.Ref {
	if flags != "" {
		pattern = fmt.Sprintf("(?%s:%s)", flags, pattern)
	}
	r, err := g.b.Regexes.Parse(pattern, regex.Syntax{Anchored: true})
	if err != nil {
		g.fail(from, "the regular expression: %v", err)
	}
	return r
}
