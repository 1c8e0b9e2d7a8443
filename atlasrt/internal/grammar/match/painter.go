package match

import (
	"math/bits"
	"slices"
)

// painter makes masks of near tokens and lists of far ones. Between two of them it is clear.
type painter struct {
	vocabulary *Vocabulary
	work       *work
	bits       []uint32
	few        []int32 // that are set in bits, while they are few
	many       bool    // they are not
	live       []live
}

// live is a byte that may come, and the node behind it.
type live struct {
	byte byte
	node *node
}

// Numbers by which a way to make a mask is chosen.
const (
	manyLive   = 10 // bytes that may come, from which on runs of characters are looked for
	manyTokens = 64 // tokens of a branch, from which on it is asked whether all may come
)

func newPainter(v *Vocabulary) *painter {
	return &painter{vocabulary: v, bits: make([]uint32, v.Words()), few: make([]int32, 0, max(v.Words()/4, 16))}
}

// clear makes the painter ready for another mask.
func (p *painter) clear() {
	if p.many {
		clear(p.bits)
	}
	for _, id := range p.few {
		p.bits[id/32] = 0
	}
	p.few, p.many = p.few[:0], false
}

// near is the mask of the near tokens of a node. Nodes that differ in what is far away share it. It is nil where the work is over its limits.
func (p *painter) near(n *node) *mask {
	short := n.shorten(p.work)
	if short == nil {
		return nil
	}
	made := short.near.Load()
	if made == nil {
		p.paint(n)
		if p.work.err != nil {
			return nil
		}
		made = p.made()
		p.clear()
		short.near.Store(made)
		n.tables.note(64 + 4*(len(made.few)+len(made.many)))
	}
	n.near.Store(made)
	return made
}

// made is what was painted. Where a single token is left of many, or came twice, it is a list of that one: State.Only asks for its length.
func (p *painter) made() *mask {
	if !p.many {
		slices.Sort(p.few)
		p.few = slices.Compact(p.few)
		return &mask{few: slices.Clone(p.few)}
	}
	set, last := 0, 0
	for at, word := range p.bits {
		if word != 0 {
			set, last = set+bits.OnesCount32(word), at
		}
		if set > 1 {
			return &mask{many: slices.Clone(p.bits)}
		}
	}
	if set == 0 {
		return &mask{}
	}
	return &mask{few: []int32{int32(32*last + bits.TrailingZeros32(p.bits[last]))}}
}

// paint adds the near tokens of a node.
func (p *painter) paint(n *node) {
	// A node that is known to stay is painted as such: others are, by what differs from it.
	if !n.isStill() && (p.parts(n) || p.trimmedNear(n)) || !p.look(n) {
		return
	}
	v := p.vocabulary
	var free run
	stops := false // what is longer than the run may not come
	if len(p.live) >= manyLive {
		if p.stays(n) || p.resembles(n) {
			return
		}
		if free = n.run(p.work); free.length > 0 {
			p.add(v.wholeOf(free.kinds, free.length))
			stops = free.length >= nearBytes || n.stops(free, p.work)
		}
	}
	for _, l := range p.live {
		for _, f := range v.firsts[l.byte] {
			left := 0
			if f.group.kinds&^free.kinds == 0 {
				if stops {
					continue
				}
				left = free.length
			}
			p.branch(f.group, f.branch, l.node, left)
		}
	}
}

// look finds the bytes that may come at a node. It is false where there are none.
func (p *painter) look(n *node) bool {
	p.live = p.live[:0]
	if len(n.at) == 0 {
		return false
	}
	for b := range 256 {
		next := n.step(byte(b), p.work)
		if next == nil {
			return false
		}
		if next != n.tables.dead {
			p.live = append(p.live, live{byte(b), next})
		}
	}
	return len(p.live) > 0
}

// stays adds the tokens of a node that does the same behind every character of some kinds. It is false where there are no such kinds.
// All tokens of these kinds may come then; the others may where their tails may.
func (p *painter) stays(n *node) bool {
	for at := range tailKinds {
		if n.stays(at, p.work) {
			t := &p.vocabulary.tails[at]
			p.add(t.whole)
			for _, l := range p.live {
				if at := t.root[l.byte]; at != 0 {
					p.branch(t.trie, at, l.node, 0)
				}
			}
			return true
		}
	}
	return false
}

// resembles adds the tokens of a node that most characters lead to one that stays, as in a key that must be none of some names: all but a few branches
// are as they are there. It is false where it is another node.
func (p *painter) resembles(n *node) bool {
	like := p.mostly(n)
	if like == nil {
		return false
	}
	if base := p.like(like); base == nil || base.many == nil {
		if p.work.err == nil {
			p.clear()
		}
		return false
	}
	first, end := p.vocabulary.near.children(0)
	for at := first; at < end && p.work.err == nil; at++ {
		p.differ(at, n, like)
	}
	return true
}

// mostly is the node that most live characters lead to, where that stays; nil: there is none.
func (p *painter) mostly(n *node) *node {
	var like *node
	same := 0
	for _, l := range p.live {
		if l.byte >= 0x80 {
			break
		}
		switch {
		case same == 0:
			like, same = l.node, 1
		case l.node == like:
			same++
		default:
			same--
		}
	}
	if same == 0 || like == n || !like.staysSomehow(p.work) {
		return nil
	}
	return like
}

// differ corrects a branch in which the tokens are those of like, so that they become those of n: before the branch's byte.
func (p *painter) differ(at uint32, n, like *node) {
	t := p.vocabulary.near
	if !p.work.spend(1) {
		return
	}
	b := t.nodes[at].byte
	n, like = n.step(b, p.work), like.step(b, p.work)
	if n == nil || like == nil || n == like {
		return
	}
	switch dead := n.tables.dead; {
	case n == dead:
		p.remove(t.below(at))
		return
	case like == dead:
		p.branch(t, at, n, 0)
		return
	}
	if s, l := n.shorten(p.work), like.shorten(p.work); s == nil || l == nil || s == l {
		return
	}
	first, end := t.children(at)
	for child := first; child < end; child++ {
		p.differ(child, n, like)
	}
}

// branch adds the tokens of a branch whose first byte leads to n. Those with at most left characters from this byte on are there.
func (p *painter) branch(t *trie, at uint32, n *node, left int) {
	b := &t.nodes[at]
	if left > 0 {
		if beginsRune(b.byte) {
			left--
		}
		if int(b.runes) <= left {
			return
		}
	}
	if left == 0 && t.kinds&^noText != 0 && b.end-b.tokens >= manyTokens && n.run(p.work).covers(b.kinds, int(b.runes)) {
		p.tokens(t.below(at))
		return
	}
	p.tokens(t.here(at))
	if !p.work.spend(int(b.count)) {
		return
	}
	dead := n.tables.dead
	first, end := t.children(at)
	for child := first; child < end; child++ {
		next := n.step(t.nodes[child].byte, p.work)
		if next == nil {
			return
		}
		if next != dead {
			p.branch(t, child, next, left)
		}
	}
}

// far is the far tokens of a node. It is nil where the work is over its limits.
func (p *painter) far(n *node) *[]int32 {
	if known := n.far.Load(); known != nil {
		return known
	}
	far, ok := p.farParts(n)
	if !ok && p.work.err == nil {
		p.few = p.few[:0]
		p.reachAll(n)
		far = slices.Clone(p.few)
	}
	if p.work.err != nil {
		return nil
	}
	p.clear()
	n.far.Store(&far)
	n.tables.note(32 + 4*len(far))
	return &far
}

// reachAll adds the far tokens of a node, byte by byte.
func (p *painter) reachAll(n *node) {
	var free run
	if p.look(n) && len(p.live) >= manyLive {
		free = n.run(p.work)
	}
	for _, g := range p.vocabulary.far {
		left := 0
		if g.kinds&^free.kinds == 0 {
			left = free.length
		}
		for _, l := range p.live {
			if at := g.root[l.byte]; at != 0 {
				p.reach(g, at, l.node, left)
			}
		}
	}
}

// reach adds the far tokens of a branch whose first byte leads to n. Those with at most left characters from this byte on may come.
func (p *painter) reach(t *trie, at uint32, n *node, left int) {
	b := &t.nodes[at]
	if left > 0 {
		if beginsRune(b.byte) {
			left--
		}
		if int(b.runes) <= left {
			p.few = append(p.few, t.below(at)...)
			return
		}
	}
	p.few = append(p.few, t.here(at)...)
	first, end := t.children(at)
	for child := first; child < end && p.work.spend(1); child++ {
		if next := n.step(t.nodes[child].byte, p.work); next != nil && next != n.tables.dead {
			p.reach(t, child, next, left)
		}
	}
}

// add adds the tokens of a mask.
func (p *painter) add(tokens []uint32) {
	if !p.many && len(p.few) == 0 {
		copy(p.bits, tokens)
	} else {
		for at, word := range tokens {
			p.bits[at] |= word
		}
	}
	p.many = true
}

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

// remove takes some tokens out, where there are many.
func (p *painter) remove(tokens []int32) {
	for _, id := range tokens {
		p.bits[id/32] &^= 1 << (id % 32)
	}
}
