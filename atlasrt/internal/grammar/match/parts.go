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

// parts adds the near tokens of a node that has parts. It is false for others.
func (p *painter) parts(n *node) bool {
	parts := n.split(p.work)
	first := true // of those that are no words: what is less there is added by others
	for i := range parts {
		if part := &parts[i]; part.node != nil {
			if !first || !p.trimmedNear(part.node) {
				p.like(part.node)
			}
			first = false
		}
	}
	for i := range parts {
		if part := &parts[i]; part.node == nil {
			p.spell(part, p.vocabulary.near, n.tables)
		}
	}
	return parts != nil
}

// like adds the near tokens of another node.
func (p *painter) like(n *node) *mask {
	other := p.vocabulary.painters.Get().(*painter)
	other.work = p.work
	made := other.near(n)
	other.clear()
	p.vocabulary.painters.Put(other)
	switch {
	case made == nil:
	case made.many != nil:
		p.add(made.many)
	default:
		p.tokens(made.few)
	}
	return made
}

// spell adds the tokens that a word begins with, and those that go on behind it.
func (p *painter) spell(word *part, t *trie, in *tables) {
	at := uint32(0)
	for i := range len(word.word) {
		if at = t.child(at, word.word[i]); at == 0 || !p.work.spend(1) {
			return
		}
		if i < len(word.word)-1 {
			p.tokens(t.here(at))
		}
	}
	behind := word.behind(in, p.work)
	if behind == nil || behind == in.dead {
		return
	}
	p.tokens(t.here(at))
	first, end := t.children(at)
	for child := first; child < end; child++ {
		next := behind.step(t.nodes[child].byte, p.work)
		if next == nil {
			return
		}
		if next != in.dead {
			p.branch(t, child, next, 0)
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
func (p *painter) trimmed(n *node) (like *node, less *trim) {
	if len(n.at) != 1 || len(n.at[0].lexer.open) != 1 || n.at[0].row == n.tables.alone {
		return nil, nil
	}
	t, at := n.tables, n.at[0]
	less = p.trim(t, at.lexer)
	if less == nil || less.like == nil {
		return nil, nil
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.node([]position{{at.row, less.like}}, false, p.work), less
}

// trimmedNear adds the near tokens of a node that is trimmed. It is false for others.
func (p *painter) trimmedNear(n *node) bool {
	like, less := p.trimmed(n)
	if like == nil || !like.staysSomehow(p.work) {
		return false
	}
	if made := p.like(like); made == nil || made.many == nil {
		if p.work.err == nil {
			p.clear()
		}
		return false
	}
	p.remove(less.near)
	return true
}

// trim is how a lexer is trimmed. It is nil where the work is over its limits.
func (p *painter) trim(t *tables, l *lexer) *trim {
	t.lock.Lock()
	known := l.trim
	n := t.node([]position{{t.alone, l}}, false, p.work)
	t.lock.Unlock()
	if known != nil || n == nil {
		return known
	}
	made := &trim{}
	if p.look(n) && len(p.live) >= manyLive {
		if like := p.mostly(n); like != nil && len(like.at) == 1 && !like.accepts && like.shorten(p.work) != n.shorten(p.work) {
			near, ok := p.less(p.vocabulary.near, n, like)
			var far []int32
			for _, g := range p.vocabulary.far {
				less, same := p.less(g, n, like)
				far, ok = append(far, less...), ok && same
			}
			if ok {
				made.like, made.near, made.far = like.at[0].lexer, near, slices.Clip(far)
			}
		}
	}
	if p.work.err != nil {
		return nil
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	l.trim = made
	t.bytes += 64 + 4*(len(made.near)+len(made.far))
	return made
}

// less are the tokens of like that are none of n; false: they differ otherwise. Both are alone: where one accepts, tokens may go on.
func (p *painter) less(t *trie, n, like *node) (less []int32, ok bool) {
	var differ func(at uint32, n, like *node) bool
	differ = func(at uint32, n, like *node) bool {
		first, end := t.children(at)
		for child := first; child < end; child++ {
			b := t.nodes[child].byte
			n, like := n.step(b, p.work), like.step(b, p.work)
			switch {
			case n == nil || like == nil || !p.work.spend(1):
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
			if t == p.vocabulary.near {
				s, l := n.shorten(p.work), like.shorten(p.work)
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

// farParts are the far tokens of a node that has parts or is trimmed. It is false for others.
func (p *painter) farParts(n *node) (far []int32, ok bool) {
	parts := n.split(p.work)
	for i := range parts {
		if node := parts[i].node; node != nil {
			more := p.far(node)
			if more == nil {
				return nil, false
			}
			far = append(far, *more...)
		}
	}
	for i := range parts {
		for _, g := range p.vocabulary.far {
			if parts[i].node == nil {
				p.spellFar(&parts[i], g, n.tables)
			}
		}
	}
	if parts != nil {
		far = append(far, p.few...)
		slices.Sort(far)
		return slices.Compact(far), true
	}
	like, less := p.trimmed(n)
	if like == nil {
		return nil, false
	}
	base := p.far(like)
	if base == nil {
		return nil, false
	}
	return slices.DeleteFunc(slices.Clone(*base), func(id int32) bool { return slices.Contains(less.far, id) }), true
}

// spellFar is spell for far tokens.
func (p *painter) spellFar(word *part, t *trie, in *tables) {
	at := uint32(0)
	for i := range len(word.word) {
		if at = t.child(at, word.word[i]); at == 0 || !p.work.spend(1) {
			return
		}
		if i < len(word.word)-1 {
			p.few = append(p.few, t.here(at)...)
		}
	}
	behind := word.behind(in, p.work)
	if behind == nil || behind == in.dead {
		return
	}
	p.few = append(p.few, t.here(at)...)
	first, end := t.children(at)
	for child := first; child < end; child++ {
		if next := behind.step(t.nodes[child].byte, p.work); next != nil && next != in.dead {
			p.reach(t, child, next, 0)
		}
	}
}
