package main

import (
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// matrix is a matrix of a checkpoint, widened.
type matrix struct {
	name       string // without .weight
	rows, cols int
	values     []float32
}

func readMatrix(t *testing.T, x weights.Tensor, name string) matrix {
	t.Helper()
	m := matrix{name, int(x.Rows()), int(x.Cols()), make([]float32, x.Elements())}
	if err := gguf.Dequantize(m.values, x.Type, x.Data); err != nil {
		t.Fatal(err)
	}
	return m
}

// A quantiser stores a matrix in a form, and returns the tensors of the form and the values that they stand for. Its scales beside those of
// NVFP4's blocks are powers of two, another one for each part of a matrix: so that values have few bits, which bf16 holds.
type quantiser func(m matrix) (tensors []weights.Tensor, values []float32)

// codebook is the numbers that codes stand for, sorted, and their codes.
type codebook struct {
	values []float32
	codes  []byte
}

var e4m3Book, e2m1Book = makeE4M3(), codebook{[]float32{-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6}, []byte{15, 14, 13, 12, 11, 10, 9, 0, 1, 2, 3, 4, 5, 6, 7}}

func makeE4M3() codebook {
	var b codebook
	for code := -126; code <= 126; code++ {
		bits := max(code, -code)
		v := math.Ldexp(float64(bits&7), -9)
		if exponent := bits >> 3; exponent > 0 {
			v = math.Ldexp(float64(8+bits&7), exponent-10)
		}
		if code < 0 {
			v, bits = -v, bits|0x80
		}
		b.values, b.codes = append(b.values, float32(v)), append(b.codes, byte(bits))
	}
	return b
}

// most is the largest number.
func (b codebook) most() float32 { return b.values[len(b.values)-1] }

// nearest gives a code for a number, and what it stands for.
func (b codebook) nearest(x float32) (code byte, value float32) {
	i := sort.Search(len(b.values), func(i int) bool { return b.values[i] >= x })
	if i == len(b.values) || i > 0 && x-b.values[i-1] < b.values[i]-x {
		i--
	}
	return b.codes[i], b.values[i]
}

// powerOver is the least power of two of which the largest of some numbers is at most so many.
func powerOver(values []float32, most float32) float32 {
	largest := float32(0)
	for _, v := range values {
		largest = max(largest, v, -v)
	}
	if largest == 0 {
		return 1
	}
	return float32(math.Ldexp(1, int(math.Ceil(math.Log2(float64(largest/most))))))
}

// own is a power of two that neighbouring matrices do not share: a scale that is taken from another part of a stack then shows.
func (m matrix) own() float32 {
	sum := 0
	for _, b := range []byte(m.name) {
		sum += int(b)
	}
	return float32(int(1) << (sum % 4))
}

// block is the values of a block of a matrix, from a row and column on.
func (m matrix) block(row, col, rows, cols int) []float32 {
	var out []float32
	for r := row; r < min(row+rows, m.rows); r++ {
		out = append(out, m.values[r*m.cols+col:r*m.cols+min(col+cols, m.cols)]...)
	}
	return out
}

// inFP8 makes codes by a scale for each block of rows×cols.
func (m matrix) inFP8(rows, cols int) (codes []byte, scales, values []float32) {
	codes, values = make([]byte, len(m.values)), make([]float32, len(m.values))
	for row := 0; row < m.rows; row += rows {
		for col := 0; col < m.cols; col += cols {
			scale := powerOver(m.block(row, col, rows, cols), e4m3Book.most()) * m.own()
			scales = append(scales, scale)
			for r := row; r < min(row+rows, m.rows); r++ {
				for c := col; c < min(col+cols, m.cols); c++ {
					code, v := e4m3Book.nearest(m.values[r*m.cols+c] / scale)
					codes[r*m.cols+c], values[r*m.cols+c] = code, v*scale
				}
			}
		}
	}
	return codes, scales, values
}

// fp8 has a scale for each block, under a name and in a shape.
func fp8(rows, cols int, scale string, shape func(m matrix) []int64) quantiser {
	return func(m matrix) ([]weights.Tensor, []float32) {
		height, width := rows, cols
		if height == 0 {
			height = m.rows
		}
		if width == 0 {
			width = m.cols
		}
		codes, scales, values := m.inFP8(height, width)
		return []weights.Tensor{made(m.name+".weight", tensor.F8_E4M3, codes, int64(m.rows), int64(m.cols)), madeF32(m.name+scale, scales, shape(m)...)}, values
	}
}

// Quantisers of FP8.
var (
	fp8Blocks           = fp8(128, 128, ".weight_scale_inv", blocksOf128)
	fp8BlocksCompressed = fp8(128, 128, ".weight_scale", blocksOf128)
	fp8Rows             = fp8(1, 0, ".weight_scale", func(m matrix) []int64 { return []int64{int64(m.rows), 1} })
	fp8Whole            = fp8(0, 0, ".weight_scale", func(matrix) []int64 { return nil })
)

func blocksOf128(m matrix) []int64 { return []int64{int64(m.rows+127) / 128, int64(m.cols+127) / 128} }

// inNVFP4 makes codes by a scale for each 16 columns, which are e4m3, and a factor of all.
func (m matrix) inNVFP4() (codes, scales []byte, factor float32, values []float32) {
	const columns = 16
	factor = powerOver(m.values, e2m1Book.most()*e4m3Book.most()) * 8 * m.own() // scales of blocks are fractions, too
	values = make([]float32, len(m.values))
	for at := 0; at < len(m.values); at += columns {
		block := m.values[at : at+columns]
		largest := float32(0)
		for _, v := range block {
			largest = max(largest, v, -v)
		}
		code, scale := e4m3Book.nearest(max(largest/factor/e2m1Book.most(), 0x1p-6))
		scales = append(scales, code)
		for i, v := range block {
			code, v := e2m1Book.nearest(v / factor / scale)
			if values[at+i] = v * scale * factor; i%2 == 0 {
				codes = append(codes, code)
			} else {
				codes[len(codes)-1] |= code << 4
			}
		}
	}
	return codes, scales, factor, values
}

// nvfp4 names the codes and the factor as a dialect does, which divides by it or multiplies, and adds scales of activations, if it has any.
func nvfp4(codes, factor string, divides bool, activations string) quantiser {
	return func(m matrix) ([]weights.Tensor, []float32) {
		packed, scales, f, values := m.inNVFP4()
		if divides {
			f = 1 / f
		}
		all := []weights.Tensor{
			made(m.name+codes, tensor.U8, packed, int64(m.rows), int64(m.cols)/2), made(m.name+".weight_scale", tensor.F8_E4M3, scales, int64(m.rows), int64(m.cols)/16),
			madeF32(m.name+factor, []float32{f}),
		}
		if activations != "" {
			all = append(all, madeF32(m.name+activations, []float32{3}))
		}
		return all, values
	}
}

// Quantisers of NVFP4.
var (
	nvfp4Modelopt   = nvfp4(".weight", ".weight_scale_2", false, ".input_scale")
	nvfp4Compressed = nvfp4(".weight_packed", ".weight_global_scale", true, ".input_global_scale")
	nvfp4Weights    = nvfp4(".weight", ".weight_scale_2", false, "")
)

func made(name string, kind tensor.Type, data []byte, shape ...int64) weights.Tensor {
	return weights.Tensor{Info: weights.Info{Name: name, Type: kind, Shape: shape}, Data: data}
}

func madeF32(name string, values []float32, shape ...int64) weights.Tensor {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return made(name, tensor.F32, data, shape...)
}

// madeBF16 is a matrix of values, which bf16 must hold.
func madeBF16(t *testing.T, m matrix, values []float32) weights.Tensor {
	t.Helper()
	var data []byte
	for _, v := range values {
		b := tensor.ToBFloat16(v)
		if tensor.BFloat16(b) != v {
			t.Fatalf("%s: bf16 does not hold %v", m.name, v)
		}
		data = binary.LittleEndian.AppendUint16(data, b)
	}
	return made(m.name+".weight", tensor.BF16, data, int64(m.rows), int64(m.cols))
}

// What quantisers make stands for numbers near those that they get, so that a model keeps its function.
func TestQuantisers(t *testing.T) {
	m := matrix{"x", 160, 160, make([]float32, 160*160)}
	for i := range m.values {
		m.values[i] = float32(math.Sin(float64(i*i))) / float32(1+i%7)
	}
	for name, c := range map[string]struct {
		store quantiser
		off   float64
		sizes []int
	}{
		"fp8 blocks": {fp8Blocks, 0.04, []int{25600, 16}}, "fp8 rows": {fp8Rows, 0.04, []int{25600, 640}}, "fp8": {fp8Whole, 0.04, []int{25600, 4}},
		"nvfp4 of modelopt": {nvfp4Modelopt, 0.15, []int{12800, 1600, 4, 4}}, "nvfp4 of compressed-tensors": {nvfp4Compressed, 0.15, []int{12800, 1600, 4, 4}},
	} {
		tensors, values := c.store(m)
		if off := relative(values, m.values); !(off > 0 && off < c.off) {
			t.Errorf("%s: off by %v in relative L2, want at most %v", name, off, c.off)
		}
		var sizes []int
		for _, x := range tensors {
			sizes = append(sizes, len(x.Data))
		}
		if !slices.Equal(sizes, c.sizes) {
			t.Errorf("%s: tensors of %d bytes, want %d", name, sizes, c.sizes)
		}
		madeBF16(t, m, values)
	}
}
