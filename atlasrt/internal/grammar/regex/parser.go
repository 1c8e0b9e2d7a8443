package regex

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// parser reads a pattern from left to right. Its first error ends it: nothing is left to read then.
type parser struct {
	pattern string
	at      int
	modes   modes
	work    int // ranges of classes gone through
	err     *Error
}

// modes are what (?…) sets.
type modes struct{ ignoreCase, dotAll bool }

func (p *parser) fail(at int, reason string, args ...any) {
	if p.err == nil {
		p.err = &Error{p.pattern, at, fmt.Sprintf(reason, args...)}
	}
	p.at = len(p.pattern)
}

func (p *parser) parse() *tree {
	if len(p.pattern) > maxPattern {
		p.fail(maxPattern, "the pattern has %d bytes: at most %d can be held", len(p.pattern), maxPattern)
	} else if !utf8.ValidString(p.pattern) {
		p.fail(0, "the pattern is no valid UTF-8")
	}
	t := p.union(0)
	if p.err == nil && p.at < len(p.pattern) {
		p.fail(p.at, `the bracket ) closes nothing: write \) for the character`)
	}
	return t
}

// rest is what is not read yet.
func (p *parser) rest() string { return p.pattern[p.at:] }

// skip reads a text if it comes next.
func (p *parser) skip(text string) bool {
	if !strings.HasPrefix(p.rest(), text) {
		return false
	}
	p.at += len(text)
	return true
}

// next reads a character; it is 0 at the end.
func (p *parser) next() rune {
	if p.at == len(p.pattern) {
		return 0
	}
	c, n := utf8.DecodeRuneInString(p.rest())
	p.at += n
	return c
}

// union reads alternatives, up to a closing bracket or the end.
func (p *parser) union(depth int) *tree {
	t := &tree{op: opUnion, at: p.at}
	if depth > maxDepth {
		p.fail(p.at, "groups are more than %d deep", maxDepth)
	}
	for {
		t.subs = append(t.subs, p.sequence(depth))
		if !p.skip("|") {
			break
		}
	}
	if len(t.subs) == 1 {
		return t.subs[0]
	}
	t.gather()
	return t
}

func (p *parser) sequence(depth int) *tree {
	t := &tree{op: opConcat, at: p.at}
	for p.at < len(p.pattern) && p.pattern[p.at] != '|' && p.pattern[p.at] != ')' {
		at := p.at
		atom := p.atom(depth)
		if p.err == nil && atom != nil {
			t.subs = append(t.subs, p.repeated(atom, p.pattern[at:p.at]))
		}
	}
	switch len(t.subs) {
	case 0:
		t.op = opEmpty
	case 1:
		return t.subs[0]
	}
	t.gather()
	return t
}

// gather takes over what parts do.
func (t *tree) gather() {
	for _, sub := range t.subs {
		t.asserts = t.asserts || sub.asserts
		t.context = t.context || sub.context
	}
}

// atom reads what a repetition may follow. It is nil where it only sets modes.
func (p *parser) atom(depth int) *tree {
	at := p.at
	switch c := p.next(); c {
	case '.':
		if p.modes.dotAll {
			return &tree{op: opClass, at: at, class: negate(nil)}
		}
		return &tree{op: opClass, at: at, class: negate([]rune{'\n', '\n', '\r', '\r', 0x2028, 0x2029})}
	case '^':
		return &tree{op: opStart, at: at, asserts: true, context: true}
	case '$':
		return &tree{op: opEnd, at: at, asserts: true}
	case '(':
		return p.group(at, depth)
	case '[':
		return &tree{op: opClass, at: at, class: p.class(at)}
	case '\\':
		return p.escape(at)
	case '*', '+', '?':
		p.fail(at, `nothing comes before %c that it could repeat: write \%c for the character`, c, c)
		return nil
	case '{':
		if _, _, n := quantifier(p.pattern[at:]); n > 0 {
			p.fail(at, `nothing comes before the repetition: write \{ for the character`)
			return nil
		}
		return p.literal(at, c)
	default:
		return p.literal(at, c)
	}
}

func (p *parser) literal(at int, c rune) *tree {
	return &tree{op: opClass, at: at, class: p.fold([]rune{c, c})}
}

// places are how atoms begin that match a place in the text, and no characters.
var places = []string{"^", "$", `\b`, `\B`, `\A`, `\z`, "(?=", "(?!"}

// repeated reads the repetition behind an atom, if there is one.
func (p *parser) repeated(atom *tree, text string) *tree {
	at := p.at
	lo, hi, n := quantifier(p.rest())
	if n < 0 {
		p.fail(at, "a repetition without its least count has different meanings in other languages: write {0,n}")
	}
	if n <= 0 {
		return atom
	}
	p.at += n
	switch {
	case slices.ContainsFunc(places, func(place string) bool { return strings.HasPrefix(text, place) }):
		p.fail(at, "a repetition of a place in the text, not of characters: leave it out")
	case lo > maxCount || hi > maxCount:
		p.fail(at, "counts of repetitions go up to %d", maxCount)
	case hi >= 0 && hi < lo:
		p.fail(at, "the least count %d is more than the most %d", lo, hi)
	}
	p.skip("?")
	if p.skip("+") {
		p.fail(at, "possessive repetitions can match other texts than the expression says: leave the + out")
	} else if _, _, n := quantifier(p.rest()); n != 0 && p.err == nil {
		p.fail(p.at, "a repetition of a repetition: put the first into a group, (?:…)")
	}
	return &tree{op: opRepeat, at: atom.at, lo: lo, hi: hi, subs: []*tree{atom}, asserts: atom.asserts, context: atom.context}
}

// quantifier reads * + ? {m} {m,} {m,n}: n is its length, 0 where there is none, and -1 for {,n}. hi is -1 where there is no bound.
func quantifier(text string) (lo, hi, n int) {
	if text == "" {
		return 0, 0, 0
	}
	switch text[0] {
	case '*':
		return 0, -1, 1
	case '+':
		return 1, -1, 1
	case '?':
		return 0, 1, 1
	case '{':
		lo, at := number(text, 1)
		hi, end := lo, at
		if comma := at < len(text) && text[at] == ','; comma {
			hi, end = number(text, at+1)
			if end == at+1 {
				hi = -1
			}
			if at == 1 && hi >= 0 && end < len(text) && text[end] == '}' {
				return 0, 0, -1
			}
		}
		if at == 1 || end == len(text) || text[end] != '}' {
			return 0, 0, 0
		}
		return lo, hi, end + 1
	}
	return 0, 0, 0
}

// number reads digits from a place; large numbers stay over maxCount.
func number(text string, at int) (value, end int) {
	for at < len(text) && '0' <= text[at] && text[at] <= '9' {
		value = min(10*value+int(text[at]-'0'), maxCount+1)
		at++
	}
	return value, at
}

// group reads what is behind an opening bracket.
func (p *parser) group(at, depth int) *tree {
	outer := p.modes
	ahead, not := false, false
	if p.skip("?") {
		switch {
		case p.skip(":"):
		case p.skip("="):
			ahead = true
		case p.skip("!"):
			ahead, not = true, true
		case strings.HasPrefix(p.rest(), "<=") || strings.HasPrefix(p.rest(), "<!"):
			p.fail(at, "look-behind cannot be held: say in the expression itself what must come before")
		case p.skip("<") || p.skip("P<"):
			p.name(at)
		case strings.HasPrefix(p.rest(), "P="):
			p.fail(at, "back references cannot be held: they are not regular")
		case strings.HasPrefix(p.rest(), ">"):
			p.fail(at, "atomic groups can match other texts than the expression says: write (?:…)")
		case strings.HasPrefix(p.rest(), "("):
			p.fail(at, "conditions on groups cannot be held")
		default:
			if p.setModes(at) {
				return nil // up to the end of the group around it
			}
		}
	}
	t := p.union(depth + 1)
	p.modes = outer
	if p.err == nil && !p.skip(")") {
		p.fail(at, `the bracket ( is not closed: write \( for the character`)
	}
	if ahead {
		return &tree{op: opAhead, at: at, not: not, subs: []*tree{t}, asserts: true, context: t.context}
	}
	return t
}

// name reads the name of a group, up to >.
func (p *parser) name(at int) {
	end := strings.IndexByte(p.rest(), '>')
	if end <= 0 || strings.ContainsAny(p.rest()[:end], `()[]{}|\^$*+?. `) {
		p.fail(at, "the group has no name: write (?<name>…), or (?:…)")
		return
	}
	p.at += end + 1
}

// setModes reads letters up to : or ). It reports whether they are for the rest of the group around them.
func (p *parser) setModes(at int) bool {
	on := true
	for p.err == nil {
		switch c := p.next(); c {
		case 'i':
			p.modes.ignoreCase = on
		case 's':
			p.modes.dotAll = on
		case 'u': // patterns are of characters anyway
		case '-':
			on = false
		case ':':
			return false
		case ')':
			return true
		case 'm':
			p.fail(at, "^ and $ at line ends, (?m), cannot be held: write the line ends out")
		default:
			p.fail(at, "this kind of group is not known here: (…), (?:…), (?<name>…), (?=…), (?!…), (?i) and (?s) are")
		}
	}
	return false
}
