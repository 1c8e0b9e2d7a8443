package optest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

func packingCases(o Options) []*Case {
	var list []*Case
	for _, scheme := range schemes {
		for _, s := range append(shapes(scheme, o), shape{1, whole(scheme, 32)}, shape{15, whole(scheme, 64)}) {
			w := matrix(scheme, s.rows, s.cols)
			bytes := scheme.RawBytes(int64(s.rows), int64(s.cols))
			name := fmt.Sprintf("%s %s", scheme, s)
			list = append(list, of(name, op.Pack{W: w, Bytes: bytes}), of(name, op.Unpack{W: w, Bytes: bytes}))
		}
		cols := whole(scheme, 96)
		w := experts(scheme, 3, 33, cols)
		list = append(list, of(fmt.Sprintf("%s 3×33×%d", scheme, cols), op.Pack{W: w, Bytes: scheme.RawBytes(33, int64(cols))}))
	}
	return list
}

func bufferCases() []*Case {
	var list []*Case
	for _, bytes := range []int64{1, 3, 64, 97, 4096, 65537} {
		list = append(list, of(fmt.Sprintf("%d bytes", bytes), op.Copy{Bytes: bytes}))
	}
	for _, count := range []int64{1, 2, 97, 4096, 65537} {
		list = append(list, of(fmt.Sprintf("%d words", count), op.Fill{Count: count, Value: 0x12345678}))
	}
	list = append(list, of("zeros", op.Fill{Count: 1000}))
	floats := []op.DType{op.F32, op.BF16, op.F16}
	for _, from := range floats {
		for _, to := range floats {
			for _, count := range []int64{1, 97, 10000} {
				c := of(fmt.Sprintf("%s to %s, %d", from, to, count), op.Convert{Count: count, InType: from, OutType: to})
				c.numbers["In"] = roundingNumbers(int(count))
				list = append(list, c)
			}
		}
	}
	return list
}

// roundingNumbers are numbers of all sizes, some of them halfway between two bf16 or f16 numbers, infinite, or subnormal in f16.
func roundingNumbers(count int) []float64 {
	rng := rand.New(rand.NewPCG(uint64(count), 3))
	values := make([]float64, count)
	for i := range values {
		x := rng.NormFloat64() * math.Exp(8*rng.NormFloat64())
		switch i % 8 {
		case 1:
			x = math.Ldexp(float64(rng.IntN(512)*2+1), rng.IntN(20)-10) // 9 bits and a half
		case 2:
			x = math.Ldexp(float64(rng.IntN(2048)*2+1), rng.IntN(20)-20) // 12 bits
		case 3:
			x = math.Ldexp(rng.Float64(), -14-rng.IntN(12))
		case 4:
			x = []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), 65504, 65520, -65519, 1e9}[i/8%8]
		}
		values[i] = x
	}
	return values
}
