package match

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// row is what may come at a place of a text, as in Earley's algorithm: the items that a symbol's end has led to, and those of the symbols
// that are expected now. A row does not know where in the text it is, so that places with the same future are the same row.
type row struct {
	id      int32
	kernel  []item // in order
	accepts bool   // the text may end here
	depth   int    // how many rows deep its callers are

	waiting []item  // all items that wait for a symbol, in order of the symbols; nil until expand
	symbols []int32 // that are waited for, terminals first
	first   []int32 // of each symbol's items, and the end of the last
	lexer   *lexer  // before the first byte
	after   []*row  // by terminal, in the order of symbols; nil: not made yet
	size    int     // bytes, about
}

// manyCallers is how many callers of one symbol a row keeps apart so that calls at the end of a rule leave no trace.
const manyCallers = 4

// expand adds the items of the symbols that the kernel leads to.
//
// A symbol that a rule expects at its very end is called on behalf of the rule's own caller: so a rule that is its own last part goes on in the
// same rows for ever, and what it has been through is not kept.
func (t *tables) expand(r *row, w *work) {
	if r.symbols != nil {
		return
	}
	p := t.program
	terminals := int32(len(p.terminals))
	todo := slices.Clone(r.kernel)
	var waiting []item
	var seen map[item]bool
	call := func(s int32, c caller) {
		callers := t.callersOf(s-terminals, r)
		if slices.Contains(*callers, c) {
			return
		}
		*callers = append(*callers, c)
		for _, begin := range p.symbols[s-terminals].begins {
			todo = append(todo, item{place: begin, caller: c})
		}
	}
	for len(todo) > 0 && w.spend(1) {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		s := p.waits(&i)
		if s == none {
			continue
		}
		if s < terminals {
			waiting = append(waiting, i)
			continue
		}
		next := p.advance(&i)
		behind := caller{r, s}
		if i.row != r && p.waits(&next) == none {
			if callers := *t.callersOf(s-terminals, r); len(callers) < manyCallers || slices.Contains(callers, i.caller) {
				behind = i.caller
			}
		}
		if behind.row == r {
			waiting = append(waiting, i)
		}
		call(s, behind)
		if p.places[i.place].skips {
			if seen == nil {
				seen = map[item]bool{}
				for _, k := range r.kernel {
					seen[k] = true
				}
			}
			if !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	if w.err != nil {
		return
	}
	slices.SortFunc(waiting, func(a, b item) int { return cmp.Compare(p.waits(&a), p.waits(&b)) })
	r.waiting = waiting
	r.symbols = []int32{}
	for at := range waiting {
		s := p.waits(&waiting[at])
		if len(r.symbols) == 0 || r.symbols[len(r.symbols)-1] != s {
			r.symbols = append(r.symbols, s)
			r.first = append(r.first, int32(at))
		}
	}
	r.first = append(r.first, int32(len(waiting)))
	own, _ := slices.BinarySearch(r.symbols, terminals)
	r.after = make([]*row, own)
	r.lexer = t.beginning(r.symbols[:own])
	r.size += 32*len(waiting) + 16*len(r.symbols)
	t.bytes += r.size
}

// called are the callers of a symbol in the row that expand is at.
type called struct {
	row     *row
	callers []caller
}

// callersOf are the callers of a symbol in a row, which has none at first.
func (t *tables) callersOf(symbol int32, r *row) *[]caller {
	c := &t.called[symbol]
	if c.row != r {
		c.row, c.callers = r, c.callers[:0]
	}
	return &c.callers
}

// waitingFor is the row's items that wait for a symbol.
func (r *row) waitingFor(s int32) []item {
	at, found := slices.BinarySearch(r.symbols, s)
	if !found {
		return nil
	}
	return r.waiting[r.first[at]:r.first[at+1]]
}

// follow is the row behind a terminal that r expects. It is nil where the row is nested too deep, and where the work is over its limits.
func (t *tables) follow(r *row, terminal int32, w *work) *row {
	at, found := slices.BinarySearch(r.symbols, terminal)
	if !found {
		panic("BUG: a terminal ends that is not expected")
	}
	if r.after[at] != nil {
		return r.after[at]
	}
	k := kernel{tables: t, items: t.kernel[:0]}
	k.end(caller{r, terminal}, w)
	t.kernel = k.items[:0]
	if w.err != nil {
		return nil
	}
	next := t.row(k.items, k.accepts)
	if next.depth > t.limits.Depth {
		return nil
	}
	t.expand(next, w)
	if w.err != nil {
		return nil
	}
	r.after[at] = next
	return next
}

// kernel collects the items behind a symbol.
type kernel struct {
	*tables
	items   []item
	accepts bool
	ended   []caller
}

// end says that a symbol has ended that a caller expected, and what ends with it.
func (k *kernel) end(c caller, w *work) {
	k.ended = append(k.ended, c)
	many := map[caller]bool{}
	for at := 0; at < len(k.ended) && w.err == nil; at++ {
		for _, i := range k.ended[at].row.waitingFor(k.ended[at].symbol) {
			if !w.spend(1) {
				return
			}
			next := k.program.advance(&i)
			if k.program.waits(&next) != none {
				k.items = append(k.items, next)
			}
			if !k.program.ends(&next) {
				continue
			}
			if next.row == nil {
				k.accepts = true
			} else if !many[next.caller] {
				many[next.caller] = true
				k.ended = append(k.ended, next.caller)
			}
		}
	}
}

// row is the one row of a kernel.
func (t *tables) row(items []item, accepts bool) *row {
	id := func(r *row) int32 {
		if r == nil {
			return none
		}
		return r.id
	}
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.count, b.count), cmp.Compare(id(a.row), id(b.row)), cmp.Compare(a.symbol, b.symbol))
	})
	items = slices.Compact(items)
	key := t.key[:0]
	if accepts {
		key = append(key, 1)
	}
	depth := 0
	for _, i := range items {
		key = binary.LittleEndian.AppendUint32(key, uint32(i.place))
		key = binary.LittleEndian.AppendUint32(key, uint32(i.count))
		key = binary.LittleEndian.AppendUint32(key, uint32(id(i.row)))
		key = binary.LittleEndian.AppendUint32(key, uint32(i.symbol))
		if i.row != nil {
			depth = max(depth, i.row.depth+1)
		}
	}
	t.key = key
	if known := t.rows[string(key)]; known != nil {
		return known
	}
	made := &row{id: int32(len(t.rows)), kernel: slices.Clone(items), accepts: accepts, depth: depth, size: 200 + 64*len(items)}
	t.rows[string(key)] = made
	t.bytes += made.size
	return made
}
