package main

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
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

// recall drafts what the text of the one request goes on with, but for every fourth token. It waits for the device.
type recall struct {
	device device.Device
	text   []int32
}

// Memory implements model.Drafter.
func (*recall) Memory() []model.Memory { return nil }

// Draft implements model.Drafter.
func (r *recall) Draft(q op.Stream, in *model.Drafting) {
	if err := q.(device.Stream).Sync(); err != nil {
		q.Fail(err)
		return
	}
	word := func(p op.Ptr) int32 {
		var bytes [4]byte
		if err := r.device.CopyOut(bytes[:], p); err != nil {
			q.Fail(err)
		}
		return int32(binary.LittleEndian.Uint32(bytes[:]))
	}
	for n := range op.Ptr(in.Chunks) {
		last := word(in.Last + 4*n)
		if last < 0 {
			continue
		}
		at := int(word(in.Step.Positions+op.Ptr(4*last))) + 1 // of the token that was drawn
		for i := range int(in.Drafts) {
			token := int32(0)
			if at+1+i < len(r.text) && (at+i)%4 > 0 {
				token = r.text[at+1+i]
			}
			to := in.Next + op.Ptr(4*in.Pitch*int32(i+1)) + 4*n
			if err := r.device.CopyIn(to, binary.LittleEndian.AppendUint32(nil, uint32(token))); err != nil {
				q.Fail(err)
			}
		}
	}
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
				MaxSequences: 2, MaxBatchTokens: 32, Graphs: engine.GraphsNone}
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
			drafter := &recall{device: target.Device}
			e := start(func(c *engine.Config) {
				if c.Drafter, c.Draws, c.FixedDrafts, c.NoOverlap = drafter, 4, true, !overlap; overlap {
					ahead(c)
				}
			})
			for i, r := range requests {
				drafter.text = slices.Concat(r.Prompt, want[i])
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
