package gguftest

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// Encode stores values as F32, BF16, Q8_0 or Q4_0. Scales of blocks are powers of two, so that bf16 holds every value of a block exactly,
// and values that come from blocks give the same blocks.
func Encode(t testing.TB, values []float32, kind tensor.Type) (b []byte) {
	t.Helper()
	le := binary.LittleEndian
	switch kind {
	case tensor.F32:
		for _, v := range values {
			b = le.AppendUint32(b, math.Float32bits(v))
		}
	case tensor.BF16:
		for _, v := range values {
			b = le.AppendUint16(b, tensor.ToBFloat16(v))
		}
	case tensor.Q8_0:
		for ; len(values) > 0; values = values[32:] {
			codes, scale := codes(values[:32], 127)
			b = le.AppendUint16(b, tensor.ToFloat16(scale))
			for _, q := range codes {
				b = append(b, byte(int8(q)))
			}
		}
	case tensor.Q4_0:
		for ; len(values) > 0; values = values[32:] {
			codes, scale := codes(values[:32], 7)
			b = le.AppendUint16(b, tensor.ToFloat16(scale))
			for i := range 16 {
				b = append(b, byte(codes[i]+8)|byte(codes[i+16]+8)<<4)
			}
		}
	default:
		t.Fatalf("values are not stored as %v here", kind)
	}
	return b
}

// codes are the values of a block by its scale, from -most to most.
func codes(block []float32, most float64) (codes [32]int, scale float32) {
	largest := 0.0
	for _, v := range block {
		largest = max(largest, math.Abs(float64(v)))
	}
	if largest == 0 {
		return codes, 0
	}
	power := math.Exp2(math.Ceil(math.Log2(largest / most)))
	for i, v := range block {
		codes[i] = int(math.Round(float64(v) / power))
	}
	return codes, float32(power)
}
