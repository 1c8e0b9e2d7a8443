package match

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
