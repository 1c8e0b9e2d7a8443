package optest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// profiled is a profiler on a device that records steps, with zeros to work on; open counts steps that were recorded and not closed.
func profiled(t *testing.T) (set *optest.Profiler, d recorder, stream device.Stream, zeros op.Ptr, open *int) {
	t.Helper()
	captured, open := 0, new(int)
	d = recorder{host.New(0), false, &captured, open}
	stream, err := d.Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	if zeros, err = d.Alloc(1 << 20); err != nil {
		t.Fatal(err)
	}
	return optest.NewProfiler(oracle.New(op.BF16), nil, op.BF16), d, stream, zeros, open
}

// A prefill and a step of two sequences: only a decode step of as many as are expected is measured, each kind of call once.
func TestProfilerMeasuresADecodeStep(t *testing.T) {
	const hidden, vocab, width, length = 32, 64, 16, 5
	set, d, stream, zeros, open := profiled(t)
	lengths, err := d.Alloc(64)
	if err != nil {
		t.Fatal(err)
	}
	// Starts 0, 1, 2, then two lengths of 5.
	if err := d.CopyIn(lengths, []byte{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, length, 0, 0, 0, length, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	weight := func(rows int32) op.Weight {
		return op.Weight{Data: zeros, Scheme: op.SchemeBF16, Rows: rows, Cols: hidden, Count: 1}
	}
	step := func(rows, samples int32) {
		set.Resolve(stream, op.Resolve{Out: zeros, In: zeros + 5<<16, Sampled: zeros, Count: rows, Rows: rows, Samples: 1})
		set.Embedding(stream, op.Embedding{Out: zeros + 1<<16, IDs: zeros, W: weight(vocab), Rows: rows})
		for range 3 {
			set.Linear(stream, op.Linear{Out: zeros + 2<<16, In: zeros + 1<<16, W: weight(48), Rows: rows, OutPitch: 48})
		}
		set.PagedAttention(stream, op.PagedAttention{
			Out: zeros + 3<<16, Q: zeros, K: zeros, V: zeros, Starts: lengths, Lengths: lengths + 12, Tables: zeros,
			Rows: rows, QPitch: 2 * width, Seqs: 2, MaxBlocks: 1, Heads: 2, KVHeads: 1, HeadDim: width, Blocks: 4, BlockSize: 8, KVType: op.BF16, Scale: 1})
		set.Sample(stream, op.Sample{
			Out: zeros + 4<<16, Logits: zeros, Temperature: zeros, TopP: zeros, MinP: zeros, TopNSigma: zeros, MinEntropy: zeros, XTCProbability: zeros, XTCThreshold: zeros, TopK: zeros, Seed: zeros, Position: zeros,
			EditStarts: zeros, EditToken: zeros, EditBias: zeros, EditFactor: zeros, EditOffset: zeros, Rows: samples, Vocab: vocab})
	}
	set.Expect(d, optest.Step{Tokens: 2, Sequences: 2, Draws: 2})
	step(7, 2) // a prefill
	step(1, 1)
	if r, err := set.Result(); err == nil || !strings.Contains(err.Error(), "no step read 2 tokens of 2 sequences") {
		t.Fatalf("before the step: got %v, %v, want an error", r, err)
	}
	step(2, 2)
	step(2, 2) // is not measured any more
	r, err := set.Result()
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		name         string
		calls        int
		bytes, flops int64
	}
	var got []row
	for _, x := range r.Rows {
		got = append(got, row{x.Op + " " + x.Case, x.Calls, x.Bytes, x.Flops})
		if x.Time.Median <= 0 || x.Time.Min > x.Time.Median {
			t.Errorf("%s: a time of %v makes no sense", x.Op, x.Time)
		}
	}
	slices.SortFunc(got, func(a, b row) int { return strings.Compare(a.name, b.name) })
	want := []row{
		{"Embedding bf16 64×32 rows 2", 1, 2*4 + 2*2*2*hidden, 0},
		{"Linear bf16 48×32 rows 2", 3, 2 * (48*hidden + 2*hidden + 2*48), 2 * 2 * 48 * hidden},
		{"PagedAttention 2/1×16 sequences 2 rows 2", 1, 2*2*length*width*2 + 2*2*2*2*width + 4*(3+2+2), 4 * 2 * length * 2 * width},
		{"Resolve count 2 rows 2", 1, 4 + 2*2*4, 0},
		{"Sample vocabulary 64 rows 2", 1, 2*(4*vocab+4+8*4+8+4) + 3*4, 0},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if r.Tokens != 2 || r.Sequences != 2 || r.Time.Median <= 0 || r.Drafting.Median != 0 || *open != 0 {
		t.Errorf("got %d sequences, a step of %v and %d recorded steps left open, want 2, some time and none", r.Sequences, r.Time, *open)
	}
	set.Expect(d, optest.Step{Tokens: 7, Sequences: 2, Draws: 2}) // a prompt
	step(2, 2)
	step(7, 2)
	if r, err = set.Result(); err != nil || r.Tokens != 7 || r.Sequences != 2 {
		t.Errorf("got %d tokens of %d sequences, %v; want 7 of 2", r.Tokens, r.Sequences, err)
	}
}

// Steps with drafts end with the last of them, which is looked up where drafts are trimmed; a step with fewer is another step.
func TestProfilerMeasuresDrafts(t *testing.T) {
	const hidden, vocab = 32, 64
	set, d, stream, zeros, open := profiled(t)
	at := func(n int) op.Ptr { return zeros + op.Ptr(n)<<12 }
	embed := func(rows int32) {
		set.Embedding(stream, op.Embedding{Out: at(1), IDs: zeros, W: op.Weight{Data: zeros, Scheme: op.SchemeBF16, Rows: vocab, Cols: hidden, Count: 1}, Rows: rows})
	}
	draw := func(rows int32) {
		set.Sample(stream, op.Likeliest(at(9), at(16), at(20), rows, vocab))
	}
	step := func(rows, draws, chunks int32, drafts int, trimmed bool) {
		embed(rows)
		set.RMSNorm(stream, op.RMSNorm{Out: at(2), In: at(1), Scale: zeros, Rows: rows, Cols: hidden, Eps: 1})
		if chunks > 0 {
			draw(draws)
			set.Accept(stream, op.Accept{Counts: at(3), Next: at(4), Last: at(5), Draws: at(6), Behind: at(7), Starts: zeros, Index: zeros, Tokens: zeros, Position: zeros,
				Rows: rows, Samples: draws, Chunks: chunks})
		}
		for n := range max(drafts, 1) { // the head takes in the rows of every step
			if n > 0 {
				rows = chunks
			}
			embed(rows)
			set.NormPair(stream, op.NormPair{Out: at(10), In: at(1), Other: at(1), Scale: zeros, OtherScale: zeros, Rows: rows, OtherRows: rows, Cols: hidden, Eps: 1})
			if drafts == 0 {
				return
			}
			draw(chunks)
			if trimmed {
				set.Lookup(stream, op.Lookup{IDs: at(8), Table: zeros, Rows: chunks, Count: vocab})
			}
		}
	}
	calls := func(r optest.Profile) (all []string) {
		for _, x := range r.Rows {
			all = append(all, fmt.Sprintf("%d %s %s", x.Calls, x.Op, x.Case))
		}
		slices.Sort(all)
		return all
	}
	want := []string{
		"1 Accept rows 6", "1 Embedding bf16 64×32 rows 2", "1 NormPair columns 32 rows 2", "1 NormPair columns 32 rows 6",
		"1 RMSNorm columns 32 rows 6", "1 Sample vocabulary 64 rows 6", "2 Embedding bf16 64×32 rows 6", "2 Sample vocabulary 64 rows 2",
	}
	for _, trimmed := range []bool{false, true} {
		set.Expect(d, optest.Step{Tokens: 6, Sequences: 2, Draws: 6, Drafts: 2, Trimmed: trimmed})
		step(6, 0, 0, 0, trimmed) // a part of a prompt
		step(6, 2, 2, 2, trimmed) // prompts
		step(6, 6, 2, 1, trimmed) // fewer drafts
		step(6, 6, 2, 0, trimmed)
		step(3, 3, 1, 2, trimmed)
		step(5, 5, 2, 2, trimmed)
		if r, err := set.Result(); err == nil {
			t.Fatalf("trimmed %v: got a profile of %+v before the step", trimmed, r.Step)
		}
		step(6, 6, 2, 2, trimmed)
		step(6, 6, 2, 2, trimmed)
		r, err := set.Result()
		if err != nil {
			t.Fatal(err)
		}
		if want := (optest.Step{Tokens: 6, Sequences: 2, Draws: 6, Drafts: 2, Trimmed: trimmed}); r.Step != want || r.Time.Median <= 0 || r.Drafting.Median <= 0 || *open != 0 {
			t.Errorf("got %+v in %v, of which %v draft, want %+v; %d recorded steps are open", r.Step, r.Time, r.Drafting, want, *open)
		}
		if trimmed {
			want = slices.Insert(want, 7, "2 Lookup count 64 rows 2")
		}
		if got := calls(r); !slices.Equal(got, want) {
			t.Errorf("trimmed %v: got %q\nwant %q", trimmed, got, want)
		}
	}
}
