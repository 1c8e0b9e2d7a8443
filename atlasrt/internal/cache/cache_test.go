package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func tokens(n int, first int32) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = first + int32(i)
	}
	return out
}

// write runs a sequence through all its tokens at once.
func write(t *testing.T, c *Cache, salt string, all []int32) (s *Sequence, matched int) {
	t.Helper()
	s = c.Open(salt, len(all))
	matched = c.Match(s, all)
	if !c.Reserve(s, len(all)) {
		t.Fatalf("reserve %d tokens: refused with %d blocks available", len(all), c.Available())
	}
	c.Commit(s, all)
	return s, matched
}

func TestMatch(t *testing.T) {
	shared := tokens(12, 100)
	cases := []struct {
		name string
		salt string
		ask  []int32
		want int
	}{
		{"same prompt leaves its last block", "", shared, 8},
		{"one more token", "", append(slices.Clone(shared), 7), 12},
		{"first block only", "", append(slices.Clone(shared[:4]), 9, 9, 9, 9, 9), 4},
		{"part of a block does not match", "", shared[:3], 0},
		{"a block exactly is all of the prompt", "", shared[:4], 0},
		{"other first token", "", append([]int32{1}, shared[1:]...), 0},
		{"same block after another prefix", "", append(tokens(4, 1), shared[4:]...), 0},
		{"other salt", "tenant b", append(slices.Clone(shared), 7), 0},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			c := New(16, 4, true)
			first, _ := write(t, c, "", shared)
			c.Release(first)
			if got := c.Match(c.Open(test.salt, 0), test.ask); got != test.want {
				t.Errorf("Match(%v): got %d tokens, want %d", test.ask, got, test.want)
			}
		})
	}
}

func TestMatchOff(t *testing.T) {
	c := New(16, 4, false)
	s, _ := write(t, c, "", tokens(12, 0))
	c.Release(s)
	if free, used, cached := c.Counts(); free != 16 || used != 0 || cached != 0 {
		t.Errorf("after release: got free %d used %d cached %d, want 16 0 0", free, used, cached)
	}
	if got := c.Match(c.Open("", 0), tokens(12, 0)); got != 0 {
		t.Errorf("Match with sharing off: got %d, want 0", got)
	}
}

// Two sequences with the same prompt in one step: neither may read what the other has only reserved.
func TestUnwrittenBlockIsNotMatched(t *testing.T) {
	c := New(16, 4, true)
	prompt := tokens(9, 0)
	a, b := c.Open("", 9), c.Open("", 9)
	for _, s := range []*Sequence{a, b} {
		if got := c.Match(s, prompt); got != 0 {
			t.Fatalf("Match before anything was written: got %d, want 0", got)
		}
		if !c.Reserve(s, len(prompt)) {
			t.Fatal("Reserve refused")
		}
	}
	for _, x := range a.Blocks() {
		if slices.Contains(b.Blocks(), x) {
			t.Fatalf("blocks %v and %v share %d", a.Blocks(), b.Blocks(), x)
		}
	}
	c.Commit(a, prompt[:8])
	c.Commit(b, prompt[:8])
	late := c.Open("", 9)
	if got := c.Match(late, prompt); got != 8 || !slices.Equal(late.Blocks(), a.Blocks()[:2]) {
		t.Errorf("Match after commit: got %d tokens in %v, want 8 in %v", got, late.Blocks(), a.Blocks()[:2])
	}
	c.Release(b) // its blocks hold the same as a's and are not kept twice
	if _, _, cached := c.Counts(); cached != 0 {
		t.Errorf("duplicates cached: got %d, want 0", cached)
	}
}

func TestReleaseWaitsForTheStepInFlight(t *testing.T) {
	c := New(4, 4, true)
	s, _ := write(t, c, "", tokens(16, 0))
	c.Begin()
	c.Release(s)
	other := c.Open("", 4)
	if c.Reserve(other, 4) {
		t.Fatalf("a block in flight was handed out: %v", other.Blocks())
	}
	if _, used, _ := c.Counts(); used != 4 {
		t.Errorf("blocks in flight: got %d used, want 4", used)
	}
	c.End()
	if !c.Reserve(other, 4) {
		t.Error("after the step: Reserve refused")
	}
}

// What is given back while two steps are in flight may still be touched by the younger one.
func TestReleaseWaitsForBothStepsInFlight(t *testing.T) {
	c := New(4, 4, true)
	s, _ := write(t, c, "", tokens(8, 0))
	early, _ := write(t, c, "b", tokens(8, 0))
	c.Begin()
	c.Release(early)
	c.Begin()
	c.Release(s)
	for i, want := range []int{0, 2, 4} {
		if got := c.Available(); got != want {
			t.Errorf("%d of two steps have ended: %d blocks can be reserved, want %d", i, got, want)
		}
		if i < 2 {
			c.End()
		}
	}
}

func TestAbortGivesBackWhatIsNotWritten(t *testing.T) {
	c := New(8, 4, true)
	s := c.Open("", 20)
	c.Reserve(s, 20)
	c.Commit(s, tokens(6, 0))
	c.Abort(s)
	if len(s.Blocks()) != 2 || c.Available() != 6 {
		t.Errorf("got %d blocks held and %d available, want 2 and 6", len(s.Blocks()), c.Available())
	}
}

func TestEvictsLongestUnusedTailFirst(t *testing.T) {
	c := New(6, 4, true)
	old, _ := write(t, c, "", tokens(12, 0))
	young, _ := write(t, c, "", tokens(12, 50))
	c.Release(old)
	c.Release(young)
	big := c.Open("", 8)
	c.Reserve(big, 8) // two blocks: the tail of old
	cases := []struct {
		first int32
		want  int
	}{{0, 4}, {50, 12}}
	for _, test := range cases {
		s := c.Open("", 0)
		if got := c.Match(s, append(tokens(12, test.first), 9)); got != test.want {
			t.Errorf("prefix of %d: got %d tokens, want %d", test.first, got, test.want)
		}
		c.Release(s)
	}
}

func TestLongBlocksAreHashedWhole(t *testing.T) {
	a, b := tokens(300, 0), tokens(300, 0)
	b[299]++
	if chain(Key{}, a) == chain(Key{}, b) {
		t.Error("blocks of 300 tokens that differ in the last have one key")
	}
	if chain(Key{}, a) != chain(Key{}, slices.Clone(a)) {
		t.Error("equal blocks have two keys")
	}
}

// Memory that was never touched may not be there yet: blocks whose contents are dead are taken before it, and cached ones
// after it, for they may be asked for again.
func TestTakesDeadBlocksThenFreshOnes(t *testing.T) {
	cases := []struct {
		name          string
		share         bool
		growth        int
		length, count int
		most, cached  int // blocks ever touched, blocks cached at the end
	}{
		{"nothing is shared", false, 64, 10, 50, 3, 0},
		{"last blocks are not full", true, 64, 3, 50, 1, 0},
		{"full blocks stay", true, 64, 10, 10, 2*10 + 1, 2 * 10},
		{"full blocks stay while there are others", true, 64, 10, 100, 64, 63},
		{"full blocks stay up to a bound", true, 20, 10, 100, 20, 19},
		{"what sequences hold may pass the bound", true, 2, 10, 100, 3, 2},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			c := New(64, 4, test.share)
			c.LimitGrowth(test.growth)
			touched := map[int32]bool{}
			for i := range test.count {
				s, _ := write(t, c, "", tokens(test.length, int32(1000*i)))
				for _, id := range s.Blocks() {
					touched[id] = true
				}
				c.Begin() // a step that was planned before the sequence ended
				c.Release(s)
				c.End()
			}
			if _, _, cached := c.Counts(); len(touched) != test.most || cached != test.cached {
				t.Errorf("%d sequences of %d tokens: %d blocks touched, %d cached, want %d and %d", test.count, test.length, len(touched), cached, test.most, test.cached)
			}
		})
	}
}

// check counts every block again from what sequences hold.
func check(t *testing.T, c *Cache, live []*Sequence, what string) {
	t.Helper()
	if c.fresh > len(c.free) {
		t.Fatalf("%s: %d blocks were never used, %d are free", what, c.fresh, len(c.free))
	}
	holders := make([]int32, len(c.blocks))
	for _, s := range live {
		for _, id := range s.blocks {
			holders[id]++
		}
	}
	for _, l := range c.leaving {
		id := l.block
		holders[id]++
	}
	state := make([]string, len(c.blocks))
	set := func(id int32, as string) {
		if state[id] != "" {
			t.Fatalf("%s: block %d is %s and %s", what, id, state[id], as)
		}
		state[id] = as
	}
	for _, id := range c.free {
		set(id, "free")
		if c.blocks[id].matchable {
			t.Fatalf("%s: free block %d can be matched", what, id)
		}
	}
	n := 0
	for id := c.cached.first; id != none; id = c.blocks[id].next {
		set(id, "cached")
		if !c.blocks[id].matchable {
			t.Fatalf("%s: cached block %d cannot be matched", what, id)
		}
		n++
	}
	for id, h := range holders {
		if h != c.blocks[id].holders {
			t.Fatalf("%s: block %d: %d holders booked, %d hold it", what, id, c.blocks[id].holders, h)
		}
		if h > 0 {
			set(int32(id), "used")
		}
		if state[id] == "" {
			t.Fatalf("%s: block %d is lost", what, id)
		}
	}
	for key, id := range c.written {
		if c.blocks[id].key != key || !c.blocks[id].matchable {
			t.Fatalf("%s: key of block %d does not lead to it", what, id)
		}
	}
	free, used, cached := c.Counts()
	if free+used+cached != len(c.blocks) || cached != n || free < 0 || used < 0 {
		t.Fatalf("%s: free %d + used %d + cached %d is not %d", what, free, used, cached, len(c.blocks))
	}
}

// Random operations against a model that remembers what each block holds: a matched block always holds what was asked
// for, and the books balance after every call.
func TestRandomOperations(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			size := 1 + random.IntN(5)
			c := New(4+random.IntN(30), size, seed%5 != 0)
			if seed%2 == 0 {
				c.LimitGrowth(random.IntN(20))
			}
			contents := make([]string, len(c.blocks)) // what the memory of each block holds
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
					n := c.Match(l.s, l.tokens)
					if n >= len(l.tokens) || n%size != 0 {
						t.Fatalf("%s: matched %d of %d tokens", what, n, len(l.tokens))
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
					available, held := c.Available(), len(l.s.Blocks())
					want := c.blocksFor(len(l.tokens))-held <= available
					if got := c.Reserve(l.s, len(l.tokens)); got != want {
						t.Fatalf("%s: Reserve: got %v, want %v", what, got, want)
					} else if !got {
						if len(l.s.Blocks()) != held {
							t.Fatalf("%s: a refused Reserve took blocks", what)
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
					c.Abort(all[random.IntN(len(all))].s)
				case pick == 8 && len(all) > 0:
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
			if c.Available() != len(c.blocks) {
				t.Fatalf("at the end: %d of %d blocks available", c.Available(), len(c.blocks))
			}
		})
	}
}
