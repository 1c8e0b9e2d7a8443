package engine

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/cache"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// all is every row, in the order in which arrays lie in memory.
func (in inputs) all() []input { return append(slices.Clone(in.early), in.late...) }

// hybrid is a layout whose steps have every array.
var hybrid = model.Layout{Memory: []model.Memory{fakeState}, Vocab: fakeVocab}

func TestInputsOverlapNowhere(t *testing.T) {
	place := func(s shape) map[string]int {
		l, all := launches{batch: batch{shape: s, block: 16}}, stepInputs(hybrid, 3).all()
		staging, end := make([]int32, wordsOf(all, s)), op.Ptr(0)
		if used := l.stage(all, staging, 1<<20, 0); used != len(staging) {
			t.Errorf("%+v: takes %d words, want %d", s, used, len(staging))
		}
		at := map[string]int{}
		for _, a := range all {
			start := *a.field(&l) - 1<<20
			if start < end || start%64 != 0 {
				t.Errorf("%s starts at byte %d, want a multiple of 64 from %d on", a.name, start, end)
			}
			end = start + op.Ptr(4*a.words(&s))
			at[a.name] = int(start)
		}
		return at
	}
	s := shape{rows: 33, seqs: 5, outputs: 7, drawing: 4, samples: 5, maxBlocks: 9, edits: 3, masks: 2}
	at := place(s)
	if len(at) != len(stepInputs(hybrid, 3).all()) || at["tokens"] != 0 {
		t.Errorf("%d names for %d arrays, tokens at %d; want a name for each and tokens first", len(at), len(stepInputs(hybrid, 3).all()), at["tokens"])
	}
	other := place(shape{rows: 33, seqs: 9, outputs: 7, samples: 2, maxBlocks: 16, edits: 1})
	for _, name := range []string{"tokens", "positions", "slots", "index"} {
		if other[name] != at[name] {
			t.Errorf("%s, which pieces read, lies at %d and, with other sequences of as many rows and outputs, at %d", name, at[name], other[name])
		}
	}
	// Edits and masks are counted when the others have their places already.
	s.edits, s.masks = 100, 4
	edited := place(s)
	for _, a := range stepInputs(hybrid, 3).early {
		if edited[a.name] != at[a.name] {
			t.Errorf("%s lies at %d, and with more edits and masks at %d", a.name, at[a.name], edited[a.name])
		}
	}
}

// A step of three sequences in a bucket of five: one decodes, with two drafts; one follows a chunk whose draws are not counted yet, with one; one
// is scored.
func TestInputsAreFilledAndPadded(t *testing.T) {
	words := func(values ...float32) (out []int32) {
		for _, v := range values {
			out = append(out, float(v))
		}
		return out
	}
	c := running(t, 10, 7, 12)
	p := sample.Params{Temperature: 0.5, TopP: 0.25, MinP: 0.125, TopNSigma: 1.5, MinEntropy: 2.5, XTCProbability: 0.75, XTCThreshold: 0.375, TopK: 7, RepetitionPenalty: 2, Seed: 3<<32 | 4}
	hot := &task{request: Request{Sampling: p}, edits: sample.NewEdits(p, fakeVocab, []int32{8, 9}, nil, nil), guide: &guide{masks: [][]uint32{{5, 1 << 31}}, rows: 1, ready: true}}
	cold := &task{request: Request{Sampling: sample.Greedy()}, guide: &guide{masks: [][]uint32{{1, 1}}, rows: 1}}
	b := batch{
		shape: shape{rows: 10, seqs: 5, outputs: 9, drawing: 3, samples: 6, maxBlocks: 3, edits: 2, masks: 1}, block: 4, pitch: 9,
		chunks: []sched.Chunk{
			{Sequence: c[0], Start: 7, Rows: 3, Outputs: 3, Draws: 3, Follows: -1, Drafted: 1, Accepted: 1},
			{Sequence: c[1], Start: 5, Rows: 2, Outputs: 2, Draws: 2, Follows: 2, Drafted: 2},
			{Sequence: c[2], Start: 2, Rows: 3, Outputs: 3, Follows: -1, Drafted: -1},
		},
		tasks: []*task{cold, hot, cold}, sampled: []*task{cold, cold, cold, hot, cold},
	}
	for i, t := range b.sampled {
		if b.rows = append(b.rows, late{}); i == 3 {
			b.rows[i] = late{t.edits.Now(), t.mask(0)}
		}
	}
	slot := func(q *sched.Sequence, t int32) int32 { return q.Blocks()[t/4]*4 + t%4 }
	table := func(q *sched.Sequence) []int32 { return append(slices.Clone(q.Blocks()), 0, 0, 0)[:3] }
	want := map[string][]int32{
		"tokens":      {c[0].Tokens[7], -1 - 10, -1 - 19, -1 - 2, -1 - 11, c[2].Tokens[2], c[2].Tokens[3], c[2].Tokens[4], 0, 0},
		"positions":   {7, 8, 9, 5, 6, 2, 3, 4, 0, 0},
		"slots":       {slot(c[0], 7), slot(c[0], 8), slot(c[0], 9), slot(c[1], 5), slot(c[1], 6), slot(c[2], 2), slot(c[2], 3), slot(c[2], 4), -1, -1},
		"index":       {0, 1, 2, 3, 4, 5, 6, 7, -1},
		"seed":        {0, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0},
		"starts":      {0, 3, 5, 8, 8, 8},
		"lengths":     {10, 7, 5, 0, 0},
		"tables":      slices.Concat(table(c[0]), table(c[1]), table(c[2]), make([]int32, 6)),
		"states":      {c[0].Slot(), c[1].Slot(), c[2].Slot(), -1, -1},
		"temperature": words(0, 0, 0, 0.5, 0, 0),
		"top_p":       words(1, 1, 1, 0.25, 1, 1),
		"min_p":       words(0, 0, 0, 0.125, 0, 0),
		"top_n_sigma": words(0, 0, 0, 1.5, 0, 0), "min_entropy": words(0, 0, 0, 2.5, 0, 0),
		"xtc_probability": words(0, 0, 0, 0.75, 0, 0), "xtc_threshold": words(0.1, 0.1, 0.1, 0.375, 0.1, 0),
		"top_k":        {0, 0, 0, 7, 0, 0},
		"position":     {8, 9, 10, 6, 7, 0},
		"follows":      {-1, 2, -1, -1, -1},
		"drafts":       {2, 1, 0, 0, 0},
		"accepted":     {1, 0, 0, 0, 0},
		"draw_starts":  {0, 3, 5, 5},
		"behind":       {0, 0, 0, 0, 0, c[2].Tokens[3], c[2].Tokens[4], c[2].Tokens[5], 0, 0},
		"draft_starts": {0, 1, 2, 2, 3, 3},
		"room":         {12, 8, 12, 0, 0},
		"edit_starts":  {0, 0, 0, 0, 2, 2, 2},
		"edit_token":   {8, 9},
		"edit_bias":    words(0, 0),
		"edit_factor":  words(2, 2),
		"edit_offset":  words(0, 0),
		"mask_row":     {-1, -1, -1, 0, -1, -1},
		"mask":         {5, math.MinInt32},
	}
	for _, a := range stepInputs(hybrid, 3).all() {
		got := make([]int32, a.words(&b.shape))
		for i := range got {
			got[i] = math.MinInt32 // of a step before
		}
		if a.fill(got, &b); !slices.Equal(got, want[a.name]) {
			t.Errorf("%s: got %v, want %v", a.name, got, want[a.name])
		}
	}
}

// running is sequences that have begun to run, with blocks for prompts of so many tokens.
func running(t *testing.T, prompts ...int) (out []*sched.Sequence) {
	t.Helper()
	c := cache.New(cache.Sizes{Blocks: 50, BlockSize: 4, Slots: 9}, true)
	s := sched.New(sched.Limits{BatchTokens: 100, Sequences: 9, Outputs: 9, Draws: 1, Context: 100, Waiting: 9, WaitingTokens: 100}, c)
	for i, n := range prompts {
		q := &sched.Sequence{MaxTokens: 5}
		for token := range n {
			q.Tokens = append(q.Tokens, int32(100*i+token))
		}
		if err := s.Add(q); err != nil {
			t.Fatal(err)
		}
		out = append(out, q)
	}
	s.Next()
	return out
}

// A further array is a further row: it has a place and a size, is filled and padded, reaches the device and is pointed at.
func TestFurtherInput(t *testing.T) {
	var at op.Ptr // a field of model.Inputs or op.Sample, had it one
	further := input{"state",
		func(s *shape) int { return s.seqs },
		func(to []int32, b *batch) {
			for i := range b.chunks {
				to[i] = 100 + int32(b.chunks[i].Sequence.Tag)
			}
			pad(to[len(b.chunks):], -1)
		},
		func(*launches) *op.Ptr { return &at },
	}
	cases := []struct {
		name    string
		add     func(*inputs)
		penalty float32 // which makes a step late
	}{
		{"early", func(in *inputs) { in.early = append(in.early, further) }, 0},
		{"early, in a late step", func(in *inputs) { in.early = append(in.early, further) }, 1},
		{"late", func(in *inputs) { in.late = append(in.late, further) }, 1},
		{"late, in a step that is queued whole", func(in *inputs) { in.late = append(in.late, further) }, 0},
	}
	for _, test := range cases {
		for _, slow := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, slow %v", test.name, slow), func(t *testing.T) {
				d := &tapeDevice{Device: host.New(0), slow: slow}
				ahead := &aheadDevice{graphDevice: &graphDevice{tapeDevice: d}}
				e, err := build(Config{Device: ahead, Set: tapeSampler{oracle.New(op.F32), d}, Model: newFakeModel(d), KVType: op.F32, BlockSize: 4, Blocks: 100, Options: Options{GraphSizes: []int{4}}})
				if err != nil {
					t.Fatal(err)
				}
				test.add(&e.runner.inputs)
				s := shape{rows: 3, seqs: 20, outputs: 3, samples: 3, maxBlocks: 1}
				if got, want := wordsOf(e.runner.inputs.all(), s)-wordsOf(stepInputs(e.runner.layout, 1).all(), s), 32; got != want {
					t.Errorf("20 sequences take %d more words, want %d", got, want)
				}
				for i := range int32(3) {
					r := greedy([]int32{i, 2, 3}, 9)
					r.Sampling.FrequencyPenalty = test.penalty
					if _, err := e.Submit(t.Context(), r); err != nil {
						t.Fatal(err)
					}
				}
				for range 5 { // the prompts, and decode steps that are recorded and replayed
					e.step()
				}
				if err := e.runner.stream.Sync(); err != nil {
					t.Fatal(err)
				}
				bytes := make([]byte, 4*4)
				if err := d.CopyOut(bytes, at); err != nil {
					t.Fatal(err)
				}
				var got []int32
				for b := range slices.Chunk(bytes, 4) {
					got = append(got, int32(binary.LittleEndian.Uint32(b)))
				}
				if want := []int32{100, 101, 102, -1}; !slices.Equal(got, want) || e.runner.recorder.replayedFull.Load() == 0 {
					t.Errorf("got %v, want %v; %d steps were replayed", got, want, e.runner.recorder.replayedFull.Load())
				}
			})
		}
	}
}
