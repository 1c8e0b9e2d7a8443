package load_test

import (
	"math"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// lacking has no kernels for the blocks of 256.
type lacking struct{ *oracle.Set }

func (s lacking) PackedBytes(scheme op.Scheme, rows, cols int32) int64 {
	if scheme.Block() == 256 {
		return 0
	}
	return s.Set.PackedBytes(scheme, rows, cols)
}

// Blocks are kept as they are; where there are no kernels for them they become bf16, and a line says so.
func TestBlocksOfOtherHardware(t *testing.T) {
	cases := []struct {
		kind      tensor.Type
		here      op.Scheme
		elsewhere op.Scheme // where there are no kernels for blocks of 256
	}{
		{tensor.Q5_0, op.SchemeQ5_0, op.SchemeQ5_0},
		{tensor.Q4_K, op.SchemeQ4_K, op.SchemeBF16},
		{tensor.Q6_K, op.SchemeQ6_K, op.SchemeBF16},
		{tensor.Q5_K, op.SchemeBF16, op.SchemeBF16}, // there are no kernels for it anywhere
	}
	part := func(int32) []model.Part { return []model.Part{{Name: "q.weight", Rows: 32}} }
	for _, c := range cases {
		m := newMemory(t, `{}`, repeated("q.weight", c.kind, 0x24, 32, 256))
		here, want, err := place(m, 1, 256, part)
		if err != nil || here.Scheme != c.here {
			t.Errorf("%v: kept as %s, %v; want %s", c.kind, here.Scheme, err, c.here)
			continue
		}
		elsewhere, got, err := placeOn(lacking{oracle.New(op.F32)}, m, 1, 256, part)
		if err != nil || elsewhere.Scheme != c.elsewhere {
			t.Errorf("%v: without kernels kept as %s, %v; want %s", c.kind, elsewhere.Scheme, err, c.elsewhere)
			continue
		}
		for r := range want {
			for i, x := range want[r] {
				if d := math.Abs(float64(got[r][i] - x)); d > math.Abs(float64(x))/256 {
					t.Fatalf("%v: element %d of row %d is %v, want %v rounded to bf16", c.kind, i, r, got[r][i], x)
				}
			}
		}
		counter := load.NewCounter(lacking{oracle.New(op.F32)}, load.Stored(m, lacking{oracle.New(op.F32)}))
		counter.Matrix(256, part(0)...)
		if lines := counter.Converted(); (len(lines) == 1) != (c.elsewhere == op.SchemeBF16) {
			t.Errorf("%v: without kernels it says %q", c.kind, lines)
		}
	}
}
