package main

import (
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// launches notes what a set queues, and runs nothing.
type launches struct {
	load.Measure
	grids map[op.Kernel]op.Grid
}

func (l *launches) Launch(k op.Kernel, g op.Grid) { l.grids[k] = g }

// Per row, products of 64 by 128 have a pipe of three stages, which cannot hold the last one of a tile and begin three of the next: a block
// with two tiles waits for itself. So they serve only what needs no more blocks than there are.
func TestSmallTilesOfF8RowsAreOneWave(t *testing.T) {
	b := bundles()[slices.IndexFunc(bundles(), func(b *bundle.Bundle) bool { return b.Hardware == "h200" })]
	kernels := make([]op.Kernel, len(b.Kernels))
	for i := range kernels {
		kernels[i] = op.Kernel(i + 1)
	}
	small := op.Kernel(slices.Index(b.Kernels, "atlas_linear_f8_e4m3_64x128_1") + 1)
	set := b.New(kernels, func(string) bool { return false })
	served := 0
	for rows := int32(65); rows <= 2048; rows++ {
		for _, outputs := range []int32{512, 2048, 2944, 3072, 4096, 5120, 6144, 8448, 8584, 12288, 24576, 28672} {
			w := op.Weight{Scheme: op.SchemeF8, Rounding: op.RoundingE4M3xRow, Rows: outputs, Cols: 4096, Count: 1}
			l := launches{grids: map[op.Kernel]op.Grid{}}
			set.Linear(&l, op.Linear{W: w, Rows: rows, OutPitch: outputs})
			if l.Err != nil {
				t.Fatal(l.Err)
			}
			g, ok := l.grids[small]
			if !ok {
				continue
			}
			served++
			if tiles := uint32((rows + 127) / 128 * 2 * ((outputs + 127) / 128)); g.X < tiles { // in pairs of 64 rows
				t.Errorf("%d rows of %d outputs: %d blocks for %d tiles", rows, outputs, g.X, tiles)
			}
		}
	}
	if served == 0 {
		t.Error("no product has these tiles, so nothing was tested")
	}
}
