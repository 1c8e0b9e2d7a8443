package match

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync/atomic"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
)

// node is a state of the machine: the rows and lexers that a text may be at, mostly one. Equal states are one node.
type node struct {
	tables  *tables
	id      int
	at      []position     // in order
	accepts bool           // the text may end here
	classes *regex.Classes // of bytes that do the same
	next    []atomic.Pointer[node]
	moved   atomic.Pointer[node] // the same in later tables; nil: not made yet
	short   atomic.Pointer[node] // the same for every token; nil: not made yet
	near    atomic.Pointer[mask]
	far     atomic.Pointer[[]int32]
	runs    atomic.Pointer[run]
	still   [len(tailKinds)]atomic.Int32 // whether it stays: 0 where that was not asked yet, else 1 for no and 2 for yes
}

// position is a place in the middle of a row's terminals.
type position struct {
	row   *row
	lexer *lexer
}

// node is the one node of some positions; nil where the work is over its limits.
func (t *tables) node(at []position, accepts bool, w *work) *node {
	if len(at) == 0 && !accepts {
		return t.dead
	}
	slices.SortFunc(at, func(a, b position) int {
		return cmp.Or(cmp.Compare(a.row.id, b.row.id), cmp.Compare(a.lexer.id, b.lexer.id))
	})
	at = slices.Compact(at)
	key := t.key[:0]
	if accepts {
		key = append(key, 1)
	}
	for _, p := range at {
		key = binary.LittleEndian.AppendUint32(key, uint32(p.row.id))
		key = binary.LittleEndian.AppendUint32(key, uint32(p.lexer.id))
	}
	t.key = key
	if known := t.nodes[string(key)]; known != nil {
		return known
	}
	name := string(key)
	for _, p := range at {
		if t.partition(p.lexer, w); w.err != nil {
			return nil
		}
	}
	var c *regex.Classes
	if len(at) == 1 {
		c = at[0].lexer.classes
	} else {
		c = t.classes(at...)
	}
	made := &node{tables: t, id: len(t.nodes), at: slices.Clone(at), accepts: accepts, classes: c, next: make([]atomic.Pointer[node], c.Count())}
	t.nodes[name] = made
	t.bytes += 200 + 16*len(at) + 8*c.Count()
	return made
}

// step is the node behind a byte: the dead one where the byte may not come, and nil where the work is over its limits.
func (n *node) step(b byte, w *work) *node {
	class := n.classes.Of[b]
	if next := n.next[class].Load(); next != nil {
		return next
	}
	return n.make(class, b, w)
}

// make is step for a byte that has not come yet.
func (n *node) make(class uint8, b byte, w *work) *node {
	t := n.tables
	t.lock.Lock()
	defer t.lock.Unlock()
	if next := n.next[class].Load(); next != nil {
		return next
	}
	steps := t.regexes.Steps()
	var at []position
	accepts := false
	for _, p := range n.at {
		read := t.read(p.lexer, b, w)
		if w.err != nil {
			return nil
		}
		if len(read.lexer.open) > 0 {
			at = append(at, position{p.row, read.lexer})
		}
		for _, terminal := range read.ends {
			if p.row == t.alone {
				accepts = true
				continue
			}
			next := t.follow(p.row, terminal, w)
			if w.err != nil {
				return nil
			}
			if next == nil {
				continue
			}
			accepts = accepts || next.accepts
			if len(next.lexer.open) > 0 {
				at = append(at, position{next, next.lexer})
			}
		}
	}
	next := t.node(at, accepts, w)
	if next == nil || !w.spend(t.regexes.Steps()-steps) {
		return nil
	}
	n.next[class].Store(next)
	if t.check(w); w.err != nil {
		return nil
	}
	return next
}

// shorten is a node that does the same with texts of up to nearBytes. Many nodes share it.
func (n *node) shorten(w *work) *node {
	if short := n.short.Load(); short != nil {
		return short
	}
	t := n.tables
	t.lock.Lock()
	defer t.lock.Unlock()
	at := slices.Clone(n.at)
	for i, p := range at {
		if !w.spend(len(p.lexer.open)) {
			return nil
		}
		at[i].lexer = t.shorten(p.lexer)
	}
	short := t.node(at, n.accepts, w)
	if short != nil {
		n.short.Store(short)
	}
	return short
}
