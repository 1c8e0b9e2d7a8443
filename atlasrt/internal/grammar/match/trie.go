package match

import (
	"cmp"
	"slices"
)

// trie has tokens by texts. The children of a node follow each other, and so do the tokens of all that is below it.
type trie struct {
	nodes  []branch
	tokens []int32
	root   [256]uint32 // node of each first byte, or 0
	kinds  kinds       // of all tokens' characters; 0 where that is not known
}

// branch is a node of a trie: the byte that leads to it, and what is below.
type branch struct {
	children uint32 // the first of them
	tokens   uint32 // the first: those that end here come first
	end      uint32 // of the tokens
	count    uint16 // of the children
	byte     byte
	runes    uint8 // characters that begin behind this byte in the token that has most of them, at most manyRunes
	kinds    kinds // of the characters behind this byte
}

// manyRunes is a number of characters that is as good as any larger one.
const manyRunes = 254

// newTrie makes a trie of tokens in order of their texts.
func newTrie(tokens []int32, text func(token int32) []byte, k kinds) *trie {
	t := &trie{tokens: tokens, kinds: k, nodes: make([]branch, 1, 2*len(tokens)+1)}
	t.nodes[0].end = uint32(len(tokens))
	t.grow(text, 0, 0)
	root := t.nodes[0]
	for at := root.children; at < root.children+uint32(root.count); at++ {
		t.root[t.nodes[at].byte] = at
	}
	return t
}

// grow adds what is below a node whose tokens share their first depth bytes.
func (t *trie) grow(text func(token int32) []byte, at uint32, depth int) {
	from, end := t.nodes[at].tokens, t.nodes[at].end
	for from < end && len(text(t.tokens[from])) == depth {
		from++
	}
	first := len(t.nodes)
	for from < end {
		b := text(t.tokens[from])[depth]
		to := from + 1
		for to < end && text(t.tokens[to])[depth] == b {
			to++
		}
		t.nodes = append(t.nodes, branch{byte: b, tokens: from, end: to})
		from = to
	}
	count := len(t.nodes) - first
	t.nodes[at].children, t.nodes[at].count = uint32(first), uint16(count)
	runes, all := uint8(0), kinds(0)
	for child := first; child < first+count; child++ {
		t.grow(text, uint32(child), depth+1)
		n := &t.nodes[child]
		own := n.runes
		if beginsRune(n.byte) && own < manyRunes {
			own++
		}
		runes, all = max(runes, own), all|n.kinds|t.kindsOf(n.byte)
	}
	t.nodes[at].runes, t.nodes[at].kinds = runes, all
}

// kindsOf are the kinds that a character with a byte may be of.
func (t *trie) kindsOf(b byte) kinds {
	if b < 0x80 {
		return asciiKind(b)
	}
	return t.kinds & (foreign | odd)
}

// below are the tokens of a node and all below it.
func (t *trie) below(at uint32) []int32 { return t.tokens[t.nodes[at].tokens:t.nodes[at].end] }

// here are the tokens that end at a node.
func (t *trie) here(at uint32) []int32 {
	b := &t.nodes[at]
	if b.count == 0 {
		return t.tokens[b.tokens:b.end]
	}
	return t.tokens[b.tokens:t.nodes[b.children].tokens]
}

// children are the first child of a node and the node behind its last one.
func (t *trie) children(at uint32) (first, end uint32) {
	b := &t.nodes[at]
	return b.children, b.children + uint32(b.count)
}

// child is the child of a node by a byte, or 0.
func (t *trie) child(at uint32, b byte) uint32 {
	if at == 0 {
		return t.root[b]
	}
	first, end := t.children(at)
	i, found := slices.BinarySearchFunc(t.nodes[first:end], b, func(n branch, b byte) int { return cmp.Compare(n.byte, b) })
	if !found {
		return 0
	}
	return first + uint32(i)
}

// beginsRune reports whether a byte is the first of a character.
func beginsRune(b byte) bool { return b&0xC0 != 0x80 }
