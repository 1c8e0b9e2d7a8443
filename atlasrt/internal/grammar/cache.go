package grammar

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"sync"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/match"
)

// Cache compiles each Spec once and keeps those that were used last, up to a number of bytes. It is safe for concurrent use. Specs that are
// refused are not kept.
type Cache struct {
	vocabulary *match.Vocabulary
	limits     Limits
	most       int // bytes

	mutex   sync.Mutex // over what follows
	entries map[key]*entry
	used    list.List // of entries that are compiled, the last used first
	bytes   int       // of them
}

type key [sha256.Size]byte

// entry is a Spec that is compiled or being compiled.
type entry struct {
	key     key
	done    chan struct{} // closed when what follows is there
	grammar *Grammar
	err     error
	bytes   int           // that are counted
	place   *list.Element // in used; nil until it is compiled
}

// overhead is about what an entry takes beside its grammar.
const overhead = 1 << 10

// NewCache makes a cache of so many bytes for a vocabulary. A grammar that is in use remains in memory until its last user lets it go, also
// where the cache does not keep it.
func NewCache(v *match.Vocabulary, limits Limits, bytes int) *Cache {
	return &Cache{vocabulary: v, limits: limits, most: bytes, entries: map[key]*entry{}}
}

// Get gives the grammar of a Spec, as Compile does. The first of several callers that ask for the same one compiles it, and the others wait;
// where its ctx ends, another one goes on.
func (c *Cache) Get(ctx context.Context, s Spec) (*Grammar, error) {
	k := keyOf(&s)
	for {
		c.mutex.Lock()
		e := c.entries[k]
		switch {
		case e == nil:
			e = &entry{key: k, done: make(chan struct{})}
			c.entries[k] = e
			c.mutex.Unlock()
			c.fill(ctx, e, s)
			return e.grammar, e.err
		case e.place != nil:
			c.touch(e)
			c.mutex.Unlock()
			return e.grammar, nil
		}
		c.mutex.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-e.done:
		}
		if !errors.Is(e.err, context.Canceled) && !errors.Is(e.err, context.DeadlineExceeded) {
			return e.grammar, e.err
		}
	}
}

// fill compiles an entry.
func (c *Cache) fill(ctx context.Context, e *entry, s Spec) {
	e.grammar, e.err = Compile(ctx, s, c.vocabulary, c.limits)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	close(e.done)
	if e.err != nil {
		delete(c.entries, e.key)
		return
	}
	e.place = c.used.PushFront(e)
	for place := c.used.Front(); place != nil; place = place.Next() { // grammars grow as they are used
		c.measure(place.Value.(*entry))
	}
	c.evict()
}

// touch makes an entry the last that was used.
func (c *Cache) touch(e *entry) {
	c.used.MoveToFront(e.place)
	c.measure(e)
	c.evict()
}

func (c *Cache) measure(e *entry) {
	now := overhead + e.grammar.Bytes()
	c.bytes += now - e.bytes
	e.bytes = now
}

func (c *Cache) evict() {
	for c.bytes > c.most && c.used.Len() > 0 {
		e := c.used.Remove(c.used.Back()).(*entry)
		c.bytes -= e.bytes
		delete(c.entries, e.key)
	}
}

// Bytes is about how much memory the grammars take that are kept.
func (c *Cache) Bytes() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.bytes
}

// Len is how many grammars are kept.
func (c *Cache) Len() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.used.Len()
}

// keyOf is a hash of all that a Spec says. Each text goes with its length, so that two specs are never the same text.
func keyOf(s *Spec) (k key) {
	h := sha256.New()
	hashSpec(h, s)
	h.Sum(k[:0])
	return k
}

func hashSpec(h hash.Hash, s *Spec) {
	number := func(n int) { h.Write(binary.AppendVarint(nil, int64(n))) }
	text := func(t string) {
		number(len(t))
		h.Write([]byte(t))
	}
	text(string(s.Kind))
	text(s.Name)
	text(s.Text)
	text(s.Not)
	text(string(s.Notation))
	number(s.Min)
	number(s.Max)
	if s.Loose {
		number(1)
	} else {
		number(0)
	}
	number(len(s.Words))
	for _, w := range s.Words {
		text(w)
	}
	number(len(s.Parts))
	for i := range s.Parts {
		hashSpec(h, &s.Parts[i])
	}
}
