package optest

import (
	"math"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// One element far above its row may come out a step of bf16 away; two steps, a step in every element, or a step's worth in a
// small element are errors.
func TestOneStepOfAnOutlierIsRounding(t *testing.T) {
	const cols = 256
	bf16 := func(large, others float64) []byte {
		values := make([]float64, cols)
		for i := range values {
			values[i] = others
		}
		values[7] = large
		data := make([]byte, 2*cols)
		oracle.Encode(data, op.BF16, values)
		return data
	}
	const step = 0x1p-5 // of numbers from 4 to 8
	cases := []struct {
		name      string
		want, got []byte
		passes    bool
	}{
		{"equal", bf16(4.25, 0.875), bf16(4.25, 0.875), true},
		{"a step of the largest", bf16(4.25, 0.875), bf16(4.25+step, 0.875), true},
		{"two steps", bf16(4.25, 0.875), bf16(4.25+2*step, 0.875), false},
		{"a step of all", bf16(4.25, 0.875), bf16(4.25+step, 0.875+step/8), false},
		{"as much in a small one", bf16(0.5, 0.875), bf16(0.5+step, 0.875), false},
		{"a number that is none", bf16(4.25, 0.875), bf16(math.NaN(), 0.875), false},
	}
	f := field{dtype: op.BF16, count: 1, inner: cols, pitch: cols, cols: cols, role: out}
	for _, c := range cases {
		worst, message := compare(f, make([]byte, 2*cols), c.want, c.got, false)
		if (worst <= roundBF16) != c.passes {
			t.Errorf("%s: error %.4g (%s), passes: want %t", c.name, worst, message, c.passes)
		}
	}
}
