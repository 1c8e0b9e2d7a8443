package engine

import (
	"math"

	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
)

// Rows and sequences of a bucket that a plan does not use compute a token that is written nowhere, belongs to no sequence
// and gives no logits. That is what the padding of each array says.

// fillTokens writes references where a token is still being drawn, and for drafts: see op.Resolve. The step before leaves the last token that
// counts of each chunk, then the first draft behind each, and so on.
func fillTokens(to []int32, b *batch) {
	row := 0
	for i := range b.chunks {
		c := &b.chunks[i]
		drafts := row + c.Rows - c.Drafts()
		if c.Follows >= 0 {
			to[row] = int32(-1 - c.Follows)
		} else {
			copy(to[row:drafts], c.Sequence.Tokens[c.Start:])
		}
		row += c.Rows
		for r := drafts; r < row; r++ {
			to[r] = int32(-1 - (r-drafts+1)*b.pitch - c.Drafted)
		}
	}
	clear(to[row:])
}

func fillPositions(to []int32, b *batch) {
	row := 0
	for i := range b.chunks {
		c := &b.chunks[i]
		for t := c.Start; t < c.Start+c.Rows; t++ {
			to[row] = int32(t)
			row++
		}
	}
	clear(to[row:])
}

func fillSlots(to []int32, b *batch) {
	row := 0
	for i := range b.chunks {
		c := &b.chunks[i]
		blocks := c.Sequence.Blocks()
		for t := c.Start; t < c.Start+c.Rows; t++ {
			to[row] = blocks[t/b.block]*int32(b.block) + int32(t%b.block)
			row++
		}
	}
	pad(to[row:], -1)
}

// fillIndex puts rows that are drawn from first, so that the sampler reads a dense matrix.
func fillIndex(to []int32, b *batch) {
	row, drawn, other := 0, 0, len(b.sampled)
	for i := range b.chunks {
		c := &b.chunks[i]
		row += c.Rows
		for r := row - c.Draws; r < row; r++ {
			to[drawn] = int32(r)
			drawn++
		}
		for r := row - c.Outputs; r < row-c.Draws; r++ {
			to[other] = int32(r)
			other++
		}
	}
	pad(to[other:], -1)
}

// scoredRows is how many of a chunk's outputs are not drawn from.
func scoredRows(c sched.Chunk) int { return c.Outputs - c.Draws }

func fillStarts(to []int32, b *batch) {
	row := 0
	for i := range b.chunks {
		to[i] = int32(row)
		row += b.chunks[i].Rows
	}
	pad(to[len(b.chunks):], int32(row))
}

func fillLengths(to []int32, b *batch) {
	for i := range b.chunks {
		to[i] = int32(b.chunks[i].Start + b.chunks[i].Rows)
	}
	clear(to[len(b.chunks):])
}

func fillTables(to []int32, b *batch) {
	for i := range b.chunks {
		table := to[i*b.maxBlocks : (i+1)*b.maxBlocks]
		clear(table[copy(table, b.chunks[i].Sequence.Blocks()):])
	}
	clear(to[len(b.chunks)*b.maxBlocks:])
}

func fillStates(to []int32, b *batch) {
	for i := range b.chunks {
		to[i] = b.chunks[i].Sequence.Slot()
	}
	pad(to[len(b.chunks):], -1)
}

func fillSeeds(to []int32, b *batch) {
	for i, t := range b.sampled {
		seed := t.request.Sampling.Seed
		to[2*i], to[2*i+1] = int32(seed), int32(seed>>32)
	}
	clear(to[2*len(b.sampled):])
}

func fillTemperatures(to []int32, b *batch) {
	for i, t := range b.sampled {
		if to[i] = float(t.request.Sampling.Temperature); t.request.Sampling.IsGreedy() {
			to[i] = 0
		}
	}
	clear(to[len(b.sampled):])
}

func fillTopP(to []int32, b *batch) {
	for i, t := range b.sampled {
		to[i] = float(t.request.Sampling.TopP)
	}
	pad(to[len(b.sampled):], float(1))
}

// fillParams writes one of the numbers that choose how tokens are drawn, and that ask for nothing where they are 0.
func fillParams(value func(*sample.Params) float32) func(to []int32, b *batch) {
	return func(to []int32, b *batch) {
		for i, t := range b.sampled {
			to[i] = float(value(&t.request.Sampling))
		}
		clear(to[len(b.sampled):])
	}
}

func fillTopK(to []int32, b *batch) {
	for i, t := range b.sampled {
		to[i] = t.request.Sampling.TopK
	}
	clear(to[len(b.sampled):])
}

// fillDrawPositions writes where the tokens will stand that are drawn.
func fillDrawPositions(to []int32, b *batch) {
	drawn := 0
	for i := range b.chunks {
		c := &b.chunks[i]
		for j := c.Rows - c.Draws; j < c.Rows; j++ {
			to[drawn] = int32(c.Start + j + 1)
			drawn++
		}
	}
	clear(to[drawn:])
}

// fillDrawStarts writes where the draws of each chunk that draws begin.
func fillDrawStarts(to []int32, b *batch) {
	n, drawn := 0, 0
	for i := range b.chunks {
		if c := &b.chunks[i]; c.Draws > 0 {
			to[n] = int32(drawn)
			n, drawn = n+1, drawn+c.Draws
		}
	}
	pad(to[n:], int32(drawn))
}

// fillBehind writes the token behind each row that nothing is drawn from; the others are known on the device alone.
func fillBehind(to []int32, b *batch) {
	row := 0
	for i := range b.chunks {
		c := &b.chunks[i]
		known := c.Rows - c.Draws
		if known > 0 {
			copy(to[row:], c.Sequence.Tokens[c.Start+1:c.Start+1+known])
		}
		clear(to[row+known : row+c.Rows])
		row += c.Rows
	}
	clear(to[row:])
}

// fillDraftStarts writes where the rows of drafting passes begin that sequences have: one where a token is drawn. Padding has those that are
// left.
func fillDraftStarts(to []int32, b *batch) {
	n := 0
	for i := range to {
		to[i] = int32(n)
		if i >= len(b.chunks) && n < b.drawing || i < len(b.chunks) && b.chunks[i].Draws > 0 {
			n++
		}
	}
}

// fillRoom writes how many tokens the blocks in a sequence's table hold.
func fillRoom(to []int32, b *batch) {
	for i := range b.chunks {
		to[i] = int32(min(len(b.chunks[i].Sequence.Blocks()), b.maxBlocks) * b.block)
	}
	clear(to[len(b.chunks):])
}

func fillFollows(to []int32, b *batch) {
	for i := range b.chunks {
		to[i] = int32(b.chunks[i].Follows)
	}
	pad(to[len(b.chunks):], -1)
}

func fillDrafts(to []int32, b *batch) {
	for i := range b.chunks {
		to[i] = int32(b.chunks[i].Drafts())
	}
	clear(to[len(b.chunks):])
}

func fillAccepted(to []int32, b *batch) {
	for i := range b.chunks {
		to[i] = int32(b.chunks[i].Accepted)
	}
	clear(to[len(b.chunks):])
}

func fillEditStarts(to []int32, b *batch) {
	edit := 0
	for i, row := range b.rows {
		to[i] = int32(edit)
		edit += row.edits.Len()
	}
	pad(to[len(b.rows):], int32(edit))
}

func fillEditTokens(to []int32, b *batch) {
	for _, row := range b.rows {
		to = to[copy(to, row.edits.Token):]
	}
}

// fillEdits writes one value of each edit.
func fillEdits(values func(sample.Entries) []float32) func(to []int32, b *batch) {
	return func(to []int32, b *batch) {
		edit := 0
		for _, row := range b.rows {
			for _, v := range values(row.edits) {
				to[edit] = float(v)
				edit++
			}
		}
	}
}

// fillMaskRows numbers the rows that have a mask.
func fillMaskRows(to []int32, b *batch) {
	mask := int32(0)
	for i, row := range b.rows {
		if to[i] = -1; row.mask != nil {
			to[i] = mask
			mask++
		}
	}
	pad(to[len(b.rows):], -1)
}

func fillMasks(to []int32, b *batch) {
	for _, row := range b.rows {
		to = to[copy(to, signed(row.mask)):]
	}
}

func pad(to []int32, value int32) {
	for i := range to {
		to[i] = value
	}
}

func float(v float32) int32 { return int32(math.Float32bits(v)) }
