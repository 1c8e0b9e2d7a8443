package engine

import "math/bits"

// shape is what kernels of one step are launched with.
type shape struct {
	rows, seqs, outputs, samples, maxBlocks, edits int

	box       int  // the mailbox that it goes through
	decode    bool // every row is the one last token of its sequence
	recording Recording
}

// inputs says where each array of a step lies in its staging buffer, counted in 32-bit words.
//
// A step's arrays lie packed behind each other, so that one copy brings them all, tokens first and edits last. Equal shapes have equal places, which
// is what lets a recorded step read the next one's inputs. Those that depend on rows and outputs alone come first: pieces
// read no others.
type inputs struct {
	seed                                                    int // i64
	tokens, positions, slots, starts, lengths, tables       int
	index                                                   int
	temperature, topP, minP, topK, position                 int
	editStarts, editToken, editBias, editFactor, editOffset int
	words                                                   int // in all
}

func (s shape) layout() (at inputs) {
	place := func(words int) int {
		const line = 16 // words: arrays start at multiples of 64 bytes
		start := at.words
		at.words += (words + line - 1) &^ (line - 1)
		return start
	}
	at.tokens = place(s.rows)
	at.positions = place(s.rows)
	at.slots = place(s.rows)
	at.index = place(s.outputs)
	at.seed = place(2 * s.samples)
	at.starts = place(s.seqs + 1)
	at.lengths = place(s.seqs)
	at.tables = place(s.seqs * s.maxBlocks)
	at.temperature = place(s.samples)
	at.topP = place(s.samples)
	at.minP = place(s.samples)
	at.topK = place(s.samples)
	at.position = place(s.samples)
	at.editStarts = place(s.samples + 1)
	at.editToken = place(s.edits)
	at.editBias = place(s.edits)
	at.editFactor = place(s.edits)
	at.editOffset = place(s.edits)
	return at
}

// unedited is how many words there are before those of edits.
func (at inputs) unedited() int { return at.editToken }

// bucketRows rounds the rows of a decode step up, so that few recorded steps serve every batch. Rows that are there for
// the bucket alone are computed like the others, so there are at most a quarter more than are wanted.
func bucketRows(rows, limit int) int {
	step := max(powerOfTwo(rows)/8, 1)
	return min((rows+step-1)/step*step, limit)
}

// bucketBlocks rounds the length of block tables up, for the same reason. What lies behind a sequence's own length is not read.
func bucketBlocks(blocks, limit int) int { return min(powerOfTwo(max(blocks, 8)), limit) }

// powerOfTwo is the least power of two that is not less than n.
func powerOfTwo(n int) int { return 1 << bits.Len(uint(n-1)) }
