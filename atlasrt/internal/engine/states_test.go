package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// fakeState is what a fake model may keep of each sequence: how many tokens it has seen before the drafts of the last step, their hash, and a
// journal of the drafts.
var fakeState = model.Memory{Kind: model.PerSequence, Arrays: []model.Array{{Elements: 1, Type: op.I32}, {Elements: 1, Type: op.U32}, {Elements: fakeJournal, Type: op.I32}}}

const fakeJournal = 7 // drafts

// withStates is the fake model of a config, keeping a state of each sequence.
func withStates(change func(*Config, *fixture)) func(*Config, *fixture) {
	return func(c *Config, f *fixture) {
		f.model.layout.Memory = append(f.model.layout.Memory, fakeState)
		if change != nil {
			change(c, f)
		}
	}
}

// advance takes the state of each sequence over its rows, of which read has the tokens that each sees. The step fails where a slot is not that
// of its sequence: where it is shared, lost or was written by another.
func (m *fakeModel) advance(q op.Stream, in *model.Inputs, read [][]int32) {
	if !m.layout.Keeps(model.PerSequence) {
		if in.States != 0 || in.StateSlots != 0 {
			q.Fail(fmt.Errorf("%d slots of states that nobody keeps", in.StateSlots))
		}
		return
	}
	state := in.Memory[len(in.Memory)-1]
	tokens, starts, lengths := m.ints(q, in.Tokens, in.Rows), m.ints(q, in.Starts, in.Seqs+1), m.ints(q, in.Lengths, in.Seqs)
	drafts, accepted := make([]int32, in.Seqs), make([]int32, in.Seqs)
	if in.Drafts != 0 {
		drafts, accepted = m.ints(q, in.Drafts, in.Seqs), m.ints(q, in.Accepted, in.Seqs)
	}
	seen := map[int32]bool{}
	for s, slot := range m.ints(q, in.States, in.Seqs) {
		own := tokens[starts[s]:starts[s+1]]
		if len(own) == 0 && slot == -1 {
			continue // padding
		}
		if len(own) == 0 || slot < 0 || slot >= in.StateSlots || seen[slot] {
			q.Fail(fmt.Errorf("sequence %d of %d rows has slot %d of %d, shared %t", s, len(own), slot, in.StateSlots, seen[slot]))
			return
		}
		seen[slot] = true
		before, sum := lengths[s]-int32(len(own)), noTokens
		if before > 0 {
			right := m.ints(q, state[2]+op.Ptr(4*fakeJournal*slot), accepted[s])
			if got := m.ints(q, state[0]+op.Ptr(4*slot), 1)[0]; got+accepted[s] != before {
				q.Fail(fmt.Errorf("sequence %d goes on at %d, and the state in its slot is that of %d tokens and %d drafts", s, before, got, accepted[s]))
				return
			}
			sum = hash(uint32(m.ints(q, state[1]+op.Ptr(4*slot), 1)[0]), right)
		}
		known := int32(len(own)) - drafts[s]
		sum = hash(sum, own[:known])
		if all := read[starts[s]+known-1]; sum != hash(noTokens, all) {
			q.Fail(fmt.Errorf("the state in slot %d is not that of %v", slot, all))
			return
		}
		m.put(q, state[0]+op.Ptr(4*slot), uint32(lengths[s]-drafts[s]))
		m.put(q, state[1]+op.Ptr(4*slot), sum)
		for i, token := range own[known:] {
			m.put(q, state[2]+op.Ptr(4*(fakeJournal*slot+int32(i))), uint32(token))
		}
	}
}

// A prompt is computed whole where sequences have states, and every slot comes back.
func TestStatesAreNotShared(t *testing.T) {
	f := newFixture(t, withStates(nil))
	prompt := random(rand.New(rand.NewPCG(4, 5)), 21)
	for range 2 {
		if got, want := f.ask(t, greedy(prompt, 9)), f.model.greedy(prompt, 9); got.cached != 0 || !slices.Equal(got.tokens, want) {
			t.Errorf("got %v (%v), %d tokens from the cache; want %v and none", got.tokens, got.err, got.cached, want)
		}
	}
	s := f.settle(t)
	if s.PrefixQueries != 42 || s.PrefixHits != 0 || s.PrefixRecomputed != 20 {
		t.Errorf("of %d tokens %d were taken from the cache and %d computed again, want 42, 0 and 20", s.PrefixQueries, s.PrefixHits, s.PrefixRecomputed)
	}
	if s.SlotsFree != 16 || s.SlotsUsed != 0 || s.SlotsCached != 0 || s.SlotsTotal != 16 {
		t.Errorf("at rest %d slots are free, %d used, %d cached of %d", s.SlotsFree, s.SlotsUsed, s.SlotsCached, s.SlotsTotal)
	}
}

// One sequence after the other goes through one slot.
func TestDirectWithStates(t *testing.T) {
	device := &tapeDevice{Device: host.New(0)}
	m := newFakeModel(device)
	m.layout.Memory = append(m.layout.Memory, fakeState)
	d, err := NewDirect(Config{Device: device, Set: tapeSampler{oracle.New(op.F32), device}, Model: m, KVType: op.F32, Blocks: 30, MaxBatchTokens: 20, MaxSequences: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(3) {
		prompt := random(rand.New(rand.NewPCG(i, 7)), 27)
		if got, err := d.Logits(prompt, 5, false); err != nil || !slices.Equal(got, m.logits(prompt)) {
			t.Errorf("logits differ from the model's own (%v)", err)
		}
		if got, err := d.Greedy(prompt, 25); err != nil || !slices.Equal(got, m.greedy(prompt, 25)) {
			t.Errorf("Greedy: got %v %v, want %v", got, err, m.greedy(prompt, 25))
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
