package oracle

import "github.com/atlas-inference/atlas/atlasrt/op"

// Accept counts the draws that drafts agree with.
func (*Set) Accept(_ op.Stream, x op.Accept) {
	counts, next, last := slice[int32](x.Counts, int(x.Chunks)), slice[int32](x.Next, int(x.Chunks)), slice[int32](x.Last, int(x.Chunks))
	draws, behind := slice[int32](x.Draws, int(x.Samples)), slice[int32](x.Behind, int(x.Rows))
	starts, index := slice[int32](x.Starts, int(x.Chunks)+1), slice[int32](x.Index, int(x.Samples))
	tokens, position := slice[int32](x.Tokens, int(x.Rows)), slice[int32](x.Position, int(x.Samples))
	for n := range counts {
		first, end := starts[n], starts[n+1]
		if first == end {
			counts[n], next[n], last[n] = 0, -1, -1
			continue
		}
		d := first
		for ; d+1 < end; d++ {
			draft := tokens[index[d+1]]
			right := draws[d] >= 0 && draws[d] == draft
			if x.Force > 0 {
				if right = op.Uniform(op.AcceptSeed, position[d]) < x.Force; right {
					draws[d] = draft
				}
			}
			if !right {
				break
			}
		}
		counts[n], next[n], last[n] = d-first+1, draws[d], index[d]
		for d := first; d < end; d++ {
			behind[index[d]] = draws[d]
		}
	}
}

// DraftRows numbers the rows of the passes that draft.
func (*Set) DraftRows(_ op.Stream, x op.DraftRows) {
	last, of := slice[int32](x.Last, int(x.Chunks)), slice[int32](x.StepPositions, int(x.Rows))
	starts, room := slice[int32](x.Starts, int(x.Seqs)+1), slice[int32](x.Room, int(x.Seqs))
	tables := slice[int32](x.Tables, int(x.Seqs)*int(x.MaxBlocks))
	for i := range x.Passes {
		at := op.Ptr(4 * i * x.Pitch)
		positions, slots := slice[int32](x.Positions+at, int(x.Chunks)), slice[int32](x.Slots+at, int(x.Chunks))
		lengths := slice[int32](x.Lengths+at, int(x.Seqs))
		for s := range lengths {
			lengths[s] = 0
			n := starts[s]
			if n == starts[s+1] {
				continue
			}
			positions[n], slots[n] = 0, -1
			if last[n] < 0 {
				continue
			}
			p := of[last[n]] + i + 1
			positions[n], lengths[s] = p, min(p+1, room[s])
			if p < room[s] {
				slots[n] = tables[s*int(x.MaxBlocks)+int(p/x.BlockSize)]*x.BlockSize + p%x.BlockSize
			}
		}
	}
}

// NormPair normalises pairs of rows.
func (s *Set) NormPair(_ op.Stream, x op.NormPair) {
	cols := int(x.Cols)
	scale, otherScale := load(x.Scale, op.F32, 0, cols), load(x.OtherScale, op.F32, 0, cols)
	for r := range int(x.Rows) {
		row, other := load(x.In, s.act, r*cols, cols), make([]float64, cols)
		normalise(row, scale, x.Eps)
		from := r
		if x.Index != 0 {
			from = int(slice[int32](x.Index, int(x.Rows))[r])
		}
		if from >= 0 && from < int(x.OtherRows) {
			other = load(x.Other, s.act, from*cols, cols)
			normalise(other, otherScale, x.Eps)
		}
		s.store(x.Out, s.act, 2*r*cols, row)
		s.store(x.Out, s.act, (2*r+1)*cols, other)
	}
}

// Lookup replaces numbers by those of a table.
func (*Set) Lookup(_ op.Stream, x op.Lookup) {
	ids, table := slice[int32](x.IDs, int(x.Rows)), slice[int32](x.Table, int(x.Count))
	for r, id := range ids {
		if ids[r] = -1; id >= 0 && id < x.Count {
			ids[r] = table[id]
		}
	}
}
