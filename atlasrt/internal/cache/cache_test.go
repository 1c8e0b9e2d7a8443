package cache

import (
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
	matched, _ = c.Match(s, all)
	if !c.Reserve(s, len(all)) {
		t.Fatalf("reserve %d tokens: refused with %d blocks available", len(all), c.Blocks().Available())
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
			c := New(Sizes{Blocks: 16, BlockSize: 4}, true)
			first, _ := write(t, c, "", shared)
			c.Release(first)
			if got, _ := c.Match(c.Open(test.salt, 0), test.ask); got != test.want {
				t.Errorf("Match(%v): got %d tokens, want %d", test.ask, got, test.want)
			}
		})
	}
}

func TestMatchOff(t *testing.T) {
	c := New(Sizes{Blocks: 16, BlockSize: 4}, false)
	s, _ := write(t, c, "", tokens(12, 0))
	c.Release(s)
	if got := c.Blocks(); got != (Counts{Free: 16}) {
		t.Errorf("after release: got %+v, want 16 free", got)
	}
	if got, _ := c.Match(c.Open("", 0), tokens(12, 0)); got != 0 {
		t.Errorf("Match with sharing off: got %d, want 0", got)
	}
}

// Two sequences with the same prompt in one step: neither may read what the other has only reserved.
func TestUnwrittenBlockIsNotMatched(t *testing.T) {
	c := New(Sizes{Blocks: 16, BlockSize: 4}, true)
	prompt := tokens(9, 0)
	a, b := c.Open("", 9), c.Open("", 9)
	for _, s := range []*Sequence{a, b} {
		if got, _ := c.Match(s, prompt); got != 0 {
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
	if got, _ := c.Match(late, prompt); got != 8 || !slices.Equal(late.Blocks(), a.Blocks()[:2]) {
		t.Errorf("Match after commit: got %d tokens in %v, want 8 in %v", got, late.Blocks(), a.Blocks()[:2])
	}
	c.Release(b) // its blocks hold the same as a's and are not kept twice
	if cached := c.Blocks().Cached; cached != 0 {
		t.Errorf("duplicates cached: got %d, want 0", cached)
	}
}

func TestReleaseWaitsForTheStepInFlight(t *testing.T) {
	c := New(Sizes{Blocks: 4, BlockSize: 4}, true)
	s, _ := write(t, c, "", tokens(16, 0))
	c.Begin()
	c.Release(s)
	other := c.Open("", 4)
	if c.Reserve(other, 4) {
		t.Fatalf("a block in flight was handed out: %v", other.Blocks())
	}
	if used := c.Blocks().Used; used != 4 {
		t.Errorf("blocks in flight: got %d used, want 4", used)
	}
	c.End()
	if !c.Reserve(other, 4) {
		t.Error("after the step: Reserve refused")
	}
}

// What is given back while two steps are in flight may still be touched by the younger one.
func TestReleaseWaitsForBothStepsInFlight(t *testing.T) {
	c := New(Sizes{Blocks: 4, BlockSize: 4}, true)
	s, _ := write(t, c, "", tokens(8, 0))
	early, _ := write(t, c, "b", tokens(8, 0))
	c.Begin()
	c.Release(early)
	c.Begin()
	c.Release(s)
	for i, want := range []int{0, 2, 4} {
		if got := c.Blocks().Available(); got != want {
			t.Errorf("%d of two steps have ended: %d blocks can be reserved, want %d", i, got, want)
		}
		if i < 2 {
			c.End()
		}
	}
}

func TestEvictsLongestUnusedTailFirst(t *testing.T) {
	c := New(Sizes{Blocks: 6, BlockSize: 4}, true)
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
		if got, _ := c.Match(s, append(tokens(12, test.first), 9)); got != test.want {
			t.Errorf("prefix of %d: got %d tokens, want %d", test.first, got, test.want)
		}
		c.Release(s)
	}
}

// A sequence has one slot from its first Reserve to its Release, and the next one has it when the steps in flight by then have ended.
func TestSlots(t *testing.T) {
	c := New(Sizes{Blocks: 16, BlockSize: 4, Slots: 2}, true)
	a, b, third := c.Open("", 8), c.Open("", 8), c.Open("", 8)
	if a.Slot() >= 0 || !c.Admits() || !c.Reserve(a, 4) || !c.Reserve(b, 4) || a.Slot() < 0 || b.Slot() < 0 || a.Slot() == b.Slot() {
		t.Fatalf("two sequences have slots %d and %d of two", a.Slot(), b.Slot())
	}
	held := a.Slot()
	if !c.Reserve(a, 8) || a.Slot() != held {
		t.Errorf("a sequence that grew has slot %d, and had %d", a.Slot(), held)
	}
	if c.Admits() || c.Reserve(third, 4) || third.Slot() >= 0 || len(third.Blocks()) != 0 {
		t.Errorf("a third of two slots was given: slot %d, blocks %v", third.Slot(), third.Blocks())
	}
	c.Begin()
	c.Release(a)
	if a.Slot() >= 0 || c.Admits() || c.Reserve(third, 4) {
		t.Errorf("a slot was given away while a step may use it")
	}
	c.End()
	if got := c.Slots(); got != (Counts{Free: 1, Used: 1}) {
		t.Errorf("after the step: got %+v, want one slot free and one used", got)
	}
	if !c.Reserve(third, 4) || third.Slot() != held {
		t.Errorf("after the step: got slot %d, want %d", third.Slot(), held)
	}
}

// The state at the end of a prefix is not kept: what is found must be computed again.
func TestMatchOfSequencesWithStates(t *testing.T) {
	c := New(Sizes{Blocks: 16, BlockSize: 4, Slots: 2}, true)
	first, _ := write(t, c, "", tokens(12, 0))
	c.Release(first)
	s := c.Open("", 13)
	if matched, recompute := c.Match(s, tokens(13, 0)); matched != 0 || recompute != 12 || len(s.Blocks()) != 0 || s.Committed() != 0 {
		t.Errorf("got %d tokens in %v and %d to be computed again, want 0 and 12", matched, s.Blocks(), recompute)
	}
	if cached := c.Blocks().Cached; cached != 3 {
		t.Errorf("%d blocks are cached, want 3", cached)
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
			c := New(Sizes{Blocks: 64, BlockSize: 4}, test.share)
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
			if cached := c.Blocks().Cached; len(touched) != test.most || cached != test.cached {
				t.Errorf("%d sequences of %d tokens: %d blocks touched, %d cached, want %d and %d", test.count, test.length, len(touched), cached, test.most, test.cached)
			}
		})
	}
}
