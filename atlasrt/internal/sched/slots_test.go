package sched

import (
	"math/rand/v2"
	"testing"
)

// Where sequences have states a prompt is computed from its first token, and what was found is counted.
func TestPrefixIsRecomputedWithStates(t *testing.T) {
	m := newMachineWithStates(t, Limits{BatchTokens: 64, Sequences: 2, Outputs: 2}, 40, 2, true)
	prompt := random(rand.New(rand.NewPCG(5, 1)), 18, 50)
	m.add(prompt, 2)
	m.run()
	again := m.add(prompt, 2)
	m.run()
	if again.Cached() != 0 {
		t.Errorf("cached tokens: got %d, want 0", again.Cached())
	}
	if got := m.s.Counts(); got.PrefixHits != 0 || got.PrefixRecomputed != 16 || got.PrefixQueries != 36 {
		t.Errorf("counts: got %+v, want 16 tokens computed again of 36", got)
	}
}

// Where slots are fewer than sequences may run, the others wait; a slot is free when the last step that may use it has ended.
func TestSequencesWaitForSlots(t *testing.T) {
	m := newMachineWithStates(t, Limits{BatchTokens: 32, Sequences: 4, Outputs: 4}, 40, 2, true)
	m.depth = 2
	for i := range int32(5) {
		m.add([]int32{i, 2, 3}, 6)
	}
	for m.step(nil) {
		if m.s.Running() > 2 {
			t.Fatalf("%d sequences run with two slots", m.s.Running())
		}
	}
	if got := m.s.Counts().Finished; got != 5 {
		t.Errorf("%d of 5 sequences ended", got)
	}
}
