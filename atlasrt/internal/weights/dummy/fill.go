package dummy

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"runtime"
	"strings"
	"sync"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// unit is how many bytes of a type are made at a time: whole words for elements, whole blocks for block types.
var unit = map[weights.Type]int{
	tensor.BF16: 8, tensor.F16: 8, tensor.F32: 16, tensor.U8: 8, tensor.I32: 8, tensor.F8_E4M3: 8, tensor.F8_E8M0: 8,
	tensor.Q8_0: 34, tensor.Q4_0: 18, tensor.Q4_1: 20,
}

func makes(kind weights.Type) bool { return unit[kind] > 0 }

// Fill makes the bytes of a tensor, on all processors. The package comment says what they are.
func Fill(info weights.Info) ([]byte, error) {
	size, err := info.Type.Bytes(info.Shape)
	if err != nil {
		return nil, fmt.Errorf("dummy weights: %v: %w", info, err)
	}
	width := unit[info.Type]
	if width == 0 {
		return nil, fmt.Errorf("dummy weights: %v: no values are made up for this type", info)
	}
	write := writer(info)
	data := make([]byte, size)
	units := (len(data) + width - 1) / width
	workers := min(runtime.GOMAXPROCS(0), 1+len(data)>>20)
	each := (units + workers - 1) / workers
	var group sync.WaitGroup
	for first := 0; first < units; first += each {
		group.Go(func() {
			part := data[first*width : min(len(data), (first+each)*width)]
			whole := len(part) / width * width
			write(part[:whole], uint64(first))
			if rest := part[whole:]; len(rest) > 0 {
				last := make([]byte, width)
				write(last, uint64(first+whole/width))
				copy(rest, last)
			}
		})
	}
	group.Wait()
	return data, nil
}

// word is output j of SplitMix64.
func word(seed, j uint64) uint64 {
	z := seed + (j+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// writer gives the function that fills dst, whole units, from unit number first.
func writer(info weights.Info) func(dst []byte, first uint64) {
	hash := fnv.New64a()
	hash.Write([]byte(info.Name))
	seed := hash.Sum64()
	if strings.Contains(info.Name, "scale") && !info.Type.Quantized() {
		return constant(info)
	}
	columns := float64(info.Cols())
	amplitude, offset := 1.0/16, float32(0)
	switch {
	case len(info.Shape) > 1:
		amplitude = math.Sqrt(3 / columns)
	case strings.Contains(info.Name, "norm"):
		offset = 1
	}
	step := float32(amplitude / 65536)
	value := func(u uint64) float32 { return offset + float32(float32(int32(u&0xffff)*2-65535)*step) }
	switch info.Type {
	case tensor.BF16:
		return elements(seed, func(dst []byte, w uint64) {
			binary.LittleEndian.PutUint64(dst, uint64(tensor.ToBFloat16(value(w)))|uint64(tensor.ToBFloat16(value(w>>16)))<<16|
				uint64(tensor.ToBFloat16(value(w>>32)))<<32|uint64(tensor.ToBFloat16(value(w>>48)))<<48)
		}, 8)
	case tensor.F16:
		return elements(seed, func(dst []byte, w uint64) {
			for i := range 4 {
				binary.LittleEndian.PutUint16(dst[2*i:], tensor.ToFloat16(value(w>>(16*i))))
			}
		}, 8)
	case tensor.F32:
		return elements(seed, func(dst []byte, w uint64) {
			for i := range 4 {
				binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(value(w>>(16*i))))
			}
		}, 16)
	case tensor.F8_E4M3:
		return elements(seed, func(dst []byte, w uint64) { binary.LittleEndian.PutUint64(dst, w&^0x4040404040404040) }, 8)
	case tensor.Q8_0:
		return q8(seed, float32(1/(74*math.Sqrt(columns))/131072))
	case tensor.Q4_0, tensor.Q4_1:
		return q4(seed, float32(1/(4.6*math.Sqrt(columns))/131072), info.Type == tensor.Q4_1)
	}
	return elements(seed, binary.LittleEndian.PutUint64, 8)
}

// elements fills a unit of width bytes from each word.
func elements(seed uint64, put func(dst []byte, w uint64), width int) func(dst []byte, first uint64) {
	return func(dst []byte, first uint64) {
		for j := first; len(dst) > 0; j, dst = j+1, dst[width:] {
			put(dst[:width], word(seed, j))
		}
	}
}

// constant fills scales.
func constant(info weights.Info) func(dst []byte, first uint64) {
	value := float32(1.0 / 32)
	if strings.Contains(info.Name, "global_scale") {
		value = 32
	}
	var pattern []byte
	switch info.Type {
	case tensor.F32:
		pattern = binary.LittleEndian.AppendUint32(nil, math.Float32bits(value))
	case tensor.BF16:
		pattern = binary.LittleEndian.AppendUint16(nil, tensor.ToBFloat16(value))
	case tensor.F16:
		pattern = binary.LittleEndian.AppendUint16(nil, tensor.ToFloat16(value))
	case tensor.F8_E4M3:
		pattern = []byte{0x38} // exponent 7, the bias
	default:
		pattern = []byte{127} // 2^0 with a bias of 127
	}
	return func(dst []byte, _ uint64) {
		for i := range dst {
			dst[i] = pattern[i%len(pattern)]
		}
	}
}

// scale is the half-precision scale of a block; step is float32(k/131072).
func scale(w uint64, step float32) uint16 {
	return tensor.ToFloat16(float32(98304+w&0xffff) * step)
}

func q8(seed uint64, step float32) func(dst []byte, first uint64) {
	return func(dst []byte, first uint64) {
		for j := 5 * first; len(dst) > 0; j, dst = j+5, dst[34:] {
			binary.LittleEndian.PutUint16(dst, scale(word(seed, j+4), step))
			for k := range uint64(4) {
				binary.LittleEndian.PutUint64(dst[2+8*k:], word(seed, j+k))
			}
			for i, code := range dst[2:34] {
				if code == 0x80 {
					dst[2+i] = 0x81
				}
			}
		}
	}
}

func q4(seed uint64, step float32, minimum bool) func(dst []byte, first uint64) {
	codes := 2 // where the codes begin
	if minimum {
		codes = 4
	}
	return func(dst []byte, first uint64) {
		for j := 3 * first; len(dst) > 0; j, dst = j+3, dst[codes+16:] {
			d := scale(word(seed, j+2), step)
			binary.LittleEndian.PutUint16(dst, d)
			if minimum {
				binary.LittleEndian.PutUint16(dst[2:], tensor.ToFloat16(-7.5*tensor.Float16(d)))
			}
			binary.LittleEndian.PutUint64(dst[codes:], word(seed, j))
			binary.LittleEndian.PutUint64(dst[codes+8:], word(seed, j+1))
		}
	}
}
