package match

import "slices"

// trim says that the tokens of a lexer are those of another one that is mostly met, less some, whatever row they are in: a key that must be none of
// some names is as any key, less the tokens that end such a name.
type trim struct {
	like      *lexer // nil: there is none
	near, far []int32
}

// trimmed is the node whose tokens are those of n but for some; nil: there is none.
func (m *masker) trimmed(n *node) (like *node, less *trim) {
	if len(n.at) != 1 || len(n.at[0].lexer.open) != 1 || n.at[0].row == n.tables.alone {
		return nil, nil
	}
	t, at := n.tables, n.at[0]
	less = m.trimOf(t, at.lexer)
	if less == nil || less.like == nil {
		return nil, nil
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.node([]position{{at.row, less.like}}, false, m.work), less
}

// addTrimmed adds the near tokens of a node that is trimmed. It is false for others.
func (m *masker) addTrimmed(n *node) bool {
	like, less := m.trimmed(n)
	if like == nil || !like.staysSomehow(m.work) {
		return false
	}
	if made := m.addNode(like); made == nil || made.many == nil {
		if m.work.err == nil {
			m.clear()
		}
		return false
	}
	m.removeTokens(less.near)
	return true
}

// trimOf is how a lexer is trimmed. It is nil where the work is over its limits.
func (m *masker) trimOf(t *tables, l *lexer) *trim {
	t.lock.Lock()
	known := l.trim
	n := t.node([]position{{t.alone, l}}, false, m.work)
	t.lock.Unlock()
	if known != nil || n == nil {
		return known
	}
	made := &trim{}
	if m.findLive(n) && len(m.live) >= manyLive {
		if like := m.majority(n); like != nil && len(like.at) == 1 && !like.accepts && like.shorten(m.work) != n.shorten(m.work) {
			near, ok := m.missing(m.vocabulary.near, n, like)
			var far []int32
			for _, g := range m.vocabulary.far {
				less, same := m.missing(g, n, like)
				far, ok = append(far, less...), ok && same
			}
			if ok {
				made.like, made.near, made.far = like.at[0].lexer, near, slices.Clip(far)
			}
		}
	}
	if m.work.err != nil {
		return nil
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	l.trim = made
	t.bytes += 64 + 4*(len(made.near)+len(made.far))
	return made
}

// missing are the tokens of like that are none of n; false: they differ otherwise. Both are alone: where one accepts, tokens may go on.
func (m *masker) missing(t *trie, n, like *node) (less []int32, ok bool) {
	var differ func(at uint32, n, like *node) bool
	differ = func(at uint32, n, like *node) bool {
		first, end := t.children(at)
		for child := first; child < end; child++ {
			b := t.nodes[child].byte
			n, like := n.step(b, m.work), like.step(b, m.work)
			switch {
			case n == nil || like == nil || !m.work.spend(1):
				return false
			case n == like:
				continue
			case like == like.tables.dead || n.accepts || like.accepts:
				return false
			case n == n.tables.dead:
				less = append(less, t.below(child)...)
				continue
			}
			same := false
			if t == m.vocabulary.near {
				s, l := n.shorten(m.work), like.shorten(m.work)
				same = s == l && s != nil
			}
			if !same && !differ(child, n, like) {
				return false
			}
		}
		return true
	}
	ok = differ(0, n, like)
	return slices.Clip(less), ok
}
