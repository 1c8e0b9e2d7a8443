package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// check counts everything again from what sequences hold.
func check(t *testing.T, c *Cache, live []*Sequence, what string) {
	t.Helper()
	var blocks, slots []int32
	for _, s := range live {
		blocks = append(blocks, s.blocks...)
		if s.slot != none {
			slots = append(slots, s.slot)
		}
		if (s.slot != none) != (c.states() && len(s.blocks) > 0) {
			t.Fatalf("%s: a sequence of %d blocks has slot %d", what, len(s.blocks), s.slot)
		}
	}
	c.blocks.check(t, blocks, what+", blocks")
	c.slots.check(t, slots, what+", slots")
	for id := range c.slots.items {
		if c.slots.items[id].holders > 1 {
			t.Fatalf("%s: slot %d has %d holders", what, id, c.slots.items[id].holders)
		}
	}
}

func (p *pool) check(t *testing.T, held []int32, what string) {
	t.Helper()
	if p.fresh > len(p.free) {
		t.Fatalf("%s: %d were never used, %d are free", what, p.fresh, len(p.free))
	}
	holders := make([]int32, len(p.items))
	for _, id := range held {
		holders[id]++
	}
	for _, l := range p.leaving {
		holders[l.id]++
	}
	state := make([]string, len(p.items))
	set := func(id int32, as string) {
		if state[id] != "" {
			t.Fatalf("%s: number %d is %s and %s", what, id, state[id], as)
		}
		state[id] = as
	}
	for _, id := range p.free {
		set(id, "free")
		if p.items[id].matchable {
			t.Fatalf("%s: number %d is free and can be matched", what, id)
		}
	}
	n := 0
	for id := p.cached.first; id != none; id = p.items[id].next {
		set(id, "cached")
		if !p.items[id].matchable {
			t.Fatalf("%s: number %d is cached and cannot be matched", what, id)
		}
		n++
	}
	used := 0
	for id, h := range holders {
		if h != p.items[id].holders {
			t.Fatalf("%s: number %d: %d holders booked, %d hold it", what, id, p.items[id].holders, h)
		}
		if h > 0 {
			set(int32(id), "used")
			used++
		}
		if state[id] == "" {
			t.Fatalf("%s: number %d is lost", what, id)
		}
	}
	for key, id := range p.written {
		if p.items[id].key != key || !p.items[id].matchable {
			t.Fatalf("%s: the key of number %d does not lead to it", what, id)
		}
	}
	if got, want := p.counts(), (Counts{len(p.free), used, n}); got != want || got.Total() != len(p.items) {
		t.Fatalf("%s: counts are %+v, want %+v of %d", what, got, want, len(p.items))
	}
}

// Random operations against a model that remembers what each block holds: a matched block always holds what was asked
// for, and the books balance after every call.
func TestRandomOperations(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			size := 1 + random.IntN(5)
			sizes := Sizes{Blocks: 4 + random.IntN(30), BlockSize: size}
			if seed%3 == 0 {
				sizes.Slots = 1 + random.IntN(6)
			}
			c := New(sizes, seed%5 != 0)
			if seed%2 == 0 {
				c.LimitGrowth(random.IntN(20))
			}
			contents := make([]string, sizes.Blocks) // what the memory of each block holds
			type live struct {
				s      *Sequence
				tokens []int32
				salt   string
			}
			var all []*live
			sequences := func() (out []*Sequence) {
				for _, l := range all {
					out = append(out, l.s)
				}
				return out
			}
			prefix := func(l *live, block int) string {
				return fmt.Sprint(l.salt, l.tokens[:(block+1)*size])
			}
			for step := range 400 {
				what := fmt.Sprintf("step %d", step)
				switch pick := random.IntN(10); {
				case pick < 3: // a new sequence
					l := &live{salt: []string{"", "b"}[random.IntN(2)], tokens: make([]int32, 1+random.IntN(6*size))}
					for i := range l.tokens {
						l.tokens[i] = int32(random.IntN(2))
					}
					l.s = c.Open(l.salt, len(l.tokens))
					n, recompute := c.Match(l.s, l.tokens)
					if n+recompute >= len(l.tokens) || n%size != 0 || recompute%size != 0 || sizes.Slots == 0 && recompute > 0 || sizes.Slots > 0 && n > 0 {
						t.Fatalf("%s: matched %d and %d of %d tokens, with %d slots", what, n, recompute, len(l.tokens), sizes.Slots)
					}
					for i, id := range l.s.Blocks() {
						if contents[id] != prefix(l, i) {
							t.Fatalf("%s: block %d holds %q, want %q", what, id, contents[id], prefix(l, i))
						}
					}
					all = append(all, l)
				case pick < 7 && len(all) > 0: // grow and write
					l := all[random.IntN(len(all))]
					for range random.IntN(size + 1) {
						l.tokens = append(l.tokens, int32(random.IntN(2)))
					}
					available, held := c.Blocks().Available(), len(l.s.Blocks())
					want := c.blocksFor(len(l.tokens))-held <= available && (l.s.Slot() >= 0 || c.Admits())
					if got := c.Reserve(l.s, len(l.tokens)); got != want {
						t.Fatalf("%s: Reserve: got %v, want %v", what, got, want)
					} else if !got {
						if len(l.s.Blocks()) != held || held == 0 && l.s.Slot() >= 0 {
							t.Fatalf("%s: a refused Reserve took something", what)
						}
						l.tokens = l.tokens[:l.s.Committed()]
						if len(l.tokens) == 0 {
							c.Release(l.s)
							all = slices.DeleteFunc(all, func(x *live) bool { return x == l })
						}
						break
					}
					to := l.s.Committed() + random.IntN(len(l.tokens)-l.s.Committed()+1)
					for i := l.s.Committed() / size; i < to/size; i++ {
						contents[l.s.Blocks()[i]] = prefix(l, i)
					}
					c.Commit(l.s, l.tokens[:to])
				case pick == 7 && len(all) > 0:
					i := random.IntN(len(all))
					c.Release(all[i].s)
					all = slices.Delete(all, i, i+1)
				case c.begun-c.ended == 2 || c.begun > c.ended && random.IntN(2) == 0:
					c.End()
				default:
					c.Begin()
				}
				check(t, c, sequences(), what)
			}
			for c.begun > c.ended {
				c.End()
			}
			for _, l := range all {
				c.Release(l.s)
			}
			check(t, c, nil, "at the end")
			if c.Blocks().Used+c.Slots().Used > 0 {
				t.Fatalf("at the end: %+v of blocks, %+v of slots", c.Blocks(), c.Slots())
			}
		})
	}
}
