package oracle

import (
	"encoding/binary"
	"math"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Decode widens elements of type F32, BF16, F16 or F8E4M3 from their little-endian bytes, exactly.
func Decode(to []float64, t op.DType, from []byte) {
	switch t {
	case op.F32:
		for i := range to {
			to[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(from[4*i:])))
		}
	case op.BF16:
		for i := range to {
			to[i] = bfloat(binary.LittleEndian.Uint16(from[2*i:]))
		}
	case op.F16:
		for i := range to {
			to[i] = half(binary.LittleEndian.Uint16(from[2*i:]))
		}
	case op.F8E4M3:
		for i := range to {
			to[i] = e4m3(from[i])
		}
	default:
		panic("BUG: " + t.String() + " is no floating point type of the oracle")
	}
}

// Encode rounds values to elements of type F32, BF16 or F16, once, to nearest even.
func Encode(to []byte, t op.DType, from []float64) {
	switch t {
	case op.F32:
		for i, x := range from {
			binary.LittleEndian.PutUint32(to[4*i:], math.Float32bits(float32(x)))
		}
	case op.BF16:
		for i, x := range from {
			binary.LittleEndian.PutUint16(to[2*i:], toBfloat(x))
		}
	case op.F16:
		for i, x := range from {
			binary.LittleEndian.PutUint16(to[2*i:], toHalf(x))
		}
	default:
		panic("BUG: " + t.String() + " is no floating point type of the oracle")
	}
}

func bfloat(h uint16) float64 { return float64(math.Float32frombits(uint32(h) << 16)) }

// half widens an IEEE binary16: 1 sign, 5 exponent and 10 fraction bits.
func half(h uint16) float64 {
	sign, exponent, fraction := 1.0, int(h>>10&0x1f), float64(h&0x3ff)
	if h&0x8000 != 0 {
		sign = -1
	}
	switch {
	case exponent == 0x1f && fraction != 0:
		return math.NaN()
	case exponent == 0x1f:
		return math.Inf(int(sign))
	case exponent == 0:
		return sign * math.Ldexp(fraction, -24)
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// e4m3 widens a byte of 1 sign, 4 exponent and 3 fraction bits. There are no infinities: the largest number is 448, and
// only two codes are no number. Source: Micikevicius et al. 2022, https://arxiv.org/abs/2209.05433.
func e4m3(b byte) float64 {
	sign, exponent, fraction := 1.0, int(b>>3&0xf), float64(b&7)
	if b&0x80 != 0 {
		sign = -1
	}
	switch {
	case b&0x7f == 0x7f:
		return math.NaN()
	case exponent == 0:
		return sign * math.Ldexp(fraction, -9)
	}
	return sign * math.Ldexp(8+fraction, exponent-10)
}

// RoundE4M3 rounds a row of activations as checkpoints of FP8 weights with dynamic scales ask for. Every so many columns (128 for weights
// in blocks, else all) have one scale s = max|x|/448, and each x becomes s·e4m3(x/s). Both quotients are rounded to f32, since which of
// two e4m3 numbers is nearer may depend on that. Where s is below 2⁻¹⁰⁰ the columns become zeros.
func RoundE4M3(row []float64, columns int) {
	for len(row) > 0 {
		block := row[:min(len(row), columns)]
		row = row[len(block):]
		most := 0.0
		for _, x := range block {
			most = math.Max(most, math.Abs(x))
		}
		scale := float32(most) / 448
		for i, x := range block {
			if block[i] = 0; !(scale < 0x1p-100) {
				block[i] = float64(scale) * roundE4M3(float64(float32(x)/scale))
			}
		}
	}
}

// roundE4M3 is the nearest e4m3 number, the even one where two are equally near, from -448 to 448.
func roundE4M3(x float64) float64 {
	_, exponent := math.Frexp(x) // |x| in [0.5,1)·2^exponent
	step := math.Ldexp(1, max(exponent, -5)-4)
	return math.Max(-448, math.Min(448, step*math.RoundToEven(x/step)))
}

// fp4 widens the low four bits of b, e2m1: 1 sign, 2 exponent and 1 fraction bit.
// Source: OCP Microscaling Formats (MX) Specification 1.0, section 5.3.3.
func fp4(b byte) float64 {
	magnitude := [...]float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}[b&7]
	if b&8 != 0 {
		return -magnitude
	}
	return magnitude
}

func toBfloat(x float64) uint16 {
	b := math.Float32bits(odd(x))
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40 // keeps a NaN whose payload lies in the low half
	}
	return uint16((b + 0x7fff + (b >> 16 & 1)) >> 16)
}

func toHalf(x float64) uint16 {
	var sign uint16
	if math.Signbit(x) {
		sign = 0x8000
	}
	size := math.Abs(x)
	switch {
	case math.IsNaN(x):
		return sign | 0x7e00
	case size >= 65520: // halfway between the largest half and the next power of two
		return sign | 0x7c00
	case size < 0x1p-14:
		return sign | uint16(math.RoundToEven(size*0x1p24))
	}
	fraction, exponent := math.Frexp(size) // size = fraction·2^exponent, fraction in [0.5,1)
	// A fraction that rounds up to 2048 carries into the exponent by itself.
	return sign | (uint16(exponent+13)<<10 + uint16(math.RoundToEven(fraction*2048)))
}

// odd narrows to float32 by rounding to odd: towards zero, with the last bit set where that was not exact. A second rounding, to fewer
// bits, then gives what one rounding of x would have given.
func odd(x float64) float32 {
	f := float32(x)
	if float64(f) == x || x != x {
		return f
	}
	b := math.Float32bits(f)
	if math.Abs(float64(f)) > math.Abs(x) {
		b--
	}
	return math.Float32frombits(b | 1)
}
