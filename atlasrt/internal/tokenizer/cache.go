package tokenizer

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// wordCache remembers the tokens of words: one word per slot, the newest. So its size has a bound and readers need no
// lock; a word that two goroutines store at once is stored by one of them.
type wordCache struct {
	seed  maphash.Seed
	slots []atomic.Pointer[cachedWord]
}

type cachedWord struct {
	word string
	ids  []int32
}

const (
	cacheSlots     = 1 << 15
	maxCachedBytes = 64 // longer words seldom come back
)

func newWordCache() *wordCache {
	return &wordCache{seed: maphash.MakeSeed(), slots: make([]atomic.Pointer[cachedWord], cacheSlots)}
}

// lookup returns the slot of a word and, where it holds the word, its tokens.
func (c *wordCache) lookup(word string) (*atomic.Pointer[cachedWord], []int32) {
	slot := &c.slots[maphash.String(c.seed, word)%cacheSlots]
	if cached := slot.Load(); cached != nil && cached.word == word {
		return slot, cached.ids
	}
	return slot, nil
}

// store puts copies, which do not keep the text alive that the word is part of.
func store(slot *atomic.Pointer[cachedWord], word string, ids []int32) {
	slot.Store(&cachedWord{strings.Clone(word), append([]int32(nil), ids...)})
}
