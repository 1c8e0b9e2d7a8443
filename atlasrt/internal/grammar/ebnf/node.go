package ebnf

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
)

// node is a part of what a rule says.
type node struct {
	kind     nodeKind
	regex    regex.Ref // of a plain text
	name     string    // of the rule that is referred to
	at       int       // where it stands in the text
	parts    []*node
	min, max int // of a repetition
	depth    int // of nodes below
	known    bool
	size     int // of the regex that all of it is, once known; more than mostNodes where there is none
}

type nodeKind uint8

const (
	plain    nodeKind = iota // a text
	refer                    // what a rule says
	sequence                 // parts, one behind the other
	either                   // one of the parts
	repeat                   // the only part, from min to max times
	except                   // what the first part matches and the second does not
)

// join is a node over parts; a sequence or a choice of one is that one.
func (s *scanner) join(kind nodeKind, at int, parts ...*node) *node {
	if (kind == sequence || kind == either) && len(parts) == 1 {
		return parts[0]
	}
	n := &node{kind: kind, at: at, parts: parts, regex: regex.Empty}
	for _, p := range parts {
		n.depth = max(n.depth, p.depth+1)
	}
	if n.depth > 2*deepest {
		s.fail(at, "what is repeated nests more than %d deep", deepest)
	}
	return n
}

// repeated is a part that is repeated.
func (s *scanner) repeated(part *node, least, most int) *node {
	n := s.join(repeat, part.at, part)
	n.min, n.max = least, most
	return n
}

// rule is a rule of a grammar.
type rule struct {
	name     string
	at       int // where it is defined
	body     *node
	terminal bool // must not be recursive, and nothing that is ignored stands within

	waits  int     // references in the body to rules of which it is not known whether they are recursive
	users  []*rule // rules that refer to this one, once for each time
	whole  bool    // without recursion: regex is all of it
	regex  regex.Ref
	size   int          // of regex, with what it refers to
	symbol rules.Symbol // of what is no regex
}

// book is a whole grammar.
type book struct {
	*scanner
	b       *rules.Builder
	rules   []*rule
	named   map[string]*rule
	ignored rules.Symbol // may stand behind each terminal; Empty where nothing may
}

func newBook(b *rules.Builder, text string) *book {
	return &book{scanner: &scanner{text: text}, b: b, named: map[string]*rule{}, ignored: rules.Empty}
}

// define adds a rule, or refuses a second one of its name.
func (g *book) define(r *rule) {
	if first := g.named[r.name]; first != nil {
		line, _ := place(g.text, first.at)
		g.fail(r.at, "%q is defined twice, first in line %d", r.name, line)
	}
	g.named[r.name] = r
	g.rules = append(g.rules, r)
}

// finish adds all rules to the builder and gives the symbol of one.
func (g *book) finish(start string) rules.Symbol {
	first := g.named[start]
	if first == nil {
		g.fail(len(g.text), "no rule is named %q, which is where the grammar begins (add %s)", start, start)
	}
	for _, r := range g.rules {
		g.count(r, r.body)
	}
	g.fold()
	for _, r := range g.rules {
		if r.terminal && !r.whole {
			g.fail(r.at, "terminal %q refers to itself or is too large (make it a rule, in small letters)", r.name)
		}
	}
	for _, r := range g.rules {
		if !r.whole {
			r.symbol = g.b.Declare(r.name)
		}
	}
	for _, r := range g.rules {
		if !r.whole {
			g.b.Define(r.symbol, g.lower(r.body))
		}
	}
	return g.b.Sequence(g.ignored, g.refer(first))
}

// count notes who refers to whom.
func (g *book) count(r *rule, n *node) {
	if n.kind == refer {
		used := g.named[n.name]
		if used == nil {
			g.fail(n.at, "%q is not defined", n.name)
		}
		if r.terminal && !used.terminal {
			g.fail(n.at, "terminal %q refers to the rule %q: terminals may refer to terminals alone", r.name, n.name)
		}
		used.users = append(used.users, r)
		r.waits++
	}
	for _, p := range n.parts {
		g.count(r, p)
	}
}

// fold makes one regular expression of each rule that is not recursive, so that fewer terminals and rules remain. Those that are recursive
// wait for ever.
func (g *book) fold() {
	var ready []*rule
	for _, r := range g.rules {
		if r.waits == 0 {
			ready = append(ready, r)
		}
	}
	for len(ready) > 0 {
		r := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		if !r.terminal && g.ignored != rules.Empty {
			continue
		}
		if r.regex, r.size = g.regular(r.body); r.size > mostNodes {
			continue
		}
		r.whole = true
		for _, user := range r.users {
			if user.waits--; user.waits == 0 {
				ready = append(ready, user)
			}
		}
	}
}

// regular is the expression of a node. Where it has none its size is more than mostNodes.
func (g *book) regular(n *node) (r regex.Ref, size int) {
	if !n.known {
		n.known = true
		n.regex, n.size = g.expression(n)
	}
	return n.regex, n.size
}

func (g *book) expression(n *node) (r regex.Ref, size int) {
	const none = mostNodes + 1
	switch n.kind {
	case plain:
		return n.regex, 1
	case refer:
		used := g.named[n.name]
		if !used.whole {
			return regex.Nothing, none
		}
		return used.regex, used.size
	}
	parts := make([]regex.Ref, len(n.parts))
	for i, p := range n.parts {
		var more int
		if parts[i], more = g.regular(p); size+more >= mostNodes {
			return regex.Nothing, none
		}
		size += more
	}
	switch set := g.b.Regexes; n.kind {
	case sequence:
		r = set.Concat(parts...)
	case either:
		r = set.Or(parts...)
	case repeat:
		r = set.Repeat(parts[0], n.min, n.max)
	case except:
		r = set.And(parts[0], set.Not(parts[1]))
	}
	return r, size + 1
}
