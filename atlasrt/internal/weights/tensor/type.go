package tensor

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Type is how elements are stored. The zero value is no type.
type Type uint8

// The types of safetensors files, then the block types of GGUF files.
const (
	_ Type = iota
	F64
	F32
	F16
	BF16
	F8_E4M3     // no infinity, NaN is 0x7f and 0xff
	F8_E5M2     // with infinity
	F8_E4M3FNUZ // no negative zero
	F8_E5M2FNUZ // no negative zero
	F8_E8M0     // a power of two, 0xff is NaN
	F6_E2M3     // four in three bytes
	F6_E3M2     // four in three bytes
	F4          // e2m1, two in a byte
	C64
	I64
	I32
	I16
	I8
	U64
	U32
	U16
	U8
	Bool
	Q4_0
	Q4_1
	Q5_0
	Q5_1
	Q8_0
	Q4_K
	Q5_K
	Q6_K
	IQ4_NL
	typeCount
)

// layouts gives the name, the elements of a block and the bytes of a block. Sources: safetensors' Dtype, ggml's type traits.
var layouts = [typeCount]struct {
	name            string
	elements, bytes int64
}{
	{"no type", 1, 0},
	F64: {"F64", 1, 8}, F32: {"F32", 1, 4}, F16: {"F16", 1, 2}, BF16: {"BF16", 1, 2},
	F8_E4M3: {"F8_E4M3", 1, 1}, F8_E5M2: {"F8_E5M2", 1, 1}, F8_E4M3FNUZ: {"F8_E4M3FNUZ", 1, 1},
	F8_E5M2FNUZ: {"F8_E5M2FNUZ", 1, 1}, F8_E8M0: {"F8_E8M0", 1, 1},
	F6_E2M3: {"F6_E2M3", 4, 3}, F6_E3M2: {"F6_E3M2", 4, 3}, F4: {"F4", 2, 1},
	C64: {"C64", 1, 8}, I64: {"I64", 1, 8}, I32: {"I32", 1, 4}, I16: {"I16", 1, 2}, I8: {"I8", 1, 1},
	U64: {"U64", 1, 8}, U32: {"U32", 1, 4}, U16: {"U16", 1, 2}, U8: {"U8", 1, 1}, Bool: {"BOOL", 1, 1},
	Q4_0: {"Q4_0", 32, 18}, Q4_1: {"Q4_1", 32, 20}, Q5_0: {"Q5_0", 32, 22}, Q5_1: {"Q5_1", 32, 24}, Q8_0: {"Q8_0", 32, 34},
	Q4_K: {"Q4_K", 256, 144}, Q5_K: {"Q5_K", 256, 176}, Q6_K: {"Q6_K", 256, 210}, IQ4_NL: {"IQ4_NL", 32, 18},
}

// ErrOverflow says that a shape has more bytes than an int64 counts; ErrPartial that it does not fill whole blocks or bytes.
var (
	ErrOverflow = errors.New("the shape has more than 2^63 bytes")
	ErrPartial  = errors.New("the shape does not fill whole blocks")
)

// Parse finds a type by the name that String gives.
func Parse(name string) (Type, bool) {
	for t := Type(1); t < typeCount; t++ {
		if layouts[t].name == name {
			return t, true
		}
	}
	return 0, false
}

// String is the name that files and errors use, such as BF16 or Q4_0.
func (t Type) String() string {
	if t >= typeCount {
		return fmt.Sprintf("Type(%d)", uint8(t))
	}
	return layouts[t].name
}

// Block is how many elements are stored together, and how many bytes they take: 1 and 2 for BF16, 32 and 18 for Q4_0. t must be one of
// the constants.
func (t Type) Block() (elements, bytes int64) { return layouts[t].elements, layouts[t].bytes }

// Quantized reports whether t is a GGUF block type: scales and codes side by side.
func (t Type) Quantized() bool { return t >= Q4_0 && t < typeCount }

// Bytes is the size of a tensor of this shape. It fails with ErrOverflow, or with ErrPartial when elements do not fill
// whole blocks: of a row for a block type, of the whole tensor for a type smaller than a byte.
func (t Type) Bytes(shape []int64) (int64, error) {
	n := uint64(1)
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("dimension %d is negative", d)
		}
		high, low := bits.Mul64(n, uint64(d))
		if high != 0 || low > math.MaxInt64 {
			return 0, ErrOverflow
		}
		n = low
	}
	elements, size := t.Block()
	if n%uint64(elements) != 0 {
		return 0, ErrPartial
	}
	if t.Quantized() && (len(shape) == 0 || shape[len(shape)-1]%elements != 0) {
		return 0, ErrPartial
	}
	high, low := bits.Mul64(n/uint64(elements), uint64(size))
	if high != 0 || low > math.MaxInt64 {
		return 0, ErrOverflow
	}
	return int64(low), nil
}
