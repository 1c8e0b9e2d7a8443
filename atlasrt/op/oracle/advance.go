package oracle

import "github.com/atlas-inference/atlas/atlasrt/op"

// Advance moves sequences by the drafts that the step before accepted.
func (*Set) Advance(_ op.Stream, x op.Advance) {
	positions, slots, draws := slice[int32](x.Positions, int(x.Rows)), slice[int32](x.Slots, int(x.Rows)), slice[int32](x.DrawPositions, int(x.Draws))
	lengths, accepted := slice[int32](x.Lengths, int(x.Seqs)), slice[int32](x.Accepted, int(x.Seqs))
	starts, tables := slice[int32](x.Starts, int(x.Seqs)+1), slice[int32](x.Tables, int(x.Seqs)*int(x.MaxBlocks))
	counts := slice[int32](x.Counts, int(x.Chunks))
	for s, chunk := range slice[int32](x.Follows, int(x.Seqs)) {
		if chunk < 0 || chunk >= x.Chunks {
			continue
		}
		n := counts[chunk] - 1
		lengths[s] += n
		accepted[s] = n
		table := tables[s*int(x.MaxBlocks):]
		for r := starts[s]; r < starts[s+1]; r++ {
			positions[r] += n
			draws[r] += n
			slots[r] = table[positions[r]/x.BlockSize]*x.BlockSize + positions[r]%x.BlockSize
		}
	}
}
