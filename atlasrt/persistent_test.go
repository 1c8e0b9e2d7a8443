package main

import (
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/calls"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
)

// launches notes what a set queues, of each kernel the most blocks along x, and runs nothing.
type launches struct {
	calls.Stream
	blocks map[op.Kernel]uint32
}

func (l *launches) Launch(k op.Kernel, g op.Grid) { l.blocks[k] = max(l.blocks[k], g.X) }

// Blocks of a persistent kernel, whose grid has no more of them than a number, take one tile after another. What they keep between two
// tiles, phases of barriers and rings above all, is judged only by a case with as many tiles as that.
func TestCasesFillPersistentGrids(t *testing.T) {
	for _, b := range bundles() {
		kernels := b.Unloaded()
		l := launches{blocks: map[op.Kernel]uint32{}}
		if _, err := optest.Reached(&l, b, b.Set("", kernels, nil), b.Set("", kernels, []string{"exact"})); err != nil {
			t.Fatal(err)
		}
		persistent := 0
		for i, k := range kernels {
			if b.Kernels[i].MostBlocks > 0 {
				persistent++
			}
			if most := b.Kernels[i].MostBlocks; l.blocks[k] < most {
				t.Errorf("%s %s: the most blocks that a case has are %d of %d", b.Hardware, b.Kernels[i].Name, l.blocks[k], most)
			}
		}
		if b.Hardware == "h200" && persistent < 100 {
			t.Errorf("%d kernels of an H200 are persistent, which once were 400", persistent)
		}
	}
}
