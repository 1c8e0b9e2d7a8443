package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
)

// launches notes what a set queues, of each kernel the most blocks along x, and runs nothing.
type launches struct {
	load.Measure
	blocks map[op.Kernel]uint32
}

func (l *launches) Launch(k op.Kernel, g op.Grid) { l.blocks[k] = max(l.blocks[k], g.X) }

func h200Bundle(t *testing.T) *bundle.Bundle {
	t.Helper()
	i := slices.IndexFunc(bundles(), func(b *bundle.Bundle) bool { return b.Hardware == "h200" })
	if i < 0 {
		t.Fatal("this program has no kernels of an H200")
	}
	return bundles()[i]
}

// Blocks of a persistent kernel, whose grid has no more of them than a number, take one tile after another. What they keep between two
// tiles, phases of barriers and rings above all, is judged only by a case with as many tiles as that.
func TestCasesFillPersistentGrids(t *testing.T) {
	body := func(kernel string) string { return strings.TrimSuffix(kernel, "_add") } // LinearAdd's is Linear's
	for _, b := range bundles() {
		kernels := numbered(b)
		l := launches{blocks: map[op.Kernel]uint32{}}
		if _, err := optest.Reached(&l, b, b.New(kernels, func(string) bool { return false }), b.New(kernels, func(option string) bool { return option == "exact" })); err != nil {
			t.Fatal(err)
		}
		blocks := map[string]uint32{}
		for i, k := range kernels {
			blocks[body(b.Kernels[i])] = max(blocks[body(b.Kernels[i])], l.blocks[k])
		}
		for name, most := range b.Persistent {
			if strings.HasPrefix(name, "atlas_logits_") && strings.HasSuffix(name, "_long") {
				continue // but for where sums go, the kernels of atlas_linear_…_long
			}
			if blocks := blocks[body(name)]; blocks < most {
				t.Errorf("%s %s: the most blocks that a case has are %d of %d", b.Hardware, name, blocks, most)
			}
		}
		if b.Hardware == "h200" && len(b.Persistent) < 100 {
			t.Errorf("%d kernels of an H200 are persistent, which once were 400", len(b.Persistent))
		}
	}
}

// Per row, products of 64 by 128 have a pipe of three stages, which cannot hold the last one of a tile and begin three of the next: a block
// with two tiles waits for itself. So they serve only what needs no more blocks than there are.
func TestSmallTilesOfF8RowsAreOneWave(t *testing.T) {
	b := h200Bundle(t)
	kernels := numbered(b)
	small := op.Kernel(slices.Index(b.Kernels, "atlas_linear_f8_e4m3_64x128_1") + 1)
	set := b.New(kernels, func(string) bool { return false })
	served := 0
	for rows := int32(65); rows <= 2048; rows++ {
		for _, outputs := range []int32{512, 2048, 2944, 3072, 4096, 5120, 6144, 8448, 8584, 12288, 24576, 28672} {
			w := op.Weight{Scheme: op.SchemeF8, Rounding: op.RoundingE4M3xRow, Rows: outputs, Cols: 4096, Count: 1}
			l := launches{blocks: map[op.Kernel]uint32{}}
			set.Linear(&l, op.Linear{W: w, Rows: rows, OutPitch: outputs})
			if l.Err != nil {
				t.Fatal(l.Err)
			}
			blocks, ok := l.blocks[small]
			if !ok {
				continue
			}
			served++
			if tiles := uint32((rows + 127) / 128 * 2 * ((outputs + 127) / 128)); blocks < tiles { // in pairs of 64 rows
				t.Errorf("%d rows of %d outputs: %d blocks for %d tiles", rows, outputs, blocks, tiles)
			}
		}
	}
	if served == 0 {
		t.Error("no product has these tiles, so nothing was tested")
	}
}
