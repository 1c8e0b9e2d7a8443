package load

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// e2m1 is the number of a code of four bits.
func e2m1(code byte) float32 {
	v := []float32{0, 0.5, 1, 1.5, 2, 3, 4, 6}[code&7]
	if code&8 != 0 {
		return -v
	}
	return v
}

// The code of a number is that of the nearest one of its format.
func TestE2M1RoundsToNearestEven(t *testing.T) {
	for v, want := range map[float32]byte{0: 0, 0.25: 0, 0.26: 1, 0.75: 2, 1.25: 2, 1.75: 4, 1.74: 3, 2.5: 4, 2.51: 5, 3.5: 6, 5: 6, 5.01: 7, 100: 7, -0.3: 9, -6: 15, -0.1: 8} {
		if got := toE2M1(v); got != want {
			t.Errorf("%v becomes code %d, want %d", v, got, want)
		}
	}
	for code := range byte(16) {
		if got := toE2M1(e2m1(code)); got != code {
			t.Errorf("code %d becomes code %d", code, got)
		}
	}
}

// A quantised row is as near to the row as its format allows: half a step of e4m3 is a 16th of a number, and one of e2m1 a 6th of the largest
// of a block, whose own scale may be off by a 16th.
func TestRowsQuantiseToTheNearest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range []float64{1, 1e-3, 1e4} {
		row := make([]float32, 64)
		for i := range row {
			row[i] = float32(size * r.NormFloat64())
		}
		clear(row[16:32])
		codes := make([]byte, len(row))
		factor := quantiseF8(codes, row)
		most := float64(largest(row))
		for i, v := range row {
			got := tensor.E4M3(codes[i]) * factor
			if d := math.Abs(float64(got - v)); d > max(math.Abs(float64(v))/16, most/448*0x1p-10)*1.0001 {
				t.Errorf("f8: %v becomes %v", v, got)
			}
		}
		scales := make([]byte, len(row)/16)
		factor = quantiseFP4(codes, scales, row)
		for i, v := range row {
			got := e2m1(codes[i/2]>>(4*(i%2))&15) * tensor.E4M3(scales[i/16]) * factor
			block := float64(largest(row[i/16*16:][:16]))
			if d := math.Abs(float64(got - v)); d > block/6*(1+1.0/16)*1.0001 {
				t.Errorf("nvfp4: %v in a block up to %v becomes %v", v, block, got)
			}
		}
		if codes[8] != 0 {
			t.Errorf("zeros become code %d", codes[8])
		}
	}
	if factor := quantiseF8(make([]byte, 4), make([]float32, 4)); factor != 0 {
		t.Errorf("the scale of zeros is %v", factor)
	}
}
