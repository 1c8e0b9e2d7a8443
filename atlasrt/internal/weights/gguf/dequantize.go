package gguf

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// Dequantize writes the float32 values of a tensor's bytes, exactly as ggml's reference does: products and sums are
// rounded to float32 one by one, in its order. dst has one place per element. F32, F16, BF16 and the block types.
func Dequantize(dst []float32, kind tensor.Type, src []byte) error {
	block, ok := dequantizers[kind]
	if !ok {
		return fmt.Errorf("%w %v: it has no float values", ErrType, kind)
	}
	elements, bytes := kind.Block()
	blocks := int64(len(src)) / bytes
	if int64(len(src)) != blocks*bytes || int64(len(dst)) != blocks*elements {
		return fmt.Errorf("dequantize %d bytes of %v into %d values: %d bytes give %d values", len(src), kind, len(dst), bytes, elements)
	}
	for ; len(src) > 0; src, dst = src[bytes:], dst[elements:] {
		block(dst[:elements], src[:bytes])
	}
	return nil
}

// dequantizers write the values of one block.
var dequantizers = map[tensor.Type]func(dst []float32, b []byte){
	tensor.F32:    func(dst []float32, b []byte) { dst[0] = math.Float32frombits(binary.LittleEndian.Uint32(b)) },
	tensor.F16:    func(dst []float32, b []byte) { dst[0] = half(b) },
	tensor.BF16:   func(dst []float32, b []byte) { dst[0] = tensor.BFloat16(binary.LittleEndian.Uint16(b)) },
	tensor.Q4_0:   q4_0,
	tensor.Q4_1:   q4_1,
	tensor.Q5_0:   q5_0,
	tensor.Q5_1:   q5_1,
	tensor.Q8_0:   q8_0,
	tensor.Q4_K:   q4_K,
	tensor.Q5_K:   q5_K,
	tensor.Q6_K:   q6_K,
	tensor.IQ4_NL: iq4_NL,
}

func half(b []byte) float32 { return tensor.Float16(binary.LittleEndian.Uint16(b)) }

// Blocks of 32: the low nibbles are weights 0–15, the high nibbles weights 16–31.

// q4_0 is d f16, 16 bytes of nibbles: d·(q−8).
func q4_0(dst []float32, b []byte) {
	d := half(b)
	for i, q := range b[2:18] {
		dst[i] = d * float32(int(q&15)-8)
		dst[i+16] = d * float32(int(q>>4)-8)
	}
}

// q4_1 is d f16, m f16, 16 bytes of nibbles: d·q + m.
func q4_1(dst []float32, b []byte) {
	d, m := half(b), half(b[2:])
	for i, q := range b[4:20] {
		dst[i] = float32(d*float32(q&15)) + m
		dst[i+16] = float32(d*float32(q>>4)) + m
	}
}

// q5_0 is d f16, 32 fifth bits, 16 bytes of nibbles: d·(q−16).
func q5_0(dst []float32, b []byte) {
	d, high := half(b), binary.LittleEndian.Uint32(b[2:])
	for i, q := range b[6:22] {
		dst[i] = d * float32(int(uint32(q&15)|high>>i&1<<4)-16)
		dst[i+16] = d * float32(int(uint32(q>>4)|high>>(i+16)&1<<4)-16)
	}
}

// q5_1 is d f16, m f16, 32 fifth bits, 16 bytes of nibbles: d·q + m.
func q5_1(dst []float32, b []byte) {
	d, m, high := half(b), half(b[2:]), binary.LittleEndian.Uint32(b[4:])
	for i, q := range b[8:24] {
		dst[i] = float32(d*float32(uint32(q&15)|high>>i&1<<4)) + m
		dst[i+16] = float32(d*float32(uint32(q>>4)|high>>(i+16)&1<<4)) + m
	}
}

// q8_0 is d f16, 32 int8: d·q.
func q8_0(dst []float32, b []byte) {
	d := half(b)
	for i, q := range b[2:34] {
		dst[i] = d * float32(int8(q))
	}
}

// levelsIQ4_NL is what the nibbles of iq4_NL stand for.
var levelsIQ4_NL = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// iq4_NL is d f16, 16 bytes of nibbles that index a table: d·table[q].
func iq4_NL(dst []float32, b []byte) {
	d := half(b)
	for i, q := range b[2:18] {
		dst[i] = d * float32(levelsIQ4_NL[q&15])
		dst[i+16] = d * float32(levelsIQ4_NL[q>>4])
	}
}

// Super-blocks of 256: eight groups of 32 with a 6-bit scale and a 6-bit minimum each, or sixteen of 16 with an 8-bit scale.

// scaleMin gives the scale and the minimum of group g out of 12 bytes: the low four bytes hold scales 0–3, the middle
// four minimums 0–3, the last four the low nibbles of groups 4–7, whose upper two bits sit on top of the first eight bytes.
func scaleMin(b []byte, g int) (scale, minimum float32) {
	if g < 4 {
		return float32(b[g] & 63), float32(b[g+4] & 63)
	}
	return float32(b[g+4]&15 | b[g-4]>>6<<4), float32(b[g+4]>>4 | b[g]>>6<<4)
}

// q4_K is d f16, dmin f16, 12 bytes of scales, 128 bytes of nibbles: d·scale·q − dmin·minimum.
func q4_K(dst []float32, b []byte) {
	d, dmin, scales, codes := half(b), half(b[2:]), b[4:16], b[16:144]
	for g := range 8 {
		scale, minimum := scaleMin(scales, g)
		scale, minimum = d*scale, dmin*minimum
		for i, q := range codes[g/2*32:][:32] {
			dst[g*32+i] = float32(scale*float32(q>>(g%2*4)&15)) - minimum
		}
	}
}

// q5_K is q4_K with 32 bytes of fifth bits between scales and nibbles, bit g of byte i for weight i of group g.
func q5_K(dst []float32, b []byte) {
	d, dmin, scales, high, codes := half(b), half(b[2:]), b[4:16], b[16:48], b[48:176]
	for g := range 8 {
		scale, minimum := scaleMin(scales, g)
		scale, minimum = d*scale, dmin*minimum
		for i, q := range codes[g/2*32:][:32] {
			dst[g*32+i] = float32(scale*float32(q>>(g%2*4)&15|high[i]>>g&1<<4)) - minimum
		}
	}
}

// q6_K is 128 bytes of low nibbles, 64 bytes of upper two bits, 16 int8 scales, d f16: d·scale·(q−32).
func q6_K(dst []float32, b []byte) {
	low, high, scales, d := b[:128], b[128:192], b[192:208], half(b[208:])
	for i := range dst {
		part, within := i/128, i%128 // each half of 128 weights has 64 bytes of nibbles and 32 of upper bits
		nibble := low[part*64+within%64] >> (within / 64 * 4) & 15
		upper := high[part*32+within%32] >> (within / 32 * 2) & 3
		dst[i] = float32(d*float32(int8(scales[i/16]))) * float32(int(nibble|upper<<4)-32)
	}
}
