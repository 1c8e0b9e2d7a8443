package main

import (
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/recall"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// drafted is a model that keeps nothing of wrong drafts.
type drafted struct{ model.Model }

// Layout implements model.Model.
func (d drafted) Layout() model.Layout {
	l := d.Model.Layout()
	l.Drafts = 3
	return l
}

// Over compiled kernels, whose rows do not depend on their batch, drafts change no token, however tokens are drawn.
func TestDraftsOverKernels(t *testing.T) {
	eachHardware(t, true, func(t *testing.T, target *instance.Target) {
		m := place(t, target, testdata.Shared(t, "golden/qwen3"), true)
		defer m.Close()
		var engines []*engine.Engine
		defer func() { // before the device is closed
			for _, e := range engines {
				_ = e.Close()
			}
		}()
		start := func(change func(*engine.Config)) *engine.Engine {
			c := engine.Config{Device: target.Device, Set: target.Set, Model: drafted{m.Model}, ScratchBytes: m.Scratch, KVType: op.F32, Blocks: 40, MaxContext: 128,
				MaxSequences: 2, MaxBatchTokens: 32, Options: engine.Options{Graphs: engine.GraphsNone}}
			change(&c)
			e, err := engine.New(c)
			if err != nil {
				t.Fatal(err)
			}
			engines = append(engines, e)
			return e
		}
		requests := []engine.Request{{Sampling: sample.Greedy()}, {Sampling: sample.Defaults()}, {Sampling: sample.Greedy()}}
		requests[1].Sampling.Seed = 42
		requests[2].Sampling.FrequencyPenalty = 0.7
		for i := range requests {
			requests[i].Prompt, requests[i].MaxTokens, requests[i].LogProbs = []int32{5, 9, 2, 31}, 60, -1
		}
		answer := func(e *engine.Engine, r engine.Request) (tokens []int32, drafts engine.Drafts) {
			inbox, err := e.Submit(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			for event := range inbox.All() {
				if event.Err != nil {
					t.Fatal(event.Err)
				}
				tokens, drafts = append(tokens, event.Token), event.Drafts
			}
			return tokens, drafts
		}
		plain := start(func(*engine.Config) {})
		var want [][]int32
		for _, r := range requests {
			tokens, _ := answer(plain, r)
			want = append(want, tokens)
		}
		for _, overlap := range []bool{false, true} {
			drafter := &recall.Drafter{Device: target.Device, Wrong: 4}
			e := start(func(c *engine.Config) {
				if c.Drafter, c.Draws, c.FixedDrafts, c.NoOverlap = drafter, 4, true, !overlap; overlap {
					ahead(c)
				}
			})
			for i, r := range requests {
				drafter.Text = slices.Concat(r.Prompt, want[i])
				got, drafts := answer(e, r)
				if !slices.Equal(got, want[i]) {
					t.Errorf("request %d, overlap %t:\ngot  %v\nwant %v", i, overlap, got, want[i])
				}
				if drafts.Right < 20 || drafts.Right == drafts.Computed {
					t.Errorf("request %d, overlap %t: of %d drafts %d were right, want some of them", i, overlap, drafts.Computed, drafts.Right)
				}
			}
		}
	})
}
