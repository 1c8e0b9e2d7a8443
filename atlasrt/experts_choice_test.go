package main

import (
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Where the kernels for few picks of each expert end, those for many begin: nothing between is left to the ring that takes any shape.
func TestExpertsOfAnyNumberOfPicks(t *testing.T) {
	for _, b := range bundles() {
		if b.Hardware != "h200" {
			continue
		}
		kernels := b.Unloaded()
		set := b.Set("", kernels, nil)
		for _, c := range []struct {
			experts, cols, rows int32
			want                string
		}{
			{128, 2048, 95, "tiles"}, {128, 2048, 111, "tiles"}, {128, 2048, 128, "tiles_16"}, {128, 2048, 256, "tiles_16"}, {128, 2048, 257, "wide_64"},
			{160, 2048, 119, "tiles"}, {160, 2048, 129, "tiles_16"}, {160, 2048, 257, "wide_64"},
			{256, 2048, 192, "tiles_16"}, {512, 2048, 384, "wide_64"},
			{128, 3072, 96, "tiles"}, {128, 3072, 129, "wide_64"},
			{128, 4160, 96, "wide_64"}, {128, 2048, 960, "wide_128"},
		} {
			for _, scheme := range []op.Scheme{op.SchemeNVFP4, op.SchemeQ4_1, op.SchemeQ8_0} {
				l := launches{blocks: map[op.Kernel]uint32{}}
				w := op.Weight{Scheme: scheme, Count: c.experts, Rows: 1536, Cols: c.cols}
				set.ExpertUp(&l, op.ExpertUp{W: w, Rows: c.rows, TopK: 8})
				for i, k := range kernels {
					if name := b.Kernels[i].Name; l.blocks[k] > 0 && !strings.HasSuffix(name, c.want) {
						t.Errorf("%v, %d experts of %d columns, %d rows: %s, want %s", scheme, c.experts, c.cols, c.rows, name, c.want)
					}
				}
				if len(l.blocks) == 0 {
					t.Errorf("%v, %d experts, %d rows: nothing is launched", scheme, c.experts, c.rows)
				}
			}
		}
	}
}
