package engine

import (
	"math"

	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
)

// Rows and sequences of a bucket that a plan does not use compute a token that is written nowhere, belongs to no sequence
// and gives no logits. That is what the padding of each array says.

// fillTokens writes a reference where a token is still being sampled: see op.Resolve.
func fillTokens(to []int32, b *batch) {
	row := 0
	for i := range b.chunks {
		c := &b.chunks[i]
		if c.Follows >= 0 {
			to[row] = int32(-1 - c.Follows)
		} else {
			copy(to[row:], c.Sequence.Tokens[c.Start:c.Start+c.Rows])
		}
		row += c.Rows
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

// fillIndex puts rows that are sampled from first, so that the sampler reads a dense matrix.
func fillIndex(to []int32, b *batch) {
	row, sampled, other := 0, 0, len(b.sampled)
	for i := range b.chunks {
		c := &b.chunks[i]
		row += c.Rows
		scored := row // behind those that are not sampled from
		if c.Sample {
			scored--
			to[sampled] = int32(scored)
			sampled++
		}
		for r := row - c.Outputs; r < scored; r++ {
			to[other] = int32(r)
			other++
		}
	}
	pad(to[other:], -1)
}

// scoredRows is how many of a chunk's outputs are not sampled from.
func scoredRows(c sched.Chunk) int { return c.Outputs - sampleRows(c) }

func sampleRows(c sched.Chunk) int {
	if c.Sample {
		return 1
	}
	return 0
}

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

func fillMinP(to []int32, b *batch) {
	for i, t := range b.sampled {
		to[i] = float(t.request.Sampling.MinP)
	}
	clear(to[len(b.sampled):])
}

func fillTopK(to []int32, b *batch) {
	for i, t := range b.sampled {
		to[i] = t.request.Sampling.TopK
	}
	clear(to[len(b.sampled):])
}

// fillDrawPositions writes where the tokens will stand that are sampled.
func fillDrawPositions(to []int32, b *batch) {
	sampled := 0
	for i := range b.chunks {
		if c := &b.chunks[i]; c.Sample {
			to[sampled] = int32(c.Start + c.Rows)
			sampled++
		}
	}
	clear(to[sampled:])
}

func fillEditStarts(to []int32, b *batch) {
	edit := 0
	for i, t := range b.sampled {
		to[i] = int32(edit)
		edit += t.edits.Now().Len()
	}
	pad(to[len(b.sampled):], int32(edit))
}

func fillEditTokens(to []int32, b *batch) {
	for _, t := range b.sampled {
		to = to[copy(to, t.edits.Now().Token):]
	}
}

// fillEdits writes one value of each edit.
func fillEdits(values func(sample.Entries) []float32) func(to []int32, b *batch) {
	return func(to []int32, b *batch) {
		edit := 0
		for _, t := range b.sampled {
			for _, v := range values(t.edits.Now()) {
				to[edit] = float(v)
				edit++
			}
		}
	}
}

func pad(to []int32, value int32) {
	for i := range to {
		to[i] = value
	}
}

func float(v float32) int32 { return int32(math.Float32bits(v)) }
