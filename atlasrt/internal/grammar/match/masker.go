package match

import (
	"math/bits"
	"slices"
)

// A token may come at a node where its bytes, one after the other, lead to a node that is not dead. A walk down the trie of all tokens finds them;
// inside a string, where most may come, it would have to go through most of the trie. So a masker asks, in this order, for less:
//
//   - What does not depend on the node? Far tokens, longer than nearBytes, are few and listed apart, so that nodes which differ only in what is
//     far away have one short node (node.shorten), whose mask of near tokens all of them share.
//   - Is the node several terminals, some of which are single words, as before a key? Then each of them for itself (addParts): words are looked up
//     in the trie, and what is left is a node that often has a mask already.
//   - Is it another node, less a few tokens, as a key that must be none of some names? Then that node's mask less these (addTrimmed).
//   - Does the node stay where it is behind each character of some kinds, as inside a string? Then all tokens of such characters may come,
//     and others by what stands behind such characters in them (addStaying, over Vocabulary.tails).
//   - Do most bytes lead to a node that stays, as in the middle of such a key? Then that node's mask, corrected in the branches whose first bytes
//     lead elsewhere (addResembling).
//   - May a run of characters of some kinds come, up to a number of them? Then the tokens of these kinds with at most so many characters
//     (Vocabulary.wholeOf), and a walk for the others.
//   - Otherwise, a walk (addBranch). It takes a branch as a whole where all characters in it may come.
//
// Each of these asks other nodes, which remember their answers.

// masker makes masks of near tokens and lists of far ones. Between two of them it is clear.
type masker struct {
	vocabulary *Vocabulary
	work       *work
	bits       []uint32
	few        []int32 // that are set in bits, while they are few; of far tokens, all
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

func newMasker(v *Vocabulary) *masker {
	return &masker{vocabulary: v, bits: make([]uint32, v.Words()), few: make([]int32, 0, max(v.Words()/4, 16))}
}

// clear makes the masker ready for another mask.
func (m *masker) clear() {
	if m.many {
		clear(m.bits)
	}
	for _, id := range m.few {
		m.bits[id/32] = 0
	}
	m.few, m.many = m.few[:0], false
}

// nearMask is the mask of the near tokens of a node. Nodes that differ in what is far away share it. It is nil where the work is over its limits.
func (m *masker) nearMask(n *node) *mask {
	short := n.shorten(m.work)
	if short == nil {
		return nil
	}
	made := short.near.Load()
	if made == nil {
		m.addNear(n)
		if m.work.err != nil {
			return nil
		}
		made = m.mask()
		m.clear()
		short.near.Store(made)
		n.tables.note(64 + 4*(len(made.few)+len(made.many)))
	}
	n.near.Store(made)
	return made
}

// mask is what was added. Where a single token is left of many, or came twice, it is a list of that one: State.Only asks for its length.
func (m *masker) mask() *mask {
	if !m.many {
		slices.Sort(m.few)
		m.few = slices.Compact(m.few)
		return &mask{few: slices.Clone(m.few)}
	}
	set, last := 0, 0
	for at, word := range m.bits {
		if word != 0 {
			set, last = set+bits.OnesCount32(word), at
		}
		if set > 1 {
			return &mask{many: slices.Clone(m.bits)}
		}
	}
	if set == 0 {
		return &mask{}
	}
	return &mask{few: []int32{int32(32*last + bits.TrailingZeros32(m.bits[last]))}}
}

// addNear adds the near tokens of a node.
func (m *masker) addNear(n *node) {
	// A node that is known to stay is not looked at for parts: others are made from it.
	if !n.isStill() && (m.addParts(n) || m.addTrimmed(n)) || !m.findLive(n) {
		return
	}
	v := m.vocabulary
	var free run
	stops := false // what is longer than the run may not come
	if len(m.live) >= manyLive {
		if m.addStaying(n) || m.addResembling(n) {
			return
		}
		if free = n.run(m.work); free.length > 0 {
			m.addMask(v.wholeOf(free.kinds, free.length))
			stops = free.length >= nearBytes || n.stops(free, m.work)
		}
	}
	for _, l := range m.live {
		for _, f := range v.firsts[l.byte] {
			left := 0
			if f.group.kinds&^free.kinds == 0 {
				if stops {
					continue
				}
				left = free.length
			}
			m.addBranch(f.group, f.branch, l.node, left)
		}
	}
}

// findLive finds the bytes that may come at a node. It is false where there are none.
func (m *masker) findLive(n *node) bool {
	m.live = m.live[:0]
	if len(n.at) == 0 {
		return false
	}
	for b := range 256 {
		next := n.step(byte(b), m.work)
		if next == nil {
			return false
		}
		if next != n.tables.dead {
			m.live = append(m.live, live{byte(b), next})
		}
	}
	return len(m.live) > 0
}

// addStaying adds the tokens of a node that does the same behind every character of some kinds. It is false where there are no such kinds.
// All tokens of these kinds may come then; the others may where their tails may.
func (m *masker) addStaying(n *node) bool {
	for at := range tailKinds {
		if n.stays(at, m.work) {
			t := &m.vocabulary.tails[at]
			m.addMask(t.whole)
			for _, l := range m.live {
				if at := t.root[l.byte]; at != 0 {
					m.addBranch(t.trie, at, l.node, 0)
				}
			}
			return true
		}
	}
	return false
}

// addResembling adds the tokens of a node that most characters lead to one that stays, as in a key that must be none of some names: all but a
// few branches are as they are there. It is false where it is another node.
func (m *masker) addResembling(n *node) bool {
	like := m.majority(n)
	if like == nil {
		return false
	}
	if base := m.addNode(like); base == nil || base.many == nil {
		if m.work.err == nil {
			m.clear()
		}
		return false
	}
	first, end := m.vocabulary.near.children(0)
	for at := first; at < end && m.work.err == nil; at++ {
		m.correct(at, n, like)
	}
	return true
}

// majority is the node that most live characters lead to, where that stays; nil: there is none.
func (m *masker) majority(n *node) *node {
	var like *node
	same := 0
	for _, l := range m.live {
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
	if same == 0 || like == n || !like.staysSomehow(m.work) {
		return nil
	}
	return like
}

// correct corrects a branch in which the tokens are those of like, so that they become those of n: before the branch's byte.
func (m *masker) correct(at uint32, n, like *node) {
	t := m.vocabulary.near
	if !m.work.spend(1) {
		return
	}
	b := t.nodes[at].byte
	n, like = n.step(b, m.work), like.step(b, m.work)
	if n == nil || like == nil || n == like {
		return
	}
	switch dead := n.tables.dead; {
	case n == dead:
		m.removeTokens(t.below(at))
		return
	case like == dead:
		m.addBranch(t, at, n, 0)
		return
	}
	if s, l := n.shorten(m.work), like.shorten(m.work); s == nil || l == nil || s == l {
		return
	}
	first, end := t.children(at)
	for child := first; child < end; child++ {
		m.correct(child, n, like)
	}
}

// addBranch adds the tokens of a branch whose first byte leads to n. Those with at most left characters from this byte on are there.
func (m *masker) addBranch(t *trie, at uint32, n *node, left int) {
	b := &t.nodes[at]
	if left > 0 {
		if beginsRune(b.byte) {
			left--
		}
		if int(b.runes) <= left {
			return
		}
	}
	if left == 0 && t.kinds&^noText != 0 && b.end-b.tokens >= manyTokens && n.run(m.work).covers(b.kinds, int(b.runes)) {
		m.addTokens(t.below(at))
		return
	}
	m.addTokens(t.here(at))
	if !m.work.spend(int(b.count)) {
		return
	}
	dead := n.tables.dead
	first, end := t.children(at)
	for child := first; child < end; child++ {
		next := n.step(t.nodes[child].byte, m.work)
		if next == nil {
			return
		}
		if next != dead {
			m.addBranch(t, child, next, left)
		}
	}
}

// addMask adds the tokens of a mask.
func (m *masker) addMask(tokens []uint32) {
	if !m.many && len(m.few) == 0 {
		copy(m.bits, tokens)
	} else {
		for at, word := range tokens {
			m.bits[at] |= word
		}
	}
	m.many = true
}

// addTokens adds some tokens.
func (m *masker) addTokens(tokens []int32) {
	for _, id := range tokens {
		m.bits[id/32] |= 1 << (id % 32)
	}
	if !m.many {
		if len(m.few)+len(tokens) > cap(m.few) {
			m.many = true
		} else {
			m.few = append(m.few, tokens...)
		}
	}
}

// removeTokens takes some tokens out, where there are many.
func (m *masker) removeTokens(tokens []int32) {
	for _, id := range tokens {
		m.bits[id/32] &^= 1 << (id % 32)
	}
}
