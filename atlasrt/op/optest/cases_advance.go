package optest

import (
	"fmt"
	"math"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// advanceCases mix sequences that follow a chunk with prompts, sequences that decode at a known place, and padding. Rows of the first are the
// first ones; behind them there may be more draws and fewer.
func advanceCases() []*Case {
	var list []*Case
	for _, s := range []struct{ following, drafts, others, padding, block int32 }{
		{1, 0, 0, 0, 16}, {1, 3, 0, 0, 16}, {3, 1, 2, 1, 4}, {5, 3, 0, 3, 1}, {0, 2, 4, 0, 16}, {64, 1, 3, 9, 16}, {70, 5, 1, 0, 32}, {300, 40, 0, 2, 7},
	} {
		seqs := s.following + s.others + s.padding
		const context = 600
		tables := (context + s.block - 1) / s.block
		chunks := seqs + 2
		var starts, lengths, positions, slots, draws, follows, counts []int32
		for i := range chunks {
			counts = append(counts, 1+i*7%(s.drafts+1))
		}
		for i := range seqs {
			starts = append(starts, int32(len(positions)))
			rows, chunk := int32(0), int32(-1)
			switch {
			case i < s.following:
				rows, chunk = 1+i%(s.drafts+1), i*5%chunks
			case i < s.following+s.others:
				rows, chunk = 2+i%5, []int32{-1, math.MinInt32, chunks, math.MaxInt32}[i%4]
			}
			first := i * 37 % (context - rows - s.drafts)
			for j := range rows {
				positions, slots = append(positions, first+j), append(slots, -1-j)
			}
			lengths, follows = append(lengths, first+rows), append(follows, chunk)
		}
		starts = append(starts, int32(len(positions)))
		rows := int32(len(positions)) + s.padding // of a bucket: they belong to no sequence
		for range s.padding {
			positions, slots = append(positions, 0), append(slots, -1)
		}
		for d := range starts[s.following] + s.others {
			draws = append(draws, 1000+d)
		}
		c := of(fmt.Sprintf("%d of %d follow, %d drafts, blocks of %d", s.following, seqs, s.drafts, s.block),
			op.Advance{Rows: rows, Draws: int32(len(draws)), Seqs: seqs, MaxBlocks: tables, Chunks: chunks, BlockSize: s.block})
		blocks := make([]int32, seqs*tables)
		for i := range blocks {
			blocks[i] = int32(uint32(i) * 2654435761 >> 8)
		}
		for name, values := range map[string][]int32{"Positions": positions, "Slots": slots, "DrawPositions": draws, "Lengths": lengths,
			"Starts": starts, "Tables": blocks, "Follows": follows, "Counts": counts, "Accepted": make([]int32, seqs)} {
			set(c, name, values)
		}
		list = append(list, c)
	}
	return list
}
