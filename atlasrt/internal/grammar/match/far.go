package match

import "slices"

// farTokens is the far tokens of a node. It is nil where the work is over its limits.
func (m *masker) farTokens(n *node) *[]int32 {
	if known := n.far.Load(); known != nil {
		return known
	}
	far, ok := m.listParts(n)
	if !ok && m.work.err == nil {
		m.few = m.few[:0]
		m.listFar(n)
		far = slices.Clone(m.few)
	}
	if m.work.err != nil {
		return nil
	}
	m.clear()
	n.far.Store(&far)
	n.tables.note(32 + 4*len(far))
	return &far
}

// listFar adds the far tokens of a node, byte by byte.
func (m *masker) listFar(n *node) {
	var free run
	if m.findLive(n) && len(m.live) >= manyLive {
		free = n.run(m.work)
	}
	for _, g := range m.vocabulary.far {
		left := 0
		if g.kinds&^free.kinds == 0 {
			left = free.length
		}
		for _, l := range m.live {
			if at := g.root[l.byte]; at != 0 {
				m.listBranch(g, at, l.node, left)
			}
		}
	}
}

// listBranch adds the far tokens of a branch whose first byte leads to n. Those with at most left characters from this byte on may come.
func (m *masker) listBranch(t *trie, at uint32, n *node, left int) {
	b := &t.nodes[at]
	if left > 0 {
		if beginsRune(b.byte) {
			left--
		}
		if int(b.runes) <= left {
			m.list(t.below(at))
			return
		}
	}
	m.list(t.here(at))
	first, end := t.children(at)
	for child := first; child < end && m.work.spend(1); child++ {
		if next := n.step(t.nodes[child].byte, m.work); next != nil && next != n.tables.dead {
			m.listBranch(t, child, next, left)
		}
	}
}

// list adds some far tokens.
func (m *masker) list(tokens []int32) { m.few = append(m.few, tokens...) }

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
