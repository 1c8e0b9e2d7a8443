package dummy

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"runtime"
	"strings"
	"sync"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// period is how many units a pattern has. It is a prime, so that rows of a matrix do not begin at the same unit.
const period = 262139

// unit is how many bytes a unit has, by type.
var unit = map[weights.Type]int{
	tensor.BF16: 8, tensor.F16: 8, tensor.F32: 16, tensor.U8: 8, tensor.F8_E4M3: 8, tensor.Q8_0: 34, tensor.Q4_0: 18, tensor.Q4_1: 20,
	tensor.Q5_0: 22, tensor.Q4_K: 144, tensor.Q6_K: 210,
}

// Root mean squares of codes: of F8_E4M3 as made here, and of fp4 times its block scales.
const (
	spreadF8  = 0.6
	spreadFP4 = 3.4
)

func scale(k float64, columns int64) float32 { return float32(1 / (k * math.Sqrt(float64(columns)))) }

// spread is the number of columns that the size of a matrix's values is computed from. The output projection of a mixer counts 64 times
// its columns: see the package comment.
func spread(name string, columns int64) int64 {
	if strings.HasSuffix(name, "o_proj.weight") || strings.HasSuffix(name, "out_proj.weight") {
		return 64 * columns
	}
	return columns
}

// recipe is how a tensor is made.
type recipe struct {
	weights.Info
	constant float32 // the value of all elements; 0: they follow a pattern
	offset   float32 // is added to the elements of a vector when it is loaded
}

// pattern names one of the patterns.
type pattern struct {
	kind    weights.Type
	columns int64   // from which the size of values is computed; 0: they are those of a vector, factor·x + offset
	factor  float32 // of a vector
	offset  float32 // of a vector
	scale   bool
}

// choice is the pattern that a recipe repeats.
func (r recipe) choice() pattern {
	p := pattern{kind: r.Type}
	switch r.Type {
	case tensor.U8:
	case tensor.F8_E4M3:
		p.scale = strings.HasSuffix(r.Name, "scale")
	default:
		if len(r.Shape) > 1 {
			p.columns = spread(r.Name, r.Cols())
		} else {
			p.factor, p.offset = vector(r.Name, r.offset)
		}
	}
	return p
}

// vector tells how the elements of a vector of a name are made from x: multiplied by factor, and then offset is added. loaded is added
// when they are loaded.
func vector(name string, loaded float32) (factor, offset float32) {
	switch {
	case strings.Contains(name, "norm"):
		return 1, 1 - loaded
	case strings.HasSuffix(name, "A_log"):
		return 16, 0
	case strings.HasSuffix(name, "dt_bias"):
		return 32, -4
	}
	return 1, 0
}

// pattern is the pattern of a recipe, which is made when it is first asked for; nil for a constant.
func (c *Checkpoint) pattern(r recipe) []byte {
	if r.constant != 0 {
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	p := r.choice()
	if c.patterns[p] == nil {
		c.patterns[p] = p.make()
	}
	return c.patterns[p]
}

// fill makes the bytes of a tensor, on all processors where it is large.
func (r recipe) fill(data, pattern []byte) {
	if r.constant != 0 {
		for i := 0; i+4 <= len(data); i += 4 {
			binary.LittleEndian.PutUint32(data[i:], math.Float32bits(r.constant))
		}
		return
	}
	hash := fnv.New64a()
	hash.Write([]byte(r.Name))
	start := int(hash.Sum64()%period) * unit[r.Type]
	const share = 1 << 20 // bytes of a goroutine at least
	workers := min(runtime.GOMAXPROCS(0), 1+len(data)/share)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			from, to := len(data)*w/workers, len(data)*(w+1)/workers
			for from < to {
				from += copy(data[from:to], pattern[(start+from)%len(pattern):])
			}
		})
	}
	group.Wait()
}

// word is output j of SplitMix64 from state 0.
func word(j uint64) uint64 {
	z := (j + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (p pattern) make() []byte {
	put, width := p.writer(), unit[p.kind]
	data := make([]byte, period*width)
	for v := range period {
		put(data[v*width:(v+1)*width], uint64(v))
	}
	return data
}

// writer gives the function that makes unit v.
func (p pattern) writer() func(dst []byte, v uint64) {
	root, amplitude := math.Sqrt(float64(p.columns)), float64(p.factor)/16
	if p.columns > 0 {
		amplitude = math.Sqrt(3 / float64(p.columns))
	}
	step := float32(amplitude / 65536)
	value := func(w uint64, i int) float32 {
		return p.offset + float32(float32(int32(w>>(16*i)&0xffff)*2-65535)*step)
	}
	switch p.kind {
	case tensor.BF16:
		return func(dst []byte, v uint64) {
			for i := range 4 {
				binary.LittleEndian.PutUint16(dst[2*i:], tensor.ToBFloat16(value(word(v), i)))
			}
		}
	case tensor.F16:
		return func(dst []byte, v uint64) {
			for i := range 4 {
				binary.LittleEndian.PutUint16(dst[2*i:], tensor.ToFloat16(value(word(v), i)))
			}
		}
	case tensor.F32:
		return func(dst []byte, v uint64) {
			for i := range 4 {
				binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(value(word(v), i)))
			}
		}
	case tensor.F8_E4M3:
		if p.scale {
			return func(dst []byte, v uint64) {
				binary.LittleEndian.PutUint64(dst, word(v)&0x0f0f0f0f0f0f0f0f|0x3030303030303030)
			}
		}
		return func(dst []byte, v uint64) { binary.LittleEndian.PutUint64(dst, word(v)&^0x4040404040404040) }
	case tensor.Q8_0:
		return q8(float32(1 / (74 * root) / 131072))
	case tensor.Q4_0:
		return q4(float32(1/(4.2*root)/131072), false)
	case tensor.Q4_1:
		return q4(float32(1/(4.6*root)/131072), true)
	case tensor.Q5_0:
		return func(dst []byte, v uint64) {
			block(4, 0, 2, float32(1/(8.8*root)/131072))(dst, v)
			evenFive(dst)
		}
	case tensor.Q4_K:
		return func(dst []byte, v uint64) {
			block(19, 0, 4, float32(1/(259*root)/131072))(dst, v)
			minimum := 7.5 * tensor.Float16(binary.LittleEndian.Uint16(dst))
			binary.LittleEndian.PutUint16(dst[2:], tensor.ToFloat16(minimum))
		}
	case tensor.Q6_K:
		return block(27, 208, 0, float32(1/(1367*root)/131072))
	}
	return func(dst []byte, v uint64) { binary.LittleEndian.PutUint64(dst, word(v)) }
}

// blockScale is the half-precision scale of a block; step is float32(k/131072).
func blockScale(w uint64, step float32) uint16 {
	return tensor.ToFloat16(float32(98304+w&0xffff) * step)
}

func q8(step float32) func(dst []byte, v uint64) {
	return func(dst []byte, v uint64) {
		binary.LittleEndian.PutUint16(dst, blockScale(word(5*v+4), step))
		for k := range uint64(4) {
			binary.LittleEndian.PutUint64(dst[2+8*k:], word(5*v+k))
		}
		for i, code := range dst[2:34] {
			if code == 0x80 {
				dst[2+i] = 0x81
			}
		}
	}
}

func q4(step float32, minimum bool) func(dst []byte, v uint64) {
	codes := 2 // where the codes begin
	if minimum {
		codes = 4
	}
	return func(dst []byte, v uint64) {
		d := blockScale(word(3*v+2), step)
		binary.LittleEndian.PutUint16(dst, d)
		if minimum {
			binary.LittleEndian.PutUint16(dst[2:], tensor.ToFloat16(-7.5*tensor.Float16(d)))
		}
		for k := range uint64(2) {
			w := word(3*v + k)
			if !minimum {
				w = evenFour(w)
			}
			binary.LittleEndian.PutUint64(dst[codes+int(8*k):], w)
		}
	}
}

// evenFour replaces nibbles of 0 by 8. A nibble q of Q4_0 stands for q-8, so that values are then from -7 to 7, with a mean of zero.
func evenFour(w uint64) uint64 {
	const ones = 0x1111111111111111
	some := (w | w>>1 | w>>2 | w>>3) & ones
	return w | (ones&^some)<<3
}

// evenFive replaces codes of 0 by 16 in a block of Q5_0, where a code q stands for q-16. A block is the scale, four bytes whose bit i is
// the fifth bit of code i, and 16 bytes of nibbles.
func evenFive(block []byte) {
	high := binary.LittleEndian.Uint32(block[2:])
	for i := range 16 {
		low := block[6+i]
		if low&15 == 0 {
			high |= 1 << i
		}
		if low>>4 == 0 {
			high |= 1 << (16 + i)
		}
	}
	binary.LittleEndian.PutUint32(block[2:], high)
}

// block makes blocks from n words: the f16 scale at byte scale from the last word, and the bytes from codes on from the others.
func block(n uint64, scale, codes int, step float32) func(dst []byte, v uint64) {
	return func(dst []byte, v uint64) {
		var all [27 * 8]byte
		for k := range n - 1 {
			binary.LittleEndian.PutUint64(all[8*k:], word(n*v+k))
		}
		copy(dst[codes:], all[:])
		binary.LittleEndian.PutUint16(dst[scale:], blockScale(word(n*v+n-1), step))
	}
}
