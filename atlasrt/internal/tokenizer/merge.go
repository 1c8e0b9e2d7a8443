package tokenizer

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// noMerge is the rank of a pair that does not merge; it sorts behind every rank.
const noMerge = int32(1<<31 - 1)

// mergeTable maps a pair of tokens to the rank of their merge and the token it makes: open addressing, filled once.
type mergeTable struct {
	slots      []mergeSlot
	multiplier uint64 // odd and random, so that no file can choose pairs that collide
	shift      int
}

type mergeSlot struct {
	pair     uint64 // left<<32 | right, plus 1: 0 is an empty slot
	rank, id int32
}

func newMergeTable(pairs int) mergeTable {
	log := bits.Len(uint(2 * pairs))
	seed := maphash.MakeSeed()
	return mergeTable{
		slots:      make([]mergeSlot, 1<<log),
		multiplier: maphash.String(seed, "") | 1,
		shift:      64 - log,
	}
}

func (t *mergeTable) slot(left, right int32) *mergeSlot {
	pair := uint64(uint32(left))<<32 | uint64(uint32(right))
	i := pair * t.multiplier >> t.shift
	for t.slots[i].pair != 0 && t.slots[i].pair != pair+1 {
		if i++; i == uint64(len(t.slots)) {
			i = 0
		}
	}
	return &t.slots[i]
}

// set adds a merge or replaces it.
func (t *mergeTable) set(left, right, rank, id int32) {
	slot := t.slot(left, right)
	*slot = mergeSlot{uint64(uint32(left))<<32 | uint64(uint32(right)) + 1, rank, id}
}

// rank is noMerge where the pair does not merge.
func (t *mergeTable) rank(left, right int32) int32 {
	if slot := t.slot(left, right); slot.pair != 0 {
		return slot.rank
	}
	return noMerge
}

// merger joins the symbols of one word. It keeps its memory from word to word, so it serves one goroutine.
type merger struct {
	table   *mergeTable
	watch   *watch // may end the work on a long word
	symbols []int32
	ranks   []int32 // of symbol i with the next
	next    []int32 // linked list for long words; an absorbed symbol has rank noMerge
	before  []int32
	queue   pairQueue
}

// shortWord is the number of symbols up to which looking at every pair beats a heap.
const shortWord = 40

// merge joins, again and again, the leftmost pair of the lowest rank, and appends what is left of symbols to ids.
func (m *merger) merge(ids []int32) []int32 {
	m.ranks = slices.Grow(m.ranks[:0], len(m.symbols))
	for i := 1; i < len(m.symbols); i++ {
		m.ranks = append(m.ranks, m.table.rank(m.symbols[i-1], m.symbols[i]))
	}
	if len(m.symbols) > shortWord {
		return m.mergeLong(ids)
	}
	symbols, ranks := m.symbols, m.ranks
	for {
		best, at := noMerge, 0
		for i, rank := range ranks {
			if rank < best {
				best, at = rank, i
			}
		}
		if best == noMerge {
			return append(ids, symbols...)
		}
		symbols[at] = m.table.slot(symbols[at], symbols[at+1]).id
		symbols = append(symbols[:at+1], symbols[at+2:]...)
		ranks = append(ranks[:at], ranks[at+1:]...)
		if at > 0 {
			ranks[at-1] = m.table.rank(symbols[at-1], symbols[at])
		}
		if at < len(ranks) {
			ranks[at] = m.table.rank(symbols[at], symbols[at+1])
		}
	}
}

// mergeLong is merge in O(n log n), and O(n) for text that repeats itself. It appends nothing where the watch ends it.
func (m *merger) mergeLong(ids []int32) []int32 {
	n := len(m.symbols)
	m.ranks = append(m.ranks, noMerge)
	m.next, m.before = slices.Grow(m.next[:0], n), slices.Grow(m.before[:0], n)
	m.queue.reset()
	for i := range n {
		m.next = append(m.next, int32(i+1))
		m.before = append(m.before, int32(i-1))
		m.push(int32(i))
	}
	for {
		rank, i, ok := m.queue.pop()
		if !ok {
			break
		}
		if m.ranks[i] != rank { // the pair is gone
			continue
		}
		if m.watch.ended(1) {
			return ids
		}
		j := m.next[i]
		m.symbols[i] = m.table.slot(m.symbols[i], m.symbols[j]).id
		m.next[i] = m.next[j]
		m.ranks[j] = noMerge
		m.symbols[j] = absorbed
		if k := m.next[i]; int(k) < n {
			m.before[k] = i
			m.ranks[i] = m.table.rank(m.symbols[i], m.symbols[k])
		} else {
			m.ranks[i] = noMerge
		}
		m.push(i)
		if h := m.before[i]; h >= 0 {
			m.ranks[h] = m.table.rank(m.symbols[h], m.symbols[i])
			m.push(h)
		}
	}
	for _, id := range m.symbols {
		if id != absorbed {
			ids = append(ids, id)
		}
	}
	return ids
}

// absorbed marks a symbol that is part of the one before it.
const absorbed = int32(-2)

// push queues the pair at i, unless it does not merge.
func (m *merger) push(i int32) {
	if m.ranks[i] != noMerge {
		m.queue.push(m.ranks[i], i)
	}
}
