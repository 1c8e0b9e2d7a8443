package match

import "slices"

// part is a terminal of a node that may go on, for itself. What may come at a node is what may come in some part.
type part struct {
	row      *row
	terminal int32
	word     string // the one text that is left of it
	node     *node  // with that terminal alone; nil where there is a word
}

// fewPositions is how many positions a node with parts has at most: in ambiguous texts there are many, which are gone through faster together.
const fewPositions = 2

// split are the parts of a node that has several, some of them words: as before a key. It is nil for others.
func (n *node) split(w *work) []part {
	if len(n.at) > fewPositions {
		return nil
	}
	t := n.tables
	t.lock.Lock()
	defer t.lock.Unlock()
	var parts []part
	words := 0
	for _, at := range n.at {
		for _, o := range at.lexer.open {
			p := part{row: at.row, terminal: o.terminal}
			if word, is := t.regexes.Word(o.rest); is {
				p.word = word
				words++
			}
			parts = append(parts, p)
		}
	}
	if words == 0 || len(parts) < 2 || !w.spend(len(parts)) {
		return nil
	}
	i := 0
	for _, at := range n.at {
		for _, o := range at.lexer.open {
			if parts[i].word == "" {
				parts[i].node = t.node([]position{{at.row, t.lexer([]open{o})}}, false, w)
			}
			i++
		}
	}
	if w.err != nil {
		return nil
	}
	return parts
}

// behind is the node behind the part's terminal: the dead one where nothing may come there, and nil where the work is over its limits.
func (p *part) behind(t *tables, w *work) *node {
	t.lock.Lock()
	defer t.lock.Unlock()
	next := t.follow(p.row, p.terminal, w)
	if w.err != nil {
		return nil
	}
	if next == nil {
		return t.dead
	}
	var at []position
	if len(next.lexer.open) > 0 {
		at = append(at, position{next, next.lexer})
	}
	return t.node(at, next.accepts, w)
}

// addParts adds the near tokens of a node that has parts. It is false for others.
func (m *masker) addParts(n *node) bool {
	parts := n.split(m.work)
	first := true // of those that are no words: what is less there is added by others
	for i := range parts {
		if part := &parts[i]; part.node != nil {
			if !first || !m.addTrimmed(part.node) {
				m.addNode(part.node)
			}
			first = false
		}
	}
	for i := range parts {
		if part := &parts[i]; part.node == nil {
			m.spell(part, m.vocabulary.near, n.tables, m.addTokens, m.addBranch)
		}
	}
	return parts != nil
}

// addNode adds the near tokens of another node.
func (m *masker) addNode(n *node) *mask {
	other := m.vocabulary.maskers.Get().(*masker)
	other.work = m.work
	made := other.nearMask(n)
	other.clear()
	m.vocabulary.maskers.Put(other)
	switch {
	case made == nil:
	case made.many != nil:
		m.addMask(made.many)
	default:
		m.addTokens(made.few)
	}
	return made
}

// spell adds the tokens of a trie that a word begins with, and those that go on behind it: to add those that end at a node, and walk the branches
// that go on.
func (m *masker) spell(word *part, t *trie, in *tables, add func(tokens []int32), walk func(t *trie, at uint32, n *node, left int)) {
	at := uint32(0)
	for i := range len(word.word) {
		if at = t.child(at, word.word[i]); at == 0 || !m.work.spend(1) {
			return
		}
		if i < len(word.word)-1 {
			add(t.here(at))
		}
	}
	behind := word.behind(in, m.work)
	if behind == nil || behind == in.dead {
		return
	}
	add(t.here(at))
	first, end := t.children(at)
	for child := first; child < end; child++ {
		next := behind.step(t.nodes[child].byte, m.work)
		if next == nil {
			return
		}
		if next != in.dead {
			walk(t, child, next, 0)
		}
	}
}

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

// listParts are the far tokens of a node that has parts or is trimmed. It is false for others.
func (m *masker) listParts(n *node) (far []int32, ok bool) {
	parts := n.split(m.work)
	for i := range parts {
		if node := parts[i].node; node != nil {
			more := m.farTokens(node)
			if more == nil {
				return nil, false
			}
			far = append(far, *more...)
		}
	}
	for i := range parts {
		for _, g := range m.vocabulary.far {
			if parts[i].node == nil {
				m.spell(&parts[i], g, n.tables, m.list, m.listBranch)
			}
		}
	}
	if parts != nil {
		far = append(far, m.few...)
		slices.Sort(far)
		return slices.Compact(far), true
	}
	like, less := m.trimmed(n)
	if like == nil {
		return nil, false
	}
	base := m.farTokens(like)
	if base == nil {
		return nil, false
	}
	return slices.DeleteFunc(slices.Clone(*base), func(id int32) bool { return slices.Contains(less.far, id) }), true
}
