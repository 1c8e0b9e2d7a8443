package instance

import (
	"math"
	"reflect"

	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/generated/ops"
)

// measure finds the scratch memory that a launch of any step may need: the set is asked for the most of every call that a step of
// most sizes makes. m was constructed with set.
//
// Which fused operations are served depends on a step's sizes, and what is called instead on that. So the step is queued once with
// none of them served, and once for each with that one alone.
func (p *Prepared) measure(m model.Model, set *ops.Tap) error {
	rows := int32(p.Sizes.MaxBatchTokens)
	seqs := min(int32(p.Sizes.MaxSequences), rows)
	in := &model.Inputs{
		Rows: rows, Seqs: seqs, Outputs: rows, MaxBlocks: int32((p.Sizes.MaxContext + p.Sizes.BlockSize - 1) / p.Sizes.BlockSize),
		Blocks:    math.MaxInt32, // how many fit is known once scratch memory is planned
		BlockSize: int32(p.Sizes.BlockSize), KVType: p.Sizes.KVType, Cache: make([]model.Cache, len(p.Layout.KV)),
	}
	var stream load.Measure
	for _, served := range append(ops.Names(), "") {
		set.Each = func(q op.Stream, args any) bool {
			p.Scratch = max(p.Scratch, set.Set.Scratch(args))
			ops.Call(set.Set, q, args) // which fails where there is no kernel
			return reflect.TypeOf(args).Name() == served
		}
		m.Forward(&stream, in)
		set.Sample(&stream, op.Sample{Rows: seqs, Vocab: p.Layout.Vocab, Edits: math.MaxInt32})
	}
	return stream.Err
}
