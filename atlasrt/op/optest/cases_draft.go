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
