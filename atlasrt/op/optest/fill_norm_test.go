package optest

import (
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// With this seed element 59 of the second row came to 4.046875, between two of bf16, but for a 40 millionth: an H200 took the one, the oracle
// the other, and one of 4608 outputs was off by more than it may be.
func TestNoNormIsTied(t *testing.T) {
	const seed, rows, cols = 5891121257086284311, 3, 96
	for _, residual := range []bool{false, true} {
		c := of("f8block 4608×96 rows 3", op.NormLinear{W: matrix(op.SchemeF8Block, 4608, cols), Rows: rows, OutPitch: 4608, Eps: 1e-6}).summed(residual)
		list, err := c.fields(op.BF16, func(op.Weight) int64 { return 0 })
		if err != nil {
			t.Fatal(err)
		}
		all, err := c.fill(list, c.random(seed))
		if err != nil {
			t.Fatal(err)
		}
		in, residuals, scale := decoded(all["In"], op.BF16), decoded(all["Residual"], op.BF16), decoded(all["Scale"], op.F32)
		for r := range rows {
			row := norm{in: in[r*cols : (r+1)*cols], scale: scale, eps: 1e-6}
			if residual {
				row.residual = residuals[r*cols : (r+1)*cols]
			}
			if least := slices.Min(row.steps()); least < tied {
				t.Errorf("row %d, residual %v: a number is %g steps from the middle between two", r, residual, least)
			}
		}
	}
}
