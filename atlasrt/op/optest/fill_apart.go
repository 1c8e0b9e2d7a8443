package optest

import (
	"math"
	"math/rand/v2"

	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// This file fills matrices whose scales are tensors of their own: FP8 and NVFP4. The e4m3 bytes of a row have three neighbouring
// exponents, which differ from row to row, and scales bring all rows to one size. So an error in decoding the smallest codes shows as
// much as one in the largest.

// exponents is how many of the sixteen exponents the e4m3 bytes of a row have.
const exponents = 3

// lowest is the first of a row's exponents; 0 is that of subnormal numbers.
func lowest(row int) int { return row * 5 % (16 - exponents + 1) }

// sizeF8 is about the root mean square of a row's e4m3 bytes.
func sizeF8(row int) float64 { return math.Ldexp(3.9, lowest(row)-7) }

// sizeFP4 is the root mean square of the sixteen e2m1 codes.
const sizeFP4 = 2.93

// f8 is a random e4m3 byte for a row, of either sign. It is never NaN.
func f8(row int, rng *rand.Rand) byte {
	b := byte(lowest(row)<<3+rng.IntN(8*exponents)) | byte(rng.IntN(2)<<7)
	if b&0x7f == 0x7f {
		b--
	}
	return b
}

// apart makes a matrix's codes and then its block scales.
func apart(w op.Weight, data []byte, rng *rand.Rand) {
	rows, cols := int(w.Rows), int(w.Cols)
	switch w.Scheme {
	case op.SchemeF8:
		for i := range data {
			data[i] = f8(i/cols, rng)
		}
	case op.SchemeF8Block:
		first := firstOfBlock(rows, rng)
		for i := range rows * cols {
			data[i] = f8(first[i/cols/op.F8BlockRows], rng)
		}
		scales, blocks := data[rows*cols:], (cols+op.F8BlockCols-1)/op.F8BlockCols
		for i := range len(scales) / 4 {
			strip := i / blocks
			if first[strip] < strip {
				copy(scales[4*i:4*i+4], scales[4*(i-blocks):])
				continue
			}
			scale := (0.5 + rng.Float64()) / math.Sqrt(float64(cols)) / sizeF8(strip)
			oracle.Encode(scales[4*i:], op.F32, []float64{scale})
		}
	default:
		codes, scales := data[:rows*cols/2], data[rows*cols/2:]
		fillBytes(codes, rng)
		for i := range scales {
			scales[i] = f8(i/(cols/16), rng)
			if rng.IntN(8) > 0 {
				scales[i] &^= 0x80
			}
		}
	}
}

// factors makes the Weight.Scale of stacked matrices. In FP8 and NVFP4 it brings rows to the size that checkpoint promises. In the other
// schemes it is about one or minus one: the errors of a row of results are judged together, so that no result should be far larger.
func factors(w op.Weight, rng *rand.Rand) []float64 {
	var list []float64
	for i := range int(w.Count) * int(w.Rows) {
		factor := 0.5 + rng.Float64()
		size := math.Sqrt(float64(w.Cols)) * sizeF8(i%int(w.Rows))
		switch w.Scheme {
		case op.SchemeF8:
			factor /= size
		case op.SchemeNVFP4:
			factor /= size * sizeFP4
		default:
			factor = math.Copysign(factor, rng.Float64()-0.5)
		}
		list = append(list, factor)
	}
	return list
}

// factored is the name of the field Weight.Scale for schemes that need it to have rows of one size, and else "".
func factored(scheme op.Scheme) string {
	if scheme == op.SchemeF8 || scheme == op.SchemeNVFP4 {
		return "W.Scale"
	}
	return ""
}

// firstOfBlock says which strips of F8BlockRows rows share their scales: for each strip, the first strip that has the same ones. In some
// stretches of 128 rows all strips share, as in checkpoints; in others none do.
func firstOfBlock(rows int, rng *rand.Rand) []int {
	const strips = 128 / op.F8BlockRows
	first := make([]int, (rows+op.F8BlockRows-1)/op.F8BlockRows)
	shared := false
	for i := range first {
		if i%strips == 0 {
			shared = rng.IntN(2) == 0
		}
		first[i] = i
		if shared {
			first[i] = i / strips * strips
		}
	}
	return first
}
