package tensor

import "math"

// Float16 widens an IEEE half, exactly.
func Float16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exponent := uint32(h>>10) & 0x1f
	fraction := uint32(h & 0x3ff)
	switch exponent {
	case 0: // zero or subnormal: fraction·2^-24
		value := float32(fraction) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(value) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// ToFloat16 rounds to the nearest IEEE half, ties to even; what is too large becomes infinity.
func ToFloat16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	magnitude := b & 0x7fffffff
	switch {
	case magnitude > 0x7f800000:
		return sign | 0x7e00
	case magnitude >= 0x477ff000: // 65520, halfway past the largest half
		return sign | 0x7c00
	case magnitude < 0x38800000: // below 2^-14: adding 0.5 leaves the bits of a subnormal half, rounded by the hardware
		return sign | uint16(math.Float32bits(math.Float32frombits(magnitude)+0.5)-0x3f000000)
	}
	magnitude += 0xfff + magnitude>>13&1
	return sign | uint16((magnitude-112<<23)>>13)
}

// BFloat16 widens a bfloat16, exactly.
func BFloat16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// ToBFloat16 rounds to the nearest bfloat16, ties to even.
func ToBFloat16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
