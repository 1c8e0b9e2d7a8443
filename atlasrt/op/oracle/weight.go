package oracle

import (
	"encoding/binary"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// weightRow reads row n of stacked matrix e.
func weightRow(to []float64, w op.Weight, e, n int) {
	matrix := w.Data + op.Ptr(int64(e)*w.Stride)
	switch w.Scheme {
	case op.SchemeF8Block:
		codes, scales := apart(matrix, w, n, int(w.Cols))
		Decode(to, op.F8E4M3, codes)
		blocks := (len(to) + op.F8BlockCols - 1) / op.F8BlockCols
		row := make([]float64, blocks)
		Decode(row, op.F32, scales[n/op.F8BlockRows*blocks*4:])
		for k := range to {
			to[k] *= row[k/op.F8BlockCols]
		}
	case op.SchemeNVFP4:
		codes, scales := apart(matrix, w, n, int(w.Cols)/2)
		row := make([]float64, len(to)/16)
		Decode(row, op.F8E4M3, scales[n*len(row):])
		for k := range to {
			to[k] = fp4(codes[k/2]>>(k%2*4)) * row[k/16]
		}
	default:
		bytes := w.Scheme.RawBytes(1, int64(w.Cols))
		Dequantise(to, w.Scheme, slice[byte](matrix+op.Ptr(int64(n)*bytes), int(bytes)))
	}
	if w.Scale == 0 {
		return
	}
	factor := load(w.Scale, op.F32, e*int(w.Rows)+n, 1)[0]
	for k := range to {
		to[k] *= factor
	}
}

// apart splits a matrix whose scales follow its codes: the codes of row n, so many bytes, and the block scales of all rows.
func apart(matrix op.Ptr, w op.Weight, n, bytes int) (codes, scales []byte) {
	all := slice[byte](matrix, int(w.Scheme.RawBytes(int64(w.Rows), int64(w.Cols))))
	return all[n*bytes : (n+1)*bytes], all[int(w.Rows)*bytes:]
}

// Dequantise widens one row of a matrix exactly from a checkpoint's bytes, for schemes whose blocks hold codes and scales together. They
// are GGUF's block formats (see the schemes of package op), bf16 and plain e4m3.
func Dequantise(to []float64, scheme op.Scheme, raw []byte) {
	switch scheme {
	case op.SchemeBF16:
		Decode(to, op.BF16, raw)
		return
	case op.SchemeF8:
		Decode(to, op.F8E4M3, raw)
		return
	}
	size := int(scheme.Block())
	bytes := int(scheme.RawBytes(1, scheme.Block()))
	for b := range len(to) / size {
		dequantiseBlock(to[size*b:size*(b+1)], scheme, raw[bytes*b:bytes*(b+1)])
	}
}

func dequantiseBlock(to []float64, scheme op.Scheme, block []byte) {
	at := func(i int) float64 { return half(binary.LittleEndian.Uint16(block[i:])) }
	d := at(0)
	switch scheme {
	case op.SchemeQ8_0:
		for i := range 32 {
			to[i] = d * float64(int8(block[2+i]))
		}
	case op.SchemeQ4_0:
		nibbles(to, block[2:], d, -8*d)
	case op.SchemeQ4_1:
		nibbles(to, block[4:], d, at(2))
	case op.SchemeQ5_0:
		high := binary.LittleEndian.Uint32(block[2:])
		for i := range to {
			q := block[6+i%16]>>(i/16*4)&15 | byte(high>>i&1<<4)
			to[i] = d * float64(int(q)-16)
		}
	case op.SchemeQ4_K:
		for i := range to {
			scale, minimum := sixBits(block[4:16], i/32)
			q := block[16+i/64*32+i%32] >> (i / 32 % 2 * 4) & 15
			to[i] = d*scale*float64(q) - at(2)*minimum
		}
	case op.SchemeQ6_K:
		for i := range to {
			part, j := i/128, i%128
			q := block[part*64+j%64]>>(j/64*4)&15 | block[128+part*32+j%32]>>(j/32*2)&3<<4
			to[i] = at(208) * float64(int8(block[192+i/16])) * float64(int(q)-32)
		}
	default:
		panic("BUG: scheme " + scheme.String() + " has no blocks")
	}
}

// sixBits reads the scale and the minimum of group g out of the twelve bytes of a block of SchemeQ4_K.
func sixBits(b []byte, g int) (scale, minimum float64) {
	if g < 4 {
		return float64(b[g] & 63), float64(b[4+g] & 63)
	}
	return float64(b[4+g]&15 | b[g-4]>>6<<4), float64(b[4+g]>>4 | b[g]>>6<<4)
}

// nibbles reads 32 weights d·q+m: the low nibbles are the first 16 of them, the high nibbles the others.
func nibbles(to []float64, codes []byte, d, m float64) {
	for i := range 16 {
		to[i] = d*float64(codes[i]&15) + m
		to[16+i] = d*float64(codes[i]>>4) + m
	}
}

// dot is a sum of products, in an order that depends on the length alone. Four sums at a time keep the adder busy.
func dot(a, b []float64) float64 {
	var s0, s1, s2, s3 float64
	k := 0
	for ; k+4 <= len(a); k += 4 {
		x, y := a[k:k+4:k+4], b[k:k+4:k+4]
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
	}
	for ; k < len(a); k++ {
		s0 += a[k] * b[k]
	}
	return (s0 + s1) + (s2 + s3)
}
