package cache

import "slices"

// pool is the books of things of one kind that sequences hold, numbered from 0. What they are, it does not know.
type pool struct {
	items   []item
	free    []int32       // taken from the end; the first ones have never been used
	fresh   int           // how many have never been used
	growth  int           // see Cache.LimitGrowth
	written map[Key]int32 // those that may be found by their contents; nil where none may
	cached  list          // those of them that nobody holds, the longest unused first
	leaving []leaving     // given back while steps were in flight, in order
}

// item is one of a pool.
type item struct {
	holders    int32
	matchable  bool
	key        Key
	prev, next int32 // in the list of cached items
}

// leaving is an item that has been given back and may not be taken until a step has ended.
type leaving struct {
	id   int32
	step uint64
}

// Counts are the books of a pool: Free + Used + Cached is all there is.
type Counts struct {
	Free   int // hold nothing
	Used   int // are held by sequences, or by steps in flight
	Cached int // are held by none, and kept because their contents may be asked for again
}

// Available is how many can be taken.
func (c Counts) Available() int { return c.Free + c.Cached }

// Total is how many there are.
func (c Counts) Total() int { return c.Free + c.Used + c.Cached }

func newPool(n int, share bool) pool {
	p := pool{items: make([]item, n), free: make([]int32, n), fresh: n, growth: n, cached: emptyList()}
	for i := range p.free {
		p.free[i] = int32(n - 1 - i) // the lowest number is taken first
	}
	if share {
		p.written = make(map[Key]int32, n)
	}
	return p
}

func (p *pool) counts() Counts {
	return Counts{Free: len(p.free), Used: len(p.items) - len(p.free) - p.cached.length, Cached: p.cached.length}
}

func (p *pool) available() int { return p.counts().Available() }

// hold gives an item that was found one holder more.
func (p *pool) hold(id int32) {
	if p.items[id].holders == 0 {
		p.cached.remove(p.items, id)
	}
	p.items[id].holders++
}

// publish says what an item holds, so that it can be found. Where another one holds the same, that stays the one which is found.
func (p *pool) publish(id int32, key Key) {
	if _, ok := p.written[key]; !ok {
		p.written[key] = id
		p.items[id].key, p.items[id].matchable = key, true
	}
}

// take gives an item to a holder: the free one that came back last, whose memory has been used; then one that has never been used; and then
// the cached one that was unused longest. The last two change places beyond the bound of LimitGrowth. One must be available.
func (p *pool) take() int32 {
	n := len(p.free)
	grown := n == p.fresh && len(p.items)-p.fresh >= p.growth && p.cached.length > 0
	var id int32
	if n > 0 && !grown {
		id = p.free[n-1]
		p.free = p.free[:n-1]
		p.fresh = min(p.fresh, n-1)
	} else {
		id = p.cached.first
		p.cached.remove(p.items, id)
		delete(p.written, p.items[id].key)
		p.items[id].matchable = false
	}
	p.items[id].holders = 1
	return id
}

// give takes an item back from a holder. Where a step is in flight it leaves when the newest one, number begun, has ended.
func (p *pool) give(id int32, begun, ended uint64) {
	if begun > ended {
		p.leaving = append(p.leaving, leaving{id, begun})
	} else {
		p.leave(id)
	}
}

// land lets go of what was given back up to a step that has ended.
func (p *pool) land(ended uint64) {
	n := 0
	for ; n < len(p.leaving) && p.leaving[n].step <= ended; n++ {
		p.leave(p.leaving[n].id)
	}
	p.leaving = slices.Delete(p.leaving, 0, n)
}

func (p *pool) leave(id int32) {
	i := &p.items[id]
	i.holders--
	switch {
	case i.holders > 0:
	case i.matchable:
		p.cached.push(p.items, id)
	default:
		p.free = append(p.free, id)
	}
}
