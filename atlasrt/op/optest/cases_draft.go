package optest

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// acceptCases have chunks of several draws of which a part agrees with the drafts, chunks of one draw, prompts and padding, in steps whose
// rows are not in the order of the draws.
func acceptCases() []*Case {
	var list []*Case
	for _, s := range []struct{ drawing, drafts, prompts, padding int32 }{
		{1, 0, 0, 0}, {1, 3, 0, 0}, {3, 1, 2, 0}, {5, 3, 0, 3}, {0, 2, 3, 1}, {64, 1, 3, 9}, {70, 5, 1, 2}, {33, 15, 0, 0},
	} {
		for _, force := range []float32{0, 0.5} {
			var tokens, behind, index, draws, starts, position []int32
			for range s.prompts { // each draws nothing
				for r := range int32(3) {
					tokens, behind = append(tokens, 100+r), append(behind, 101+r)
				}
			}
			for n := range s.drawing {
				starts = append(starts, int32(len(draws)))
				made := 1 + n%(s.drafts+1)
				right := n * 7 % (made + 1) // drafts that are drawn
				for j := range made {
					index, position = append(index, int32(len(tokens))), append(position, 50*n+j)
					tokens, behind = append(tokens, 1000*n+j), append(behind, -7)
					draw := 1000*n + j + 1
					if n%11 == 5 {
						draw = -1
					} else if j == right {
						draw = 5
					}
					draws = append(draws, draw)
				}
				if n%11 == 5 && made > 1 {
					tokens[len(tokens)-1] = -1 // which is no draft that a failed draw agrees with
				}
			}
			for range s.padding + 1 {
				starts = append(starts, int32(len(draws)))
			}
			for range s.padding * (s.drafts + 1) {
				index, position, draws = append(index, -1), append(position, 0), append(draws, -9)
				tokens, behind = append(tokens, 0), append(behind, 0)
			}
			c := of(fmt.Sprintf("%d chunks with up to %d drafts, %d prompts, %d of padding, forced %g", s.drawing, s.drafts, s.prompts, s.padding, force),
				op.Accept{Rows: int32(len(tokens)), Samples: int32(len(draws)), Chunks: s.drawing + s.padding, Force: force})
			for name, values := range map[string][]int32{"Draws": draws, "Behind": behind, "Starts": starts, "Index": index, "Tokens": tokens, "Position": position} {
				set(c, name, values)
			}
			list = append(list, c)
		}
	}
	return list
}

// draftRowCases have sequences with a row, prompts without one, blocks that end before the last pass, and padding.
func draftRowCases() []*Case {
	var list []*Case
	for _, s := range []struct{ drawing, prompts, padding, passes, block int32 }{
		{1, 0, 0, 1, 16}, {1, 0, 0, 2, 16}, {3, 2, 0, 3, 4}, {5, 0, 3, 2, 1}, {0, 3, 1, 1, 16}, {64, 3, 9, 2, 16}, {70, 1, 2, 15, 7},
	} {
		seqs, tables := s.drawing+s.prompts+s.padding, int32(40)
		pitch := seqs + 3
		var starts, room, positions, last []int32
		for i := range seqs {
			starts = append(starts, int32(len(last)))
			rows := 1 + i%4
			first := i * 13 % (tables*s.block - rows)
			room = append(room, min((first+rows+s.block)/s.block, tables)*s.block)
			for j := range rows {
				positions = append(positions, first+j)
			}
			switch {
			case i >= s.drawing && i < s.drawing+s.prompts: // no row
			case i < s.drawing:
				last = append(last, int32(len(positions))-1-i%rows)
			default:
				last = append(last, -1)
			}
		}
		starts = append(starts, int32(len(last)))
		c := of(fmt.Sprintf("%d rows, %d prompts, %d of padding, %d passes, blocks of %d", s.drawing, s.prompts, s.padding, s.passes, s.block),
			op.DraftRows{Rows: int32(len(positions)), Chunks: int32(len(last)), Seqs: seqs, MaxBlocks: tables, Passes: s.passes, Pitch: pitch, BlockSize: s.block})
		blocks := make([]int32, seqs*tables)
		for i := range blocks {
			blocks[i] = int32(uint32(i) * 2654435761 >> 8)
		}
		for name, values := range map[string][]int32{"Last": last, "StepPositions": positions, "Starts": starts, "Tables": blocks, "Room": room} {
			set(c, name, values)
		}
		list = append(list, c)
	}
	return list
}

// normPairCases have rows of every kind of width, with and without an index.
func normPairCases() []*Case {
	var list []*Case
	for i, s := range []shape{{1, 96}, {1, 8192}, {5, 97}, {3, 144}, {300, 576}, {2, 1}, {17, 1536}, {64, 1023}, {1, 2048}, {9, 5120}} {
		x := op.NormPair{Rows: int32(s.rows), OtherRows: int32(s.rows), Cols: int32(s.cols), Eps: []float32{1e-6, 1e-5}[i%2]}
		list = append(list, of(s.String(), x))
		x.OtherRows += 3
		list = append(list, normPair(s.String()+" by index", x))
	}
	return list
}

// normPair chooses rows backwards, and for every fifth one none.
func normPair(name string, x op.NormPair) *Case {
	c, index := of(name, x), make([]int32, x.Rows)
	for r := range index {
		if index[r] = x.OtherRows - 1 - int32(r); r%5 == 4 {
			index[r] = []int32{-1, x.OtherRows}[r%2]
		}
	}
	set(c, "Index", index)
	return c.with("Index")
}

// lookupCases have numbers at both ends of a table and outside it.
func lookupCases() []*Case {
	var list []*Case
	for _, s := range []struct{ rows, count int32 }{{1, 1}, {1, 500}, {31, 97}, {33, 97}, {300, 4000}} {
		c := of(fmt.Sprintf("%d of a table of %d", s.rows, s.count), op.Lookup{Rows: s.rows, Count: s.count})
		ids, table := make([]int32, s.rows), make([]int32, s.count)
		for r := range ids {
			ids[r] = []int32{0, s.count - 1, s.count / 2, -1, s.count, -1 << 31, 1<<31 - 1}[r%7]
		}
		for i := range table {
			table[i] = int32(i)*3 + 5
		}
		set(c, "IDs", ids)
		set(c, "Table", table)
		list = append(list, c)
	}
	return list
}
