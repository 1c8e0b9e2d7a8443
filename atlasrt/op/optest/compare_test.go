package optest

import (
	"math"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// A result may be where a right one can be rounded to, and a little further: what counts is what was there before rounding.
func TestRoundingOfTheResultIsNoError(t *testing.T) {
	const cols = 256
	row := func(large, others float64) []float64 {
		values := make([]float64, cols)
		for i := range values {
			values[i] = others
		}
		values[7] = large
		return values
	}
	bf16 := func(values []float64) []byte {
		data := make([]byte, 2*cols)
		oracle.Encode(data, op.BF16, values)
		return data
	}
	const step = 0x1p-5 // of numbers from 4 to 8
	cases := []struct {
		name           string
		unrounded, got []float64
		passes         bool
	}{
		{"equal", row(4.25, 0.875), row(4.25, 0.875), true},
		{"rounded the other way", row(4.25+0.49*step, 0.875), row(4.25+step, 0.875), true},
		{"a step too far", row(4.25+0.01*step, 0.875), row(4.25+step, 0.875), false},
		{"all rounded the other way", row(4.25, 0.875+0.49*step/8), row(4.25, 0.875+step/8), true},
		{"all a step too far", row(4.25, 0.875), row(4.25, 0.875+step/8), false},
		{"as much in a small one", row(0.5, 0.875), row(0.5+step, 0.875), false},
		{"a number that is none", row(4.25, 0.875), row(math.NaN(), 0.875), false},
	}
	f := field{dtype: op.BF16, count: 1, inner: cols, pitch: cols, cols: cols, role: out}
	for _, c := range cases {
		worst, message := compare(f, make([]byte, 2*cols), bf16(c.unrounded), bf16(c.got), watched(c.unrounded), ofSums, false)
		if (worst <= beforeRounding) != c.passes {
			t.Errorf("%s: error %.4g (%s), passes: want %t", c.name, worst, message, c.passes)
		}
	}
}

// watched is what an oracle has that adds nothing.
func watched(values []float64) *oracle.Unrounded {
	u := oracle.NewUnrounded(0, op.BF16, int64(len(values)))
	copy(u.Values, values)
	return u
}

// Both factors of a gated product may be rounded the other way, and what they make is off by as much of itself, however far it stands out.
func TestLargeProductsMayBeOffByTheirShare(t *testing.T) {
	const cols, size, limit = 1024, 0.7, gated * roundBF16
	row := func(large float64) []byte {
		values := make([]float64, cols)
		for i := range values {
			values[i] = size
		}
		values[7] = large
		data := make([]byte, 4*cols)
		oracle.Encode(data, op.F32, values)
		return data
	}
	f := field{dtype: op.F32, count: 1, inner: cols, pitch: cols, cols: cols, role: out}
	for _, c := range []struct {
		name      string
		errors    scatter
		want, got float64
		passes    bool
	}{
		{"of f8 on an H200", ofProducts, -13.375, -13.25, true},
		{"a step of each factor", ofProducts, -13.375, -13.375 * 0.985, true},
		{"more than that", ofProducts, -13.375, -13.375 * 0.98, false},
		{"as much in a sum", ofSums, -13.375, -13.25, false},
		{"a share of a small one", ofProducts, 0.7, 0.7 + 17*size*limit, false},
	} {
		worst, message := compare(f, make([]byte, 4*cols), row(c.want), row(c.got), nil, c.errors, false)
		if (worst <= limit) != c.passes {
			t.Errorf("%s: error %.4g (%s), passes: want %t", c.name, worst, message, c.passes)
		}
	}
}

// A product of 4 to 8 that is nearly between two numbers may be rounded to either before it is added, though the sum has finer steps.
func TestRoundingBeforeAnAdditionIsNoError(t *testing.T) {
	const step = 0x1p-5 // of the product
	for _, c := range []struct {
		name               string
		before, added, got float64 // what stood there, the product, and what both became
		off                float64
	}{
		{"rounded as it should be", -4, 4.5 + 0.49*step, 0.5, 0},
		{"rounded the other way", -4, 4.5 + 0.49*step, 0.5 + step, 0.01 * step},
		{"rounded to a number that is far", -4, 4.5 + 0.1*step, 0.5 + step, 0.4 * step},
		{"a step too far", -4, 4.5 + 0.49*step, 0.5 + 2*step, 1.01*step - 0x1p-9},
		{"half of one", -4, 4.5, 0.5 + step/2, step/2 - 0x1p-9},
		{"of q8_0 on an H200, where 3.875 was wanted", -0.2265625, 4.10683697, 3.90625, 131.5*step - 4.10683697},
	} {
		rounded := math.RoundToEven(c.added/step) * step
		if got := off(op.BF16, c.before, rounded+c.before, c.added, c.got); math.Abs(got-c.off) > 1e-9 {
			t.Errorf("%s: off by %g, want %g", c.name, got, c.off)
		}
	}
}
