package instance

import (
	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// measured is a set whose attention asks a stream that measures for all the scratch memory that any step may need, whatever its rows,
// sequences and blocks: which kernel serves a step depends on all three, and one for few rows may need more than one for many.
type measured struct {
	bundle.Set
	rows, sequences, blocks int32 // most of a step
	seen                    map[op.PagedAttention]bool
}

// PagedAttention implements op.Attention.
func (m *measured) PagedAttention(q op.Stream, a op.PagedAttention) {
	if a.Rows, a.Seqs, a.MaxBlocks, a.Blocks = 0, 0, 0, 0; m.seen[a] {
		return
	}
	m.seen[a] = true
	for a.MaxBlocks = 1; a.MaxBlocks > 0; a.MaxBlocks = further(a.MaxBlocks, m.blocks) {
		for a.Seqs = 1; a.Seqs > 0; a.Seqs = further(a.Seqs, m.sequences) {
			a.Blocks = a.Seqs * a.MaxBlocks
			for a.Rows = a.Seqs; a.Rows > 0; a.Rows = further(a.Rows, m.rows) {
				m.Set.PagedAttention(q, a)
			}
		}
	}
}

// further is the next size to measure, an eighth more or, where that is less, one; the last is most, then comes 0.
func further(n, most int32) int32 {
	if n >= most {
		return 0
	}
	return min(n+max(n/8, 1), most)
}

// measure finds the scratch memory that a launch of any step may need, by queueing steps on a stream that runs nothing. Between two sizes
// an operation may need an eighth more.
func (p *Prepared) measure(m model.Model, set *measured) error {
	var stream load.Measure
	set.rows, set.sequences = int32(p.Sizes.MaxBatchTokens), int32(p.Sizes.MaxSequences)
	set.blocks = int32((p.Sizes.MaxContext + p.Sizes.BlockSize - 1) / p.Sizes.BlockSize)
	for rows := int32(1); rows > 0; rows = further(rows, set.rows) {
		seqs := min(rows, set.sequences)
		m.Forward(&stream, &model.Inputs{
			Rows: rows, Seqs: seqs, Outputs: seqs, MaxBlocks: set.blocks, Blocks: set.blocks * seqs, BlockSize: int32(p.Sizes.BlockSize),
			KVType: p.Sizes.KVType, Cache: make([]model.Cache, len(p.Layout.KV)),
		})
		p.Target.Set.Sample(&stream, op.Sample{Rows: seqs, Vocab: p.Layout.Vocab, Edits: seqs})
	}
	p.Scratch = stream.Most + stream.Most/8
	return stream.Err
}
