package instance

import (
	"math"
	"reflect"

	"github.com/atlas-inference/atlas/atlasrt/internal/calls"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/generated/ops"
)

// measure finds the scratch memory that a launch of any step may need: the set is asked for the most of every call that the largest step
// makes.
//
// Which fused operations are served depends on a step's sizes, and what is called instead on that. So the step is queued once with
// none of them served, and once for each with that one alone.
func (p *Prepared) measure() error {
	rows := int32(p.Sizes.MaxBatchTokens)
	in := p.inputs(min(int32(p.Sizes.MaxSequences), rows), rows, p.Sizes.MaxContext)
	in.Outputs, in.Blocks = rows, math.MaxInt32 // how many blocks fit is known once scratch memory is planned
	var stream calls.Stream
	for _, served := range append(ops.Names(), "") {
		p.tap.Each = func(q op.Stream, args any) bool {
			p.Scratch = max(p.Scratch, p.tap.Set.Scratch(args))
			ops.Call(p.tap.Set, q, args) // which fails where there is no kernel
			return reflect.TypeOf(args).Name() == served
		}
		p.counted.Forward(&stream, in)
		p.tap.Sample(&stream, op.Sample{Rows: in.Seqs * int32(1+p.Sizes.Drafts), Vocab: p.Layout.Vocab, Edits: math.MaxInt32})
		p.draft(&stream, in)
	}
	return stream.Err
}

// draft queues what counts and drafts behind a step that draws of each of its sequences.
func (p *Prepared) draft(q op.Stream, in *model.Inputs) {
	if p.drafter == nil {
		return
	}
	drafts := int32(p.Sizes.Drafts)
	p.tap.Accept(q, op.Accept{Rows: in.Rows, Samples: in.Seqs * (drafts + 1), Chunks: in.Seqs})
	p.tap.DraftRows(q, op.DraftRows{Rows: in.Rows, Chunks: in.Seqs, Seqs: in.Seqs, MaxBlocks: in.MaxBlocks, Passes: drafts - 1, Pitch: in.Seqs, BlockSize: in.BlockSize})
	d := &model.Drafting{Step: in, Chunks: in.Seqs, Drafts: drafts, Pitch: in.Seqs}
	for _, kept := range p.drafter.Memory() {
		d.Memory = append(d.Memory, make([]op.Ptr, len(kept.Arrays)))
	}
	p.drafter.Draft(q, d)
}

// inputs is a step of rows that seqs sequences of so many tokens each share, and that gives the logits of one row of each. It is not to be
// run: nothing lies where it says.
func (p *Prepared) inputs(seqs, rows int32, tokens int) *model.Inputs {
	in := &model.Inputs{
		Rows: rows, Seqs: seqs, Outputs: seqs, MaxBlocks: int32((tokens + p.Sizes.BlockSize - 1) / p.Sizes.BlockSize),
		BlockSize: int32(p.Sizes.BlockSize), KVType: p.Sizes.KVType,
	}
	for _, kept := range p.Layout.Memory {
		in.Memory = append(in.Memory, make([]op.Ptr, len(kept.Arrays)))
	}
	in.Blocks = in.Seqs * in.MaxBlocks
	if p.Layout.Keeps(model.PerSequence) {
		in.StateSlots = seqs
	}
	return in
}

// Calls lists what one step calls: of sequences that have so many new rows each, and so many tokens in all. The target must be one that
// Hardware.Ask gave.
func (p *Prepared) Calls(sequences, rowsEach, tokens int) ([]calls.Call, error) {
	list := calls.List{Set: p.tap.Set, Act: p.Target.Bundle.Activations, Kernels: p.Target.Bundle.Kernels, Tensors: p.Counter.Tensors, Context: tokens}
	p.tap.Each = list.Call
	var stream calls.Stream
	in := p.inputs(int32(sequences), int32(sequences*rowsEach), tokens)
	p.counted.Forward(&stream, in)
	p.tap.Sample(&stream, op.Sample{Rows: in.Seqs, Vocab: p.Layout.Vocab})
	p.draft(&stream, in)
	return list.Calls, stream.Err
}
