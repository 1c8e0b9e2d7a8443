package optest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// A prefill and a step of two sequences: only a decode step of as many as are expected is measured, each kind of call once.
func TestProfilerMeasuresADecodeStep(t *testing.T) {
	const hidden, vocab, width, length = 32, 64, 16, 5
	captured, open := 0, 0
	d := recorder{host.New(0), false, &captured, &open}
	stream, err := d.Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	zeros, err := d.Alloc(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	lengths, err := d.Alloc(64)
	if err != nil {
		t.Fatal(err)
	}
	// Starts 0, 1, 2, then two lengths of 5.
	if err := d.CopyIn(lengths, []byte{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, length, 0, 0, 0, length, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	set := optest.NewProfiler(oracle.New(op.BF16), nil, op.BF16)
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
	set.Expect(d, 2, 2)
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
	if r.Tokens != 2 || r.Sequences != 2 || r.Step.Median <= 0 || open != 0 {
		t.Errorf("got %d sequences, a step of %v and %d recorded steps left open, want 2, some time and none", r.Sequences, r.Step, open)
	}
	set.Expect(d, 7, 2) // a prompt
	step(2, 2)
	step(7, 2)
	if r, err = set.Result(); err != nil || r.Tokens != 7 || r.Sequences != 2 {
		t.Errorf("got %d tokens of %d sequences, %v; want 7 of 2", r.Tokens, r.Sequences, err)
	}
}
