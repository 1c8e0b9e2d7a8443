package ebnf

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
)

// lower makes a symbol of a node. What lies together and is not recursive becomes one terminal, unless something may stand between.
func (g *book) lower(n *node) rules.Symbol {
	if r, ok := g.terminal(n); ok {
		return g.match(r)
	}
	switch n.kind {
	case refer:
		return g.refer(g.named[n.name])
	case sequence:
		var parts []rules.Symbol
		var run []regex.Ref
		end := func() {
			if len(run) > 0 {
				parts = append(parts, g.match(g.b.Regexes.Concat(run...)))
			}
			run = run[:0]
		}
		for _, p := range n.parts {
			if r, ok := g.terminal(p); ok {
				run = append(run, r)
				if g.ignored == rules.Empty {
					continue
				}
				end()
				continue
			}
			end()
			parts = append(parts, g.lower(p))
		}
		end()
		return g.b.Sequence(parts...)
	case either:
		var parts []rules.Symbol
		var matches []regex.Ref
		for _, p := range n.parts {
			if r, ok := g.terminal(p); ok {
				matches = append(matches, r)
			} else {
				parts = append(parts, g.lower(p))
			}
		}
		if len(matches) > 0 {
			parts = append(parts, g.match(g.b.Regexes.Or(matches...)))
		}
		return g.b.Either(parts...)
	case repeat:
		return g.b.Repeat(g.lower(n.parts[0]), rules.Empty, n.min, n.max)
	}
	g.fail(n.at, "what is taken out, and what it is taken out of, must not be recursive")
	return rules.Nothing
}

// terminal is the expression of a node that becomes one terminal; false: the node does not.
func (g *book) terminal(n *node) (r regex.Ref, ok bool) {
	if g.ignored != rules.Empty && n.kind != plain && (n.kind != refer || !g.named[n.name].terminal) {
		return regex.Nothing, false
	}
	r, size := g.regular(n)
	return r, size <= mostNodes
}

// match is a terminal, and what is ignored behind it.
func (g *book) match(r regex.Ref) rules.Symbol {
	if r == regex.Empty {
		return rules.Empty
	}
	return g.b.Sequence(g.b.Match(r), g.ignored)
}

// refer is what a rule says.
func (g *book) refer(r *rule) rules.Symbol {
	if r.whole {
		return g.match(r.regex)
	}
	return r.symbol
}
