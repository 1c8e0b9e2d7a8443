package match

import "sync"

// mask is the tokens that may come at a node: a list where they are few.
type mask struct {
	few  []int32
	many []uint32 // nil: few has them all
}

// fewTokens is how long a list may be for a vocabulary's mask.
func (v *Vocabulary) fewTokens() int { return max(v.Words()/4, 16) }

// Mask sets the bits of to, Words long, that are tokens which may come; it clears the others. Whether the text may end is Done's to say. An error says
// that the limits do not allow so much work; other texts of the grammar go on.
func (s State) Mask(to []uint32) error {
	if s.node == nil {
		clear(to)
		return nil
	}
	m, err := s.machine.mask(s.node)
	if err != nil {
		return err
	}
	if m.many != nil {
		copy(to, m.many)
		return nil
	}
	clear(to)
	for _, id := range m.few {
		to[id/32] |= 1 << (id % 32)
	}
	return nil
}

// mask is a node's mask, which is made once.
func (m *Machine) mask(n *node) (*mask, error) {
	if known := n.mask.Load(); known != nil {
		return known, nil
	}
	v := m.vocabulary
	p := v.painters.Get().(*painter)
	defer v.painters.Put(p)
	p.work = *m.work()
	if n = m.fresh(n, &p.work); n == nil {
		return nil, p.work.err
	}
	if short := n.shorten(v.reach, &p.work); short == n {
		p.node(n)
	} else if short != nil {
		return m.mask(short)
	}
	if p.work.err != nil {
		p.bits, p.few, p.many = make([]uint32, v.Words()), p.few[:0], false
		return nil, p.work.err
	}
	made := p.finish()
	n.mask.Store(made)
	n.tables.note(4 * (len(made.few) + len(made.many)))
	return made, nil
}

// painter makes a mask. Between two masks its bits are clear.
type painter struct {
	vocabulary *Vocabulary
	bits       []uint32
	few        []int32 // that are set, while they are few
	many       bool    // they are not
	work       work
	live       []live
}

// live is a byte that may come, and the node behind it.
type live struct {
	byte byte
	node *node
}

// newPainters makes a pool of painters.
func newPainters(v *Vocabulary) *sync.Pool {
	return &sync.Pool{New: func() any {
		return &painter{vocabulary: v, bits: make([]uint32, v.Words()), few: make([]int32, 0, v.fewTokens())}
	}}
}

// finish is the mask that was made. It clears the painter.
func (p *painter) finish() *mask {
	made := &mask{}
	if p.many {
		made.many = p.bits
		p.bits = make([]uint32, len(made.many))
		p.many = false
	} else {
		made.few = append(made.few, p.few...)
		for _, id := range p.few {
			p.bits[id/32] = 0
		}
	}
	p.few = p.few[:0]
	return made
}

// node adds the tokens that may come at a node.
func (p *painter) node(n *node) {
	if len(n.at) == 0 {
		return
	}
	p.lead(n, 0)
	if behind := n.step(' ', &p.work); behind != nil && behind != n.tables.dead {
		p.lead(behind, 1)
	}
}

// manyLive is a number of bytes that may come from which on a run of characters is looked for.
const manyLive = 10

// lead adds the tokens that have a lead, behind which n is.
func (p *painter) lead(n *node, lead int) {
	p.live = p.live[:0]
	for b := range 256 {
		next := n.step(byte(b), &p.work)
		if next == nil {
			return
		}
		if next != n.tables.dead {
			p.live = append(p.live, live{byte(b), next})
		}
	}
	groups := &p.vocabulary.groups[lead]
	run := 0
	for alphabet := range groups {
		g := &groups[alphabet]
		if alphabet != bytesAlphabet && len(p.live) >= manyLive {
			longer := n.run(alphabet, &p.work)
			if longer >= g.runes {
				p.add(g.whole)
				return
			}
			if longer = min(longer, shortRunes); longer > run {
				run = longer
				p.add(g.short[run])
			}
		}
		for _, l := range p.live {
			if at := g.root[l.byte]; at != 0 {
				p.branch(g, alphabet, at, l.node, run)
			}
		}
		if p.work.err != nil {
			return
		}
	}
}

// add adds the tokens of a mask.
func (p *painter) add(tokens []uint32) {
	p.many = true
	for at, word := range tokens {
		p.bits[at] |= word
	}
}

// branch adds the tokens of a branch whose first byte leads to n. Those that have at most run characters from this byte on are there.
func (p *painter) branch(g *group, alphabet int, at uint32, n *node, run int) {
	b := &g.nodes[at]
	if int(b.runes) <= run && run > 0 {
		return
	}
	if b.count == 0 {
		p.tokens(g.tokens[b.tokens:b.end])
		return
	}
	below := int(b.runes)
	if beginsRune(b.byte) {
		run, below = max(run-1, 0), below-1
	}
	dead := n.tables.dead
	children := g.nodes[b.children : b.children+uint32(b.count)]
	if run == 0 && b.end-b.tokens >= manyTokens && alphabet != bytesAlphabet && n.run(alphabet, &p.work) >= below {
		p.tokens(g.tokens[b.tokens:b.end])
		return
	}
	p.tokens(g.tokens[b.tokens:children[0].tokens])
	if !p.work.spend(len(children)) {
		return
	}
	for i := range children {
		next := n.step(children[i].byte, &p.work)
		if next == nil {
			return
		}
		if next != dead {
			p.branch(g, alphabet, b.children+uint32(i), next, run)
		}
	}
}

// manyTokens is a number of tokens in a branch from which on it is worthwhile to ask whether all may come.
const manyTokens = 16

// tokens adds some tokens.
func (p *painter) tokens(tokens []int32) {
	for _, id := range tokens {
		p.bits[id/32] |= 1 << (id % 32)
	}
	if !p.many {
		if len(p.few)+len(tokens) > cap(p.few) {
			p.many = true
		} else {
			p.few = append(p.few, tokens...)
		}
	}
}
