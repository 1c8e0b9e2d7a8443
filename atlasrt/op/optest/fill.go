package optest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// contents is what the buffers of a call hold, by name.
type contents map[string][]byte

// fill makes the contents of all buffers except weights: what the case gives, else normally distributed numbers. Results, and gaps between
// the items of inputs, are filled with poison.
func (c *Case) fill(list []field, rng *rand.Rand) (contents, error) {
	if err := c.check(list); err != nil {
		return nil, err
	}
	all := contents{}
	for _, f := range list {
		data := make([]byte, f.bytes())
		poison(data, rng) // also the gaps between items
		given, ok := c.values[f.name]
		switch {
		case f.weight:
			continue
		case f.role == out || len(data) == 0:
		case c.numbers[f.name] != nil:
			oracle.Encode(data, f.dtype, c.numbers[f.name])
		case ok:
			copy(data, given)
		case f.dtype == op.U8:
			fillBytes(data, rng)
		default:
			f.items(func(from, to int64) { normal(data[from:to], f.dtype, rng) })
		}
		all[f.name] = data
	}
	c.untie(list, all)
	return all, nil
}

// check reports what a case gives in another size than its buffer has, and what only the case could know but does not give.
func (c *Case) check(list []field) error {
	for _, f := range list {
		given, ok := c.values[f.name]
		numbers := c.numbers[f.name]
		switch {
		case f.weight, f.role == out, f.bytes() == 0:
		case numbers != nil && int64(len(numbers))*f.dtype.Bytes() != f.bytes():
			return fmt.Errorf("%s %s: %d numbers are given for %s of %d bytes", c.Op, c.Name, len(numbers), f.name, f.bytes())
		case numbers != nil:
		case ok && int64(len(given)) != f.bytes():
			return fmt.Errorf("%s %s: %d bytes are given for %s of %d bytes", c.Op, c.Name, len(given), f.name, f.bytes())
		case !ok && f.dtype != op.U8 && f.dtype != op.F32 && f.dtype != op.BF16 && f.dtype != op.F16:
			return fmt.Errorf("%s %s: nothing says what %s holds", c.Op, c.Name, f.name)
		}
	}
	return nil
}

// poison fills a buffer with random bits that are NaN as f32, bf16 and f16, and out of range as ids.
func poison(data []byte, rng *rand.Rand) {
	noise(data, rng, 0x003f_003f_003f_003f, 0x7fc0_7fc0_7fc0_7fc0)
}

func fillBytes(data []byte, rng *rand.Rand) { noise(data, rng, ^uint64(0), 0) }

// noise fills a buffer with random bits where mask has ones, and sets the bits of base.
func noise(data []byte, rng *rand.Rand, mask, base uint64) {
	for ; len(data) >= 8; data = data[8:] {
		binary.LittleEndian.PutUint64(data, rng.Uint64()&mask|base)
	}
	var last [8]byte
	binary.LittleEndian.PutUint64(last[:], rng.Uint64()&mask|base)
	copy(data, last[:])
}

// normal fills with normally distributed numbers.
func normal(data []byte, t op.DType, rng *rand.Rand) {
	values := make([]float64, len(data)/int(t.Bytes()))
	for i := range values {
		values[i] = rng.NormFloat64()
	}
	oracle.Encode(data, t, values)
}

// checkpoints makes the matrices of a weight.
func checkpoints(w op.Weight, rng *rand.Rand) [][]byte {
	raw := make([][]byte, w.Count)
	for e := range raw {
		raw[e] = checkpoint(w, rng)
	}
	return raw
}

// checkpoint makes the bytes of a matrix as a file holds them. Weights have a standard deviation of 1/√cols, so that products with rows of
// deviation 1 have that, too.
func checkpoint(w op.Weight, rng *rand.Rand) []byte {
	data := make([]byte, w.Scheme.RawBytes(int64(w.Rows), int64(w.Cols)))
	deviation := 1 / math.Sqrt(float64(w.Cols))
	switch w.Scheme {
	case op.SchemeBF16:
		values := make([]float64, len(data)/2)
		for i := range values {
			values[i] = rng.NormFloat64() * deviation
		}
		oracle.Encode(data, op.BF16, values)
		return data
	case op.SchemeF8, op.SchemeF8Block, op.SchemeNVFP4:
		apart(w, data, rng)
		return data
	}
	fillBytes(data, rng)
	size := int(w.Scheme.RawBytes(1, w.Scheme.Block()))
	for block := data; len(block) > 0; block = block[size:] {
		scale := (0.5 + rng.Float64()) * deviation / spread(w.Scheme)
		if rng.IntN(8) == 0 {
			scale = -scale
		}
		at := 0
		if w.Scheme == op.SchemeQ6_K {
			at = size - 2
		}
		oracle.Encode(block[at:], op.F16, []float64{scale})
		minimum := scale * (6.5 + 2*rng.Float64())
		switch w.Scheme {
		case op.SchemeQ4_1:
			oracle.Encode(block[2:], op.F16, []float64{-minimum})
		case op.SchemeQ4_K:
			oracle.Encode(block[2:], op.F16, []float64{minimum})
		}
	}
	return data
}

// spread is the deviation of a block's weights where its codes are uniform and its scale is one.
func spread(scheme op.Scheme) float64 {
	switch scheme {
	case op.SchemeQ8_0: // 256 codes
		return 73.9
	case op.SchemeQ5_0: // 32 codes
		return 9.23
	case op.SchemeQ4_K: // products of 64 scales and 16 codes, minimums of 64 scales
		return 259
	case op.SchemeQ6_K: // products of 256 scales and 64 codes
		return 1367
	}
	return 4.61 // 16 codes
}
