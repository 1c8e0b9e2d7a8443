package oracle

import (
	"math"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// RotaryAngles makes the table of cosines and sines. The angle is rounded to float32 first, as the published models do: at a position of
// 100000 the difference is visible.
func (s *Set) RotaryAngles(_ op.Stream, x op.RotaryAngles) {
	rows, pairs := int(x.Rows), int(x.Pairs)
	positions := slice[int32](x.Positions, int(x.Axes)*rows)
	frequencies := slice[float32](x.Frequency, pairs)
	axes := make([]int32, pairs)
	if x.Axis != 0 {
		axes = slice[int32](x.Axis, pairs)
	}
	for r := range rows {
		row := make([]float64, 2*pairs)
		for j, frequency := range frequencies {
			angle := float64(float32(positions[int(axes[j])*rows+r]) * frequency)
			row[j] = float64(x.Scale) * math.Cos(angle)
			row[pairs+j] = float64(x.Scale) * math.Sin(angle)
		}
		s.store(x.Out, op.F32, r*2*pairs, row)
	}
}

// RotaryCache rotates queries and keys, and stores keys and values. What is stored in the cache is rounded once, to the cache's type.
func (s *Set) RotaryCache(_ op.Stream, x op.RotaryCache) {
	heads, kvHeads, dim, pairs := int(x.Heads), int(x.KVHeads), int(x.HeadDim), int(x.Pairs)
	width := (heads + 2*kvHeads) * dim
	slots := slice[int32](x.Slots, int(x.Rows))
	turn := func(head, angles []float64, norm op.Ptr) {
		if norm != 0 {
			normalise(head, load(norm, op.F32, 0, dim), x.Eps)
		}
		rotate(head, angles, x.Pairing)
	}
	for r := range int(x.Rows) {
		at := r * int(x.QKVPitch)
		row := load(x.QKV, s.act, at, width)
		angles := load(x.Angles, op.F32, r*2*pairs, 2*pairs)
		for h := range heads {
			turn(row[h*dim:(h+1)*dim], angles, x.QNorm)
		}
		keys, values := row[heads*dim:(heads+kvHeads)*dim], row[(heads+kvHeads)*dim:]
		for h := range kvHeads {
			turn(keys[h*dim:(h+1)*dim], angles, x.KNorm)
		}
		s.store(x.QKV, s.act, at, row[:(heads+kvHeads)*dim])
		if slots[r] < 0 {
			continue
		}
		for h := range kvHeads {
			at := cacheIndex(int(slots[r])/int(x.BlockSize), int(slots[r])%int(x.BlockSize), h, kvHeads, int(x.BlockSize), dim)
			s.store(x.K, x.KVType, at, keys[h*dim:(h+1)*dim])
			s.store(x.V, x.KVType, at, values[h*dim:(h+1)*dim])
		}
	}
}

// rotate rotates the first pairs of a head by angles, which holds all cosines and then all sines.
func rotate(head, angles []float64, pairing op.Pairing) {
	pairs := len(angles) / 2
	for j := range pairs {
		a, b := j, j+pairs
		if pairing == op.PairNeighbours {
			a, b = 2*j, 2*j+1
		}
		cos, sin := angles[j], angles[pairs+j]
		head[a], head[b] = head[a]*cos-head[b]*sin, head[b]*cos+head[a]*sin
	}
}

// cacheIndex is the first element of a key or value in [Blocks,KVHeads,BlockSize,HeadDim].
func cacheIndex(block, offset, head, kvHeads, blockSize, dim int) int {
	return ((block*kvHeads+head)*blockSize + offset) * dim
}

// PagedAttention attends over the cache.
func (s *Set) PagedAttention(_ op.Stream, x op.PagedAttention) {
	starts := slice[int32](x.Starts, int(x.Seqs)+1)
	lengths := slice[int32](x.Lengths, int(x.Seqs))
	tables := slice[int32](x.Tables, int(x.Seqs)*int(x.MaxBlocks))
	for seq := range int(x.Seqs) {
		table := tables[seq*int(x.MaxBlocks) : (seq+1)*int(x.MaxBlocks)]
		first, end := int(starts[seq]), int(starts[seq+1])
		parallel((end-first)*int(x.Heads), func(from, to int) {
			for i := from; i < to; i++ {
				r, h := first+i/int(x.Heads), i%int(x.Heads)
				s.attend(x, table, r, h, int(lengths[seq])-(end-r))
			}
		})
	}
}

// attend computes one query head of the row that stands at position.
func (s *Set) attend(x op.PagedAttention, table []int32, row, head, position int) {
	dim, size := int(x.HeadDim), int(x.BlockSize)
	query := load(x.Q, s.act, row*int(x.QPitch)+head*dim, dim)
	first := 0
	if x.Window > 0 {
		first = max(0, position-int(x.Window)+1)
	}
	kvHead := head / int(x.Heads/x.KVHeads)
	index := func(t int) int { return cacheIndex(int(table[t/size]), t%size, kvHead, int(x.KVHeads), size, dim) }

	scores := make([]float64, position+1-first)
	for i := range scores {
		scores[i] = float64(x.Scale) * dot(query, load(x.K, x.KVType, index(first+i), dim))
	}
	softmax(scores)
	out := make([]float64, dim)
	for i, p := range scores {
		for c, v := range load(x.V, x.KVType, index(first+i), dim) {
			out[c] += p * v
		}
	}
	s.store(x.Out, s.act, (row*int(x.Heads)+head)*dim, out)
}

func softmax(x []float64) {
	top, sum := math.Inf(-1), 0.0
	for _, v := range x {
		top = max(top, v)
	}
	for i, v := range x {
		x[i] = math.Exp(v - top)
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
}
