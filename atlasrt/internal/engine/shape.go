package engine

import "math/bits"

// shape is what kernels of one step are launched with.
type shape struct {
	rows, seqs, outputs, maxBlocks, edits, masks int
	drawing, samples                             int // chunks that draw, and their draws
	drafts                                       int // to be made behind each chunk that draws

	box       int  // the mailbox that it goes through
	decode    bool // a token is drawn from every row
	late      bool // it needs late inputs; edits and masks are 0 until they are staged
	recording Recording
}

// decodes makes it the shape of a decode step of so many sequences.
func (s *shape) decodes(sequences, draws int) {
	s.seqs, s.drawing = sequences, sequences
	s.rows, s.outputs, s.samples = sequences*draws, sequences*draws, sequences*draws
}

// bucketRows rounds the rows of a step, or the sequences of a decode step, up, so that few recorded steps serve every batch. Rows that are there for
// the bucket alone are computed like the others, so there are at most a quarter more than are wanted.
func bucketRows(rows, limit int) int {
	step := max(powerOfTwo(rows)/8, 1)
	return min((rows+step-1)/step*step, limit)
}

// bucketBlocks rounds the length of block tables up, for the same reason. What lies behind a sequence's own length is not read.
func bucketBlocks(blocks, limit int) int { return min(powerOfTwo(max(blocks, 8)), limit) }

// powerOfTwo is the least power of two that is not less than n.
func powerOfTwo(n int) int { return 1 << bits.Len(uint(n-1)) }
