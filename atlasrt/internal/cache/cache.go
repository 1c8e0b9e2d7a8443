// Package cache keeps the books of what sequences hold on a device: blocks of a paged key-value cache, and slots of state. A block has room
// for the keys and values of a fixed number of tokens, and a sequence holds as many as its tokens need; blocks that hold a common prefix are
// shared. A slot has room for what layers keep of a sequence whatever its length, and each sequence holds one. Source of the first: Kwon et
// al. 2023 (PagedAttention), https://arxiv.org/abs/2309.06180.
//
// It counts and never touches memory. Blocks and slots are pools with the same books: at every moment free + used + cached = total. One of a
// pool is free; or used, held by one or more sequences; or cached, held by none but kept because its contents may be asked for again. A
// block can be matched once Commit has said that its contents are written.
//
// A sequence lives so: Open; Match for its prompt; then for each step Reserve, Begin, the step, End and Commit; Release at last. One
// goroutine at a time may use a Cache.
package cache

import (
	"fmt"
	"slices"
)

// Sizes are those of the pools.
type Sizes struct {
	Blocks    int // of tokens
	BlockSize int // tokens of a block
	Slots     int // of state; 0: sequences have none
}

// Cache is the books of all pools.
type Cache struct {
	blockSize    int
	blocks       pool
	slots        pool
	begun, ended uint64 // numbers of steps: those after ended up to begun are in flight
}

// New makes the books of pools of which nothing is used; share turns prefix caching on.
func New(sizes Sizes, share bool) *Cache {
	if sizes.Blocks < 1 || sizes.BlockSize < 1 || sizes.Slots < 0 {
		panic(fmt.Sprintf("BUG: a cache of sizes %+v", sizes))
	}
	return &Cache{blockSize: sizes.BlockSize, blocks: newPool(sizes.Blocks, share), slots: newPool(sizes.Slots, false)}
}

// LimitGrowth bounds how many blocks are ever used as long as sequences hold fewer: once that many have been used, the cached block that
// was unused longest is dropped before a block is taken that has never been used. Where the system gives memory at its first use, memory
// then grows with what sequences hold and not with what is cached.
func (c *Cache) LimitGrowth(blocks int) { c.blocks.growth = blocks }

// Sequence is what one sequence holds: blocks, in order, and a slot.
type Sequence struct {
	blocks    []int32
	slot      int32
	keys      []Key // of the full blocks that are written
	seed      Key
	committed int // tokens whose keys and values are written
}

// Open starts a sequence that holds nothing. Only sequences with the same salt share blocks. Growing up to so many tokens allocates no
// memory later.
func (c *Cache) Open(salt string, tokens int) *Sequence {
	s := &Sequence{seed: seed(salt), blocks: make([]int32, 0, c.blocksFor(tokens)), slot: none}
	if c.shares() {
		s.keys = make([]Key, 0, tokens/c.blockSize)
	}
	return s
}

// Blocks is the block table: token t lies in Blocks()[t/blockSize]. It is valid until the next call about s.
func (s *Sequence) Blocks() []int32 { return s.blocks }

// Slot is where the state lies; negative while the sequence holds no slot.
func (s *Sequence) Slot() int32 { return s.slot }

// Committed is how many tokens are written.
func (s *Sequence) Committed() int { return s.committed }

// Match gives an empty sequence the longest run of written blocks that hold a prefix of tokens, and returns its length in tokens. It
// never covers the last token: that must be computed, since its logits choose the next one.
//
// Where sequences have a state, it is not kept at the end of a prefix, and computing must begin at the first token: the sequence gets
// nothing, and recompute is the length that it would have got. There blocks are published for this count alone, which says what keeping
// states would save. It costs a hash for each block. Published blocks that nobody holds are dropped when others need them, as elsewhere.
func (c *Cache) Match(s *Sequence, tokens []int32) (matched, recompute int) {
	if len(s.blocks) > 0 {
		panic("BUG: match for a sequence that holds blocks")
	}
	if !c.shares() {
		return 0, 0
	}
	n := 0
	for ; (n+1)*c.blockSize < len(tokens); n++ {
		id, ok := c.blocks.written[c.key(s, n, tokens)]
		if !ok {
			break
		}
		if !c.states() {
			c.blocks.hold(id)
			s.blocks = append(s.blocks, id)
		}
	}
	s.keys = s.keys[:len(s.blocks)] // the tokens of other blocks may still change
	s.committed = len(s.blocks) * c.blockSize
	return s.committed, n*c.blockSize - s.committed
}

// Reserve makes s hold blocks for so many tokens in all, and a slot where sequences have one. It takes free blocks, and then drops the cached
// blocks that were unused longest. Where there are too few blocks or no slot it reports false and takes nothing.
func (c *Cache) Reserve(s *Sequence, tokens int) bool {
	missing := c.blocksFor(tokens) - len(s.blocks)
	slotless := c.states() && s.slot == none
	if missing > c.blocks.available() || slotless && !c.Admits() {
		return false
	}
	for range missing {
		s.blocks = append(s.blocks, c.blocks.take())
	}
	if slotless {
		s.slot = c.slots.take()
	}
	return true
}

// Admits tells whether there is a slot for one sequence more, or sequences have none.
func (c *Cache) Admits() bool { return !c.states() || c.slots.available() > 0 }

// Commit says that the keys and values of tokens, the whole sequence so far, are written: full blocks can be matched
// from now on.
func (c *Cache) Commit(s *Sequence, tokens []int32) {
	if len(tokens) < s.committed || len(tokens) > len(s.blocks)*c.blockSize {
		panic("BUG: commit of tokens that were not reserved, or fewer than before")
	}
	if c.shares() {
		for i := s.committed / c.blockSize; i < len(tokens)/c.blockSize; i++ {
			c.blocks.publish(s.blocks[i], c.key(s, i, tokens))
		}
	}
	s.committed = len(tokens)
}

// Release gives back all that s holds, the last block first; it is empty then. Written blocks stay cached until their memory is needed: so the
// end of a prefix is dropped from the cache before its beginning, without which it could not be matched.
func (c *Cache) Release(s *Sequence) {
	for _, id := range slices.Backward(s.blocks) {
		c.blocks.give(id, c.begun, c.ended)
	}
	if s.slot != none {
		c.slots.give(s.slot, c.begun, c.ended)
	}
	s.blocks, s.slot, s.committed = s.blocks[:0], none, 0
}

// Begin says that a step is in flight which may read and write all that is held now. Steps end in the order in which they began. What is
// given back can be taken only when every step that had begun by then has ended.
func (c *Cache) Begin() { c.begun++ }

// End says that the oldest step in flight has run.
func (c *Cache) End() {
	if c.ended == c.begun {
		panic("BUG: a step ends that did not begin")
	}
	c.ended++
	c.blocks.land(c.ended)
	c.slots.land(c.ended)
}

// Blocks are the books of the blocks.
func (c *Cache) Blocks() Counts { return c.blocks.counts() }

// Slots are the books of the slots.
func (c *Cache) Slots() Counts { return c.slots.counts() }

// Tokens is how many tokens all blocks hold.
func (c *Cache) Tokens() int { return len(c.blocks.items) * c.blockSize }

// shares tells whether prefix caching is on.
func (c *Cache) shares() bool { return c.blocks.written != nil }

// states tells whether sequences have a state.
func (c *Cache) states() bool { return len(c.slots.items) > 0 }

func (c *Cache) blocksFor(tokens int) int { return (tokens + c.blockSize - 1) / c.blockSize }
