package gguf

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// Repack writes a tensor's blocks as blocks of another type that holds them: Q5_0 and IQ4_NL as Q8_0 exactly, Q4_K as Q4_1 with the
// scale and the minimum of each group rounded once to f16 (by 2⁻¹¹ of them at most, and of those below 2⁻¹⁴ by 2⁻²⁵). dst has room for all. ErrType where no such way is known.
func Repack(dst []byte, to tensor.Type, src []byte, from tensor.Type) error {
	block, ok := repackers[[2]tensor.Type{from, to}]
	if !ok {
		return fmt.Errorf("%w %v: it is not held by %v", ErrType, from, to)
	}
	elements, bytes := from.Block()
	each, toBytes := to.Block()
	toBytes *= elements / each
	if blocks := int64(len(src)) / bytes; int64(len(src)) != blocks*bytes || int64(len(dst)) != blocks*toBytes {
		return fmt.Errorf("repack %d bytes of %v into %d of %v: %d bytes give %d", len(src), from, len(dst), to, bytes, toBytes)
	}
	for ; len(src) > 0; src, dst = src[bytes:], dst[toBytes:] {
		if err := block(dst[:toBytes], src[:bytes]); err != nil {
			return err
		}
	}
	return nil
}

// repackers write one block, as one or several of another type.
var repackers = map[[2]tensor.Type]func(dst, b []byte) error{
	{tensor.Q5_0, tensor.Q8_0}:   bytesOfQ5_0,
	{tensor.IQ4_NL, tensor.Q8_0}: bytesOfIQ4_NL,
	{tensor.Q4_K, tensor.Q4_1}:   groupsOfQ4_K,
}

func bytesOfQ5_0(dst, b []byte) error {
	copy(dst, b[:2])
	high := binary.LittleEndian.Uint32(b[2:])
	for i, q := range b[6:22] {
		dst[2+i] = (q&15 | byte(high>>i&1<<4)) - 16
		dst[18+i] = (q>>4 | byte(high>>(i+16)&1<<4)) - 16
	}
	return nil
}

func bytesOfIQ4_NL(dst, b []byte) error {
	copy(dst, b[:2])
	for i, q := range b[2:18] {
		dst[2+i], dst[18+i] = byte(levelsIQ4_NL[q&15]), byte(levelsIQ4_NL[q>>4])
	}
	return nil
}

func groupsOfQ4_K(dst, b []byte) error {
	d, dmin, scales, codes := half(b), half(b[2:]), b[4:16], b[16:144]
	for g := range 8 {
		to := dst[g*20:][:20]
		scale, minimum := scaleMin(scales, g)
		for i, x := range []float32{d * scale, -(dmin * minimum)} { // exact: products of 11 by 6 bits
			rounded := tensor.ToFloat16(x)
			if math.IsInf(float64(tensor.Float16(rounded)), 0) {
				return fmt.Errorf("a group of Q4_K has a scale of %g, which f16 does not hold: the file is damaged", x)
			}
			binary.LittleEndian.PutUint16(to[2*i:], rounded)
		}
		nibbles := func(at int) uint64 {
			return binary.LittleEndian.Uint64(codes[g/2*32+at:]) >> (g % 2 * 4) & 0x0f0f0f0f0f0f0f0f
		}
		for i := 0; i < 16; i += 8 {
			binary.LittleEndian.PutUint64(to[4+i:], nibbles(i)|nibbles(i+16)<<4)
		}
	}
	return nil
}
