package optest

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// What lies between two numbers of bf16 may come out as either; two steps, or a step in every element, are errors.
func TestOneStepOfOneElementIsRounding(t *testing.T) {
	const cols = 256
	bf16 := func(large float64, others float64) []byte {
		var data []byte
		for i := range cols {
			x := others
			if i == 7 {
				x = large
			}
			data = binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(float32(x))>>16))
		}
		return data
	}
	const low, next, second = 32768.0, 32768 + 256, 32768 + 512
	cases := []struct {
		name      string
		want, got []byte
		passes    bool
	}{
		{"equal", bf16(low, 4096), bf16(low, 4096), true},
		{"a step of the largest", bf16(low, 4096), bf16(next, 4096), true},
		{"two steps", bf16(low, 4096), bf16(second, 4096), false},
		{"a step of all", bf16(low, 4096), bf16(next, 4096+32), false},
	}
	f := field{dtype: op.BF16, count: 1, inner: cols, pitch: cols, cols: cols, role: out}
	for _, c := range cases {
		worst, message := compare(f, make([]byte, 2*cols), c.want, c.got, false)
		if (worst <= roundBF16) != c.passes {
			t.Errorf("%s: error %.4g (%s), passes: want %t", c.name, worst, message, c.passes)
		}
	}
}
