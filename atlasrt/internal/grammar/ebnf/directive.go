package ebnf

import (
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
)

// directive reads a line that begins with %.
func (g *lark) directive() {
	from := g.at
	g.at++
	switch word := g.word(""); word {
	case "import":
		g.imports()
	case "ignore":
		g.space()
		g.ignores = append(g.ignores, &rule{at: g.at, terminal: true, body: g.choice(false)})
	case "declare":
		g.fail(from, "%%declare names terminals that a program defines, which is not supported (define them here)")
	default:
		g.fail(from, "%%%.20s is not supported (%%import and %%ignore are)", word)
	}
}

// imports reads %import common.NAME, %import common.NAME -> ALIAS, or %import common (A, B).
func (g *lark) imports() {
	g.blank()
	from := g.at
	library := g.word(".")
	module, name, single := strings.Cut(library, ".")
	if module != "common" {
		g.fail(from, "%%import of %.40q: only lark's library common can be imported", library)
	}
	if single {
		alias := name
		if g.blank(); g.take("->") {
			g.blank()
			alias = g.name()
		}
		g.imported(from, name, alias)
		return
	}
	if g.blank(); !g.take("(") {
		g.unexpected("( or a dot with a name behind it")
	}
	for {
		g.space()
		at := g.at
		g.imported(at, g.name(), g.text[at:g.at])
		if g.space(); g.take(")") {
			return
		}
		if !g.take(",") {
			g.unexpected(", or )")
		}
	}
}

// imported defines a terminal of the library under a name.
func (g *lark) imported(from int, name, alias string) {
	pattern, known := common()[name]
	switch {
	case !known:
		g.fail(from, "lark's library common has no terminal %.40q", name)
	case !isTerminal(alias):
		g.fail(from, "%.40q is no name of a terminal (its first letter must be large)", alias)
	}
	g.define(&rule{name: alias, at: from, terminal: true, body: &node{kind: plain, at: from, regex: g.parse(from, pattern, "")}})
}

// ignore settles what may stand between terminals.
func (g *lark) ignore() {
	if len(g.ignores) == 0 {
		return
	}
	// The terminals that are ignored may be defined behind the directive, so they are only known here.
	seen := map[*rule]bool{}
	var refs []regex.Ref
	for _, r := range g.ignores {
		refs = append(refs, g.settled(r, seen))
	}
	set := g.b.Regexes
	g.ignored = g.b.Match(set.Repeat(set.Or(refs...), 0, rules.Unbounded))
}

// settled is the expression of a terminal, those that it refers to being settled first.
func (g *lark) settled(r *rule, above map[*rule]bool) regex.Ref {
	if r.whole {
		return r.regex
	}
	if above[r] || len(above) > deepest {
		g.fail(r.at, "terminal %q refers to itself, or to others more than %d deep", r.name, deepest)
	}
	above[r] = true
	g.each(r.body, func(n *node) {
		used := g.named[n.name]
		if used == nil || !used.terminal {
			g.fail(n.at, "%q is no terminal that is defined", n.name)
		}
		g.settled(used, above)
	})
	delete(above, r)
	if r.regex, r.size = g.regular(r.body); r.size > mostNodes {
		g.fail(r.at, "what is ignored is too large")
	}
	r.whole = true
	return r.regex
}

// each visits the references of a node.
func (g *lark) each(n *node, visit func(*node)) {
	if n.kind == refer {
		visit(n)
	}
	for _, p := range n.parts {
		g.each(p, visit)
	}
}

// common are the terminals of lark's library, as regular expressions. Source: its documentation. Where the library has the shortest
// match of an expression, what it means is written out.
func common() map[string]string {
	const (
		integer  = `[0-9]+`
		decimal  = `(?:[0-9]+\.[0-9]*|\.[0-9]+)`
		exponent = `[eE][+-]?[0-9]+`
		float    = `(?:[0-9]+` + exponent + `|` + decimal + `(?:` + exponent + `)?)`
		number   = `(?:` + float + `|` + integer + `)`
	)
	return map[string]string{
		"DIGIT": `[0-9]`, "HEXDIGIT": `[0-9a-fA-F]`, "INT": integer, "SIGNED_INT": `[+-]?` + integer, "DECIMAL": decimal, "FLOAT": float,
		"SIGNED_FLOAT": `[+-]?` + float, "NUMBER": number, "SIGNED_NUMBER": `[+-]?` + number,
		"ESCAPED_STRING": `"(?:[^"\\\n]|\\[^\n])*"`,
		"LCASE_LETTER":   `[a-z]`, "UCASE_LETTER": `[A-Z]`, "LETTER": `[a-zA-Z]`, "WORD": `[a-zA-Z]+`, "CNAME": `[a-zA-Z_][a-zA-Z_0-9]*`,
		"WS_INLINE": `[ \t]+`, "WS": `[ \t\f\r\n]+`, "CR": `\r`, "LF": `\n`, "NEWLINE": `(?:\r?\n)+`,
		"SH_COMMENT": `#[^\n]*`, "CPP_COMMENT": `//[^\n]*`, "C_COMMENT": `/\*(?:[^*]|\*+[^*/])*\*+/`, "SQL_COMMENT": `--[^\n]*`,
	}
}
