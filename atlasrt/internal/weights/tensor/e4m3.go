package tensor

import "math"

// E4M3 widens one sign, four exponent and three fraction bits, exactly. There is no infinity: NaN is 0x7f and 0xff.
func E4M3(code byte) float32 {
	magnitude := code & 0x7f
	value := float32(math.Ldexp(float64(8+magnitude&7), int(magnitude>>3)-10))
	switch {
	case magnitude == 0x7f:
		return float32(math.NaN())
	case magnitude < 8: // zero or subnormal
		value = float32(magnitude) / (1 << 9)
	}
	if code > 0x7f {
		return -value
	}
	return value
}

// ToE4M3 rounds to the nearest e4m3 number, ties to even; what is too large becomes the largest, 448.
func ToE4M3(f float32) byte {
	magnitude, sign := math.Abs(float64(f)), byte(0)
	if math.Signbit(float64(f)) {
		sign = 0x80
	}
	switch {
	case math.IsNaN(magnitude):
		return sign | 0x7f
	case magnitude >= 448:
		return sign | 0x7e
	case magnitude < 0x1p-6: // zero or subnormal
		return sign | byte(math.RoundToEven(magnitude*(1<<9)))
	}
	exponent := math.Ilogb(magnitude)
	eighths := int(math.RoundToEven(math.Ldexp(magnitude, 3-exponent))) // 8 to 16, of which the last is the next exponent's first
	return sign | byte((exponent+7)<<3+eighths-8)
}
