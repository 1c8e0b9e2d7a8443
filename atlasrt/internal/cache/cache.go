// Package cache keeps the books of a paged key-value cache: which sequence holds which block, and which blocks hold a prefix that
// another sequence may share. A block has room for the keys and values of a fixed number of tokens. Source: Kwon et al. 2023
// (PagedAttention), https://arxiv.org/abs/2309.06180.
//
// It counts blocks and never touches their memory. At every moment free + used + cached = total. A block is free; or used, held by one
// or more sequences; or cached, held by none but kept because its contents may be asked for again. A block can be matched once Commit
// has said that its contents are written.
//
// A sequence lives so: Open; Match for its prompt; then for each step Reserve, Begin, the step, End and Commit; Release at last. One
// goroutine at a time may use a Cache.
package cache

import (
	"fmt"
	"slices"
)

// Cache is the books of one pool of blocks.
type Cache struct {
	blockSize int
	blocks    []block
	free      []int32       // taken from the end; the first ones have never been used
	fresh     int           // how many have never been used
	growth    int           // see LimitGrowth
	written   map[Key]int32 // blocks that Match may find; nil where prefix caching is off
	cached    list          // those of them that no sequence holds, the longest unused first

	begun, ended uint64    // numbers of steps: those after ended up to begun are in flight
	leaving      []leaving // blocks released while steps were in flight, in order
}

// leaving is a block that has been released and may not be taken until a step has ended.
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

// New makes the books of a pool of blocks, each of blockSize tokens; share turns prefix caching on.
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

// LimitGrowth bounds how many blocks are ever used as long as sequences hold fewer: once that many have been used, the cached block that
// was unused longest is dropped before a block is taken that has never been used. Where the system gives memory at its first use, memory
// then grows with what sequences hold and not with what is cached.
func (c *Cache) LimitGrowth(blocks int) { c.growth = blocks }

// Sequence is the blocks that one sequence holds, in order.
type Sequence struct {
	blocks    []int32
	keys      []Key // of the full blocks that are written
	seed      Key
	committed int // tokens whose keys and values are written
}

// Open starts a sequence that holds nothing. Only sequences with the same salt share blocks. Growing up to so many tokens allocates no
// memory later.
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

// Match gives an empty sequence the longest run of written blocks that hold a prefix of tokens, and returns its length in tokens. It
// never covers the last token: that must be computed, since its logits choose the next one.
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
	s.keys = s.keys[:len(s.blocks)] // the tokens of other blocks may still change
	s.committed = len(s.blocks) * c.blockSize
	return s.committed
}

// Reserve makes s hold blocks for so many tokens in all. It takes free blocks, and then drops the cached blocks that were unused longest.
// Where there are too few it reports false and takes nothing.
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

// Abort gives back the blocks of s that were reserved and not written.
func (c *Cache) Abort(s *Sequence) { c.drop(s, c.blocksFor(s.committed)) }

// Release gives back every block of s, which is empty then. Written blocks stay cached until their memory is needed.
func (c *Cache) Release(s *Sequence) {
	c.drop(s, 0)
	s.committed = 0
}

// Begin says that a step is in flight which may read and write every block held now. Steps end in the order in which they began. A block
// that is given back can be taken only when every step that had begun by then has ended.
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

// Counts are how many blocks are free, how many sequences or steps in flight hold, and how many are cached.
func (c *Cache) Counts() (free, used, cached int) {
	return len(c.free), len(c.blocks) - len(c.free) - c.cached.length, c.cached.length
}

// Tokens is how many tokens the whole pool holds.
func (c *Cache) Tokens() int { return len(c.blocks) * c.blockSize }

func (c *Cache) blocksFor(tokens int) int { return (tokens + c.blockSize - 1) / c.blockSize }

// drop gives back all but the first keep blocks, the last one first. So the end of a prefix is dropped from the cache before its beginning,
// without which it could not be matched.
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

// take picks a block for a sequence: the free block that came back last, whose memory has been used; then one that has never been used;
// and then the cached block that was unused longest. The last two change places beyond the bound of LimitGrowth.
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
