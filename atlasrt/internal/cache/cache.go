// Package cache keeps the books of a paged key-value cache: which sequence holds which block, and which blocks hold a
// prefix that another sequence may share.
//
// It counts blocks and never touches their memory. At every moment free + used + cached = total: a block is free, or
// held by sequences, or held by none but kept because its contents may be asked for again. A block can be matched only
// once Commit said that its contents are written. One goroutine at a time may use a Cache.
package cache

import (
	"fmt"
	"slices"
)

// Cache is the books of one pool of blocks.
type Cache struct {
	blockSize int
	blocks    []block
	free      []int32       // those that nobody has used lie first
	fresh     int           // how many those are
	growth    int           // blocks that are used before cached ones give way to no fresh one any more
	written   map[Key]int32 // blocks that Match may find; nil where prefix caching is off
	cached    list          // those of them that no sequence holds, longest unused first

	begun, ended uint64    // steps; those between are in flight
	leaving      []leaving // released while steps were in flight, in order
}

// leaving is a block that is handed to nobody until a step has ended.
type leaving struct {
	block int32
	step  uint64
}

type block struct {
	holders    int32
	matchable  bool
	key        Key
	prev, next int32 // in the list of cached blocks
}

// New makes the books of blocks blocks of blockSize tokens each; share turns prefix caching on.
func New(blocks, blockSize int, share bool) *Cache {
	if blocks < 1 || blockSize < 1 {
		panic(fmt.Sprintf("BUG: a cache of %d blocks of %d tokens", blocks, blockSize))
	}
	c := &Cache{blockSize: blockSize, blocks: make([]block, blocks), free: make([]int32, blocks), fresh: blocks, growth: blocks, cached: emptyList()}
	for i := range c.free {
		c.free[i] = int32(blocks - 1 - i) // the lowest block is taken first
	}
	if share {
		c.written = make(map[Key]int32, blocks)
	}
	return c
}

// LimitGrowth lets the cached block that was unused longest go before one that nobody has used is taken, once this many
// blocks have been used. Memory that is there only from its first use on then follows what sequences hold, and the cache
// keeps that many.
func (c *Cache) LimitGrowth(blocks int) { c.growth = blocks }

// Sequence is the blocks that one sequence holds, in order.
type Sequence struct {
	blocks    []int32
	keys      []Key // of the full blocks that are written
	seed      Key
	committed int // tokens whose keys and values are written
}

// Open starts a sequence that holds nothing. Only sequences with the same salt share blocks. Room for tokens is made at
// once, so that growing to them allocates nothing.
func (c *Cache) Open(salt string, tokens int) *Sequence {
	s := &Sequence{seed: seed(salt), blocks: make([]int32, 0, c.blocksFor(tokens))}
	if c.written != nil {
		s.keys = make([]Key, 0, tokens/c.blockSize)
	}
	return s
}

// Blocks is the block table: token t lies in Blocks()[t/blockSize]. It is valid until the next call about s.
func (s *Sequence) Blocks() []int32 { return s.blocks }

// Committed is how many tokens are written.
func (s *Sequence) Committed() int { return s.committed }

// Match gives an empty sequence the longest run of written blocks that hold a prefix of tokens, and returns its length in
// tokens. At least the last token is left to be computed, for without it there is nothing to continue from.
func (c *Cache) Match(s *Sequence, tokens []int32) int {
	if len(s.blocks) > 0 {
		panic("BUG: match for a sequence that holds blocks")
	}
	if c.written == nil {
		return 0
	}
	for i := 0; (i+1)*c.blockSize < len(tokens); i++ {
		id, ok := c.written[c.key(s, i, tokens)]
		if !ok {
			break
		}
		if c.blocks[id].holders == 0 {
			c.cached.remove(c.blocks, id)
		}
		c.blocks[id].holders++
		s.blocks = append(s.blocks, id)
	}
	s.keys = s.keys[:len(s.blocks)] // what is not written may still change
	s.committed = len(s.blocks) * c.blockSize
	return s.committed
}

// Reserve makes s hold blocks for tokens tokens in all, dropping the cached blocks that were unused longest. It reports
// false, and takes nothing, where there are too few.
func (c *Cache) Reserve(s *Sequence, tokens int) bool {
	missing := c.blocksFor(tokens) - len(s.blocks)
	if missing > c.Available() {
		return false
	}
	for range missing {
		id := c.take()
		c.blocks[id].holders = 1
		s.blocks = append(s.blocks, id)
	}
	return true
}

// Commit says that the keys and values of tokens, the whole sequence so far, are written: full blocks can be matched
// from now on.
func (c *Cache) Commit(s *Sequence, tokens []int32) {
	if len(tokens) < s.committed || len(tokens) > len(s.blocks)*c.blockSize {
		panic("BUG: commit of tokens that were not reserved, or fewer than before")
	}
	if c.written != nil {
		for i := s.committed / c.blockSize; i < len(tokens)/c.blockSize; i++ {
			key := c.key(s, i, tokens)
			// Where another sequence wrote the same contents first, its block stays the one that is matched.
			if _, ok := c.written[key]; !ok {
				id := s.blocks[i]
				c.written[key] = id
				c.blocks[id].key, c.blocks[id].matchable = key, true
			}
		}
	}
	s.committed = len(tokens)
}

// Abort gives back the blocks that were reserved and not written.
func (c *Cache) Abort(s *Sequence) { c.drop(s, c.blocksFor(s.committed)) }

// Release gives back every block of s, which is empty then. What is written stays to be matched until it is needed.
func (c *Cache) Release(s *Sequence) {
	c.drop(s, 0)
	s.committed = 0
}

// Begin says that a step was planned which may read and write every block held now. Steps end in the order in which they
// began; blocks that are given back are handed to nobody until every step that had begun by then has ended.
func (c *Cache) Begin() { c.begun++ }

// End says that the oldest step in flight has run.
func (c *Cache) End() {
	if c.ended == c.begun {
		panic("BUG: a step ends that did not begin")
	}
	c.ended++
	n := 0
	for ; n < len(c.leaving) && c.leaving[n].step <= c.ended; n++ {
		c.leave(c.leaving[n].block)
	}
	c.leaving = slices.Delete(c.leaving, 0, n)
}

// Available is how many blocks can be reserved.
func (c *Cache) Available() int { return len(c.free) + c.cached.length }

// Counts are blocks free, held by sequences or the step in flight, and cached.
func (c *Cache) Counts() (free, used, cached int) {
	return len(c.free), len(c.blocks) - len(c.free) - c.cached.length, c.cached.length
}

// Tokens is how many tokens the whole pool holds.
func (c *Cache) Tokens() int { return len(c.blocks) * c.blockSize }

func (c *Cache) blocksFor(tokens int) int { return (tokens + c.blockSize - 1) / c.blockSize }

// drop gives back all but the first keep blocks, the last first: a chain of cached blocks is dropped from its tail.
func (c *Cache) drop(s *Sequence, keep int) {
	for i := len(s.blocks) - 1; i >= keep; i-- {
		id := s.blocks[i]
		if c.begun > c.ended {
			c.leaving = append(c.leaving, leaving{id, c.begun})
		} else {
			c.leave(id)
		}
	}
	s.blocks = s.blocks[:keep]
}

func (c *Cache) leave(id int32) {
	b := &c.blocks[id]
	b.holders--
	switch {
	case b.holders > 0:
	case b.matchable:
		c.cached.push(c.blocks, id)
	default:
		c.free = append(c.free, id)
	}
}

// take removes a block from the free ones, the last that came back first, so that memory that nobody has touched yet stays
// untouched; or else the cached block that was unused longest.
func (c *Cache) take() int32 {
	n := len(c.free)
	grown := n == c.fresh && len(c.blocks)-c.fresh >= c.growth && c.cached.length > 0
	if n > 0 && !grown {
		id := c.free[n-1]
		c.free = c.free[:n-1]
		c.fresh = min(c.fresh, n-1)
		return id
	}
	id := c.cached.first
	c.cached.remove(c.blocks, id)
	delete(c.written, c.blocks[id].key)
	c.blocks[id].matchable = false
	return id
}
