package optest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// sequence is one sequence of a ragged batch: it has length tokens, and the batch has its last rows.
type sequence struct{ rows, length int }

// nowhere is the block id of table entries past the end of a sequence: a kernel that uses one fails.
const nowhere = math.MaxInt32 - 1000

// attention makes a case of a ragged batch, with so many rows of padding at its end. x gives heads, sizes and types.
func attention(name string, x op.PagedAttention, batch []sequence, padding int) *Case {
	rng := rand.New(rand.NewPCG(uint64(len(name)), uint64(len(batch))))
	size := int(x.BlockSize)
	starts, lengths := []int32{0}, []int32{}
	blocks, rows := 0, 0
	for _, s := range batch {
		rows += s.rows
		starts, lengths = append(starts, int32(rows)), append(lengths, int32(s.length))
		n := (s.length + size - 1) / size
		blocks += n
		x.MaxBlocks = max(x.MaxBlocks, int32(n+1))
	}
	free := rng.Perm(blocks + 3) // three blocks belong to nobody
	x.Rows, x.Seqs, x.Blocks = int32(rows+padding), int32(len(batch)), int32(len(free))
	x.QPitch = max(x.QPitch, x.Heads*x.HeadDim)
	x.Scale = float32(1 / math.Sqrt(float64(x.HeadDim)))
	tables := make([]int32, 0, len(batch)*int(x.MaxBlocks))
	for _, s := range batch {
		for b := range int(x.MaxBlocks) {
			if b*size < s.length {
				tables, free = append(tables, int32(free[0])), free[1:]
			} else {
				tables = append(tables, nowhere)
			}
		}
	}
	c := of(name, x)
	set(c, "Starts", starts)
	set(c, "Lengths", lengths)
	set(c, "Tables", tables)
	return c
}

// decodes are n sequences of one row each. The first has length tokens, and each further one step tokens more.
func decodes(n, length, step int) []sequence {
	list := make([]sequence, n)
	for i := range list {
		list[i] = sequence{1, length + i*step}
	}
	return list
}

// heads is an attention's shape.
type heads struct{ query, key, dim int }

func (h heads) String() string { return fmt.Sprintf("%d/%d×%d", h.query, h.key, h.dim) }

// headShapes cover groups of 1, 3, 4 and 8 query heads per key head.
var headShapes = []heads{{1, 1, 64}, {9, 3, 64}, {4, 4, 32}, {4, 1, 48}, {8, 2, 128}, {16, 2, 128}, {8, 1, 256}}

func (h heads) attention(kv op.DType, blockSize, window int) op.PagedAttention {
	return op.PagedAttention{
		Heads: int32(h.query), KVHeads: int32(h.key), HeadDim: int32(h.dim), KVType: kv, BlockSize: int32(blockSize), Window: int32(window),
	}
}

var kvTypes = []op.DType{op.F32, op.BF16}

func attentionCases(o Options) []*Case {
	var list []*Case
	mixed := []sequence{{37, 37}, {1, 100}, {0, 0}, {1, 1}, {3, 64}, {1, 257}}
	edges := []sequence{{1, 15}, {1, 16}, {1, 17}, {16, 16}, {17, 17}, {15, 31}, {2, 33}}
	for i, h := range headShapes {
		for _, kv := range kvTypes {
			if o.Short && i > 3 {
				continue
			}
			x := h.attention(kv, 16, 0)
			list = append(list, attention(fmt.Sprintf("mixed %s %s", h, kv), x, mixed, 3))
			list = append(list, attention(fmt.Sprintf("one row %s %s", h, kv), x, []sequence{{1, 130}}, 0))
			x.QPitch = int32(h.query+2*h.key) * x.HeadDim
			list = append(list, attention(fmt.Sprintf("block edges, pitch %s %s", h, kv), x, edges, 0))
		}
	}
	for _, kv := range kvTypes {
		h := heads{6, 2, 64}
		for _, window := range []int{1, 8, 16, 33, 1000} {
			list = append(list, attention(fmt.Sprintf("window %d %s", window, kv), h.attention(kv, 16, window), mixed, 0))
		}
		for _, size := range []int{8, 32, 64, 256} {
			list = append(list, attention(fmt.Sprintf("blocks of %d %s", size, kv), h.attention(kv, size, 0), []sequence{{2, size - 1}, {1, size}, {3, size + 1}, {1, 2*size + 1}}, 1))
		}
		list = append(list, attention(fmt.Sprintf("64 decodes %s", kv), h.attention(kv, 16, 0), decodes(64, 1, 5), 0))
		list = append(list, attention(fmt.Sprintf("all empty %s", kv), h.attention(kv, 16, 0), []sequence{{0, 0}, {0, 5}}, 2))
		if !o.Short {
			list = append(list, attention(fmt.Sprintf("long %s", kv), h.attention(kv, 16, 0), []sequence{{1, 4097}, {300, 300}, {5, 2000}}, 0))
			few := []sequence{{1, 4097}, {1, 1}, {1, 1100}}
			list = append(list, attention(fmt.Sprintf("long decodes %s", kv), heads{8, 2, 128}.attention(kv, 16, 0), few, 0))
			list = append(list, attention(fmt.Sprintf("long decodes, window %s", kv), heads{4, 2, 64}.attention(kv, 16, 2500), few, 0))
			list = append(list, attention(fmt.Sprintf("16 decodes of four chunks %s", kv), heads{8, 2, 64}.attention(kv, 16, 0), decodes(16, 1700, 20), 0))
			list = append(list, attention(fmt.Sprintf("very long decode %s", kv), heads{4, 1, 64}.attention(kv, 16, 0), []sequence{{1, 8700}}, 0))
			list = append(list, attention(fmt.Sprintf("very long decodes %s", kv), heads{8, 4, 128}.attention(kv, 16, 0), []sequence{{1, 6300}, {1, 130}, {1, 1}, {1, 3000}}, 0))
			list = append(list, attention(fmt.Sprintf("12 decodes of many heads %s", kv), heads{32, 4, 128}.attention(kv, 16, 0), decodes(12, 40, 90), 0))
			list = append(list, attention(fmt.Sprintf("10 decodes of many key heads %s", kv), heads{16, 8, 128}.attention(kv, 16, 0), decodes(10, 700, 60), 0))
			list = append(list, attention(fmt.Sprintf("12 decodes of up to five chunks %s", kv), heads{16, 4, 128}.attention(kv, 16, 0), decodes(12, 150, 200), 0))
			list = append(list, attention(fmt.Sprintf("20 decodes of many key heads %s", kv), heads{8, 8, 128}.attention(kv, 16, 0), decodes(20, 30, 50), 0))
			list = append(list, attention(fmt.Sprintf("40 decodes of many key heads %s", kv), heads{16, 8, 128}.attention(kv, 16, 0), append(decodes(40, 5, 20), sequence{0, 0}, sequence{5, 300}, sequence{1, 77}), 0))
			list = append(list, attention(fmt.Sprintf("8 long decodes of one length %s", kv), heads{8, 8, 128}.attention(kv, 16, 0), decodes(8, 2100, 0), 0))
			list = append(list, attention(fmt.Sprintf("33 long decodes of one length %s", kv), heads{4, 4, 128}.attention(kv, 16, 0), decodes(33, 2060, 0), 0))
			more := []sequence{{1, 1025}, {1, 700}, {1, 40}, {2, 1300}}
			list = append(list, attention(fmt.Sprintf("long decodes of many heads %s", kv), heads{8, 8, 128}.attention(kv, 16, 0), more, 0))
		}
	}
	return list
}

func rotaryCases(o Options) []*Case {
	var list []*Case
	for i, h := range headShapes {
		for k := range 4 {
			if o.Short && (i+k)%2 == 1 {
				continue
			}
			x := op.RotaryCache{
				Heads: int32(h.query), KVHeads: int32(h.key), HeadDim: int32(h.dim), Pairs: int32(h.dim / 2), BlockSize: 16,
				Pairing: op.Pairing(k % 2), KVType: kvTypes[(i+k/2)%2], Eps: 1e-6,
			}
			norms := []string{"QNorm", "KNorm"}
			if k == 1 || k == 2 {
				norms = nil
			}
			for _, rows := range []int{1, 5, 33} {
				name := fmt.Sprintf("%s rows %d pairing %d norms %d %s", h, rows, x.Pairing, len(norms), x.KVType)
				list = append(list, rotary(name, x, rows).with(norms...))
			}
			x.Pairs = int32(h.dim / 8)
			list = append(list, rotary(fmt.Sprintf("%s partial, pairing %d norms %d %s", h, x.Pairing, len(norms), x.KVType), x, 7).with(norms...))
		}
	}
	for i, kv := range kvTypes { // many rows of heads whose elements are all rotated
		x := op.RotaryCache{Heads: 5 + 35*int32(i), KVHeads: 1 + 3*int32(i), HeadDim: 128, Pairs: 64, BlockSize: 16, KVType: kv, Eps: 1e-6}
		list = append(list, rotary(fmt.Sprintf("%d/%d×128 rows 130 %s", x.Heads, x.KVHeads, kv), x, 130).with([]string{"QNorm", "KNorm"}[:2-i]...))
	}
	for i, h := range []heads{{16, 2, 256}, {4, 2, 64}, {3, 1, 48}} { // a quarter of each head is rotated, and a gate as wide as the queries follows the values
		x := op.RotaryCache{Heads: int32(h.query), KVHeads: int32(h.key), HeadDim: int32(h.dim), Pairs: int32(h.dim / 8), BlockSize: 16, KVType: kvTypes[(i+1)%2], Eps: 1e-6}
		x.QKVPitch = 2 * (x.Heads + x.KVHeads) * x.HeadDim
		for _, rows := range []int{1, 9, 130} {
			if o.Short && rows > 100 {
				continue
			}
			list = append(list, rotary(fmt.Sprintf("%s rows %d partial, gates follow %s", h, rows, x.KVType), x, rows).with("QNorm", "KNorm"))
		}
	}
	h := headShapes[1]
	x := op.RotaryCache{Heads: int32(h.query), KVHeads: int32(h.key), HeadDim: int32(h.dim), Pairs: int32(h.dim / 2), BlockSize: 32, KVType: op.BF16, Eps: 1e-5}
	return append(list, rotary("300 rows", x, 300), rotary("only the queries have a norm", x, 4).with("QNorm"))
}

// rotary makes a case whose rows go to random slots of the cache; every fifth row is not stored.
func rotary(name string, x op.RotaryCache, rows int) *Case {
	rng := rand.New(rand.NewPCG(uint64(rows), uint64(x.HeadDim)))
	x.Rows, x.Blocks = int32(rows), int32(rows)/x.BlockSize+3
	x.QKVPitch = max(x.QKVPitch, (x.Heads+2*x.KVHeads)*x.HeadDim)
	slots := make([]int32, rows)
	for r, slot := range rng.Perm(int(x.Blocks * x.BlockSize))[:rows] {
		slots[r] = int32(slot)
		if r%5 == 4 {
			slots[r] = -1 - int32(r)
		}
	}
	c := of(name, x)
	set(c, "Slots", slots)
	set(c, "Angles", anyAngles(rng, rows, int(x.Pairs)))
	return c
}

// anyAngles is a table of random angles in the form that RotaryAngles makes.
func anyAngles(rng *rand.Rand, rows, pairs int) []float32 {
	angles := make([]float32, 0, rows*2*pairs)
	for range rows {
		cosines, sines := make([]float32, pairs), make([]float32, pairs)
		for j := range cosines {
			sin, cos := math.Sincos(2 * math.Pi * rng.Float64())
			cosines[j], sines[j] = float32(cos), float32(sin)
		}
		angles = append(append(angles, cosines...), sines...)
	}
	return angles
}

func angleCases() []*Case {
	var list []*Case
	for _, shape := range []struct{ rows, axes, pairs, limit int }{{1, 1, 32, 10}, {5, 1, 12, 4000}, {300, 1, 64, 40000}, {33, 3, 64, 9000}, {2, 3, 7, 100}, {1, 1, 1, 1}} {
		rng := rand.New(rand.NewPCG(uint64(shape.rows), uint64(shape.pairs)))
		positions := make([]int32, shape.axes*shape.rows)
		for i := range positions {
			positions[i] = int32(rng.IntN(shape.limit))
		}
		frequencies, axis := make([]float32, shape.pairs), make([]int32, shape.pairs)
		for j := range frequencies {
			frequencies[j] = float32(math.Pow(10000, -float64(j)/float64(shape.pairs)))
			axis[j] = int32(rng.IntN(shape.axes))
		}
		c := of(fmt.Sprintf("rows %d axes %d pairs %d", shape.rows, shape.axes, shape.pairs),
			op.RotaryAngles{Rows: int32(shape.rows), Axes: int32(shape.axes), Pairs: int32(shape.pairs), Scale: 1 + float32(shape.axes-1)/10})
		set(c, "Positions", positions)
		set(c, "Frequency", frequencies)
		if shape.axes > 1 {
			set(c.with("Axis"), "Axis", axis)
		}
		list = append(list, c)
	}
	return append(list, interleavedAngles(1), interleavedAngles(37))
}

// interleavedAngles are those of positions in time, height and width whose frequencies take turns, as in Qwen3.5: the sections of 11, 11 and 10
// pairs are not in a row.
func interleavedAngles(rows int) *Case {
	const axes, pairs = 3, 32
	rng := rand.New(rand.NewPCG(uint64(rows), pairs))
	positions, frequencies, axis := make([]int32, axes*rows), make([]float32, pairs), make([]int32, pairs)
	for i := range positions {
		positions[i] = int32(rng.IntN(3000))
	}
	for j := range frequencies {
		frequencies[j], axis[j] = float32(math.Pow(1e7, -float64(j)/pairs)), int32(j%axes)
	}
	c := of(fmt.Sprintf("rows %d of interleaved axes", rows), op.RotaryAngles{Rows: int32(rows), Axes: axes, Pairs: pairs, Scale: 1}).with("Axis")
	set(c, "Positions", positions)
	set(c, "Frequency", frequencies)
	set(c, "Axis", axis)
	return c
}
