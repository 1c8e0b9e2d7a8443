package optest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// coldBytes is how many bytes the copies of a case's buffers have together. Calls take one copy after the other: so a call's weights come
// from memory, as they do when a model runs, and not from a cache.
const coldBytes = 256 << 20

// coldBytes is the constant, or less in short runs, which tests make.
func (b *bencher) coldBytes() int64 {
	if b.Short {
		return coldBytes >> 5
	}
	return coldBytes
}

// lineAlign is what the addresses of timed buffers are a multiple of: the lines of every cache, and what devices allocate by.
const lineAlign = 256

// staged is a case's buffers on the target, several times over.
type staged struct {
	fields []field
	base   op.Ptr
	calls  []any // the op's struct for each copy
	cold   bool  // the copies are more than a cache holds
}

// stage fills a case's buffers on the device, by repeating a small random part. Results are not compared, so that any numbers of the usual
// size will do. The caller frees base.
func (b *bencher) stage(c *Case) (s *staged, err error) {
	list, err := b.target.fields(c)
	if err != nil {
		return nil, err
	}
	places, size := make([]placed, len(list)), int64(0)
	for i, f := range list {
		if f.weight && f.inner == 0 {
			return nil, errNoScheme
		}
		places[i] = placed{f, size}
		size = (size + f.bytes() + lineAlign - 1) / lineAlign * lineAlign
	}
	if size == 0 {
		return nil, fmt.Errorf("%s %s has no buffers", c.Op, c.Name)
	}
	touched, _ := c.work(list) // less than all buffers hold where few of the experts or cache blocks are used
	touched = max(touched, 1)
	copies := min(b.coldBytes()/touched+1, b.clock.bytes()/size+1, b.clock.calls())
	s = &staged{fields: list, cold: copies*touched >= b.coldBytes()/4*3}
	if s.base, err = b.Device.Alloc(copies * size); err != nil {
		return nil, err
	}
	for _, p := range places {
		if err = b.fillOn(c, p, s.base+op.Ptr(p.offset)); err != nil {
			break
		}
	}
	b.double(s.base, size, copies*size)
	if failed := b.target.stream.Sync(); err == nil {
		err = failed
	}
	if err != nil {
		b.Device.Free(s.base)
		return nil, err
	}
	for i := range copies {
		s.calls = append(s.calls, b.target.bind(c, places, s.base+op.Ptr(i*size)).Interface())
	}
	return s, nil
}

// double repeats the first have bytes at base until all bytes are filled, by copying what is filled behind itself.
func (b *bencher) double(base op.Ptr, have, all int64) {
	for ; have < all && have > 0; have *= 2 {
		b.Set.Copy(b.target.stream, op.Copy{Out: base + op.Ptr(have), In: base, Bytes: min(have, all-have)})
	}
}

// fillOn fills one buffer. Results stay zero.
func (b *bencher) fillOn(c *Case, p placed, at op.Ptr) error {
	given, numbers := c.values[p.name], c.numbers[p.name]
	switch {
	case p.weight:
		name, _, _ := strings.Cut(p.name, ".")
		return b.packOn(c, c.matrix(name), at)
	case p.role == out || p.bytes() == 0:
		return nil
	case numbers != nil:
		tile := make([]byte, len(numbers)*int(p.dtype.Bytes()))
		oracle.Encode(tile, p.dtype, numbers)
		b.tile(at, p.bytes(), tile)
	case given != nil && int64(len(given)) != p.bytes():
		return fmt.Errorf("%s %s: %d bytes are given for %s of %d bytes", c.Op, c.Name, len(given), p.name, p.bytes())
	case given != nil:
		b.target.stream.Write(at, given)
	case strings.HasSuffix(p.name, ".Scale"):
		w := c.matrix(strings.TrimSuffix(p.name, ".Scale"))
		tile := make([]byte, 4*min(tileRows, w.Rows))
		w.Rows, w.Count = min(tileRows, w.Rows), 1
		oracle.Encode(tile, op.F32, factors(w, c.random(b.Seed)))
		b.tile(at, p.bytes(), tile)
	case p.dtype == op.F32 || p.dtype == op.BF16 || p.dtype == op.F16 || p.dtype == op.U8:
		b.tile(at, p.bytes(), b.random(p.dtype))
	default:
		return fmt.Errorf("%s %s: nothing says what %s holds", c.Op, c.Name, p.name)
	}
	return nil
}

// tile repeats some bytes over a buffer.
func (b *bencher) tile(at op.Ptr, all int64, tile []byte) {
	n := min(int64(len(tile)), all)
	b.target.stream.Write(at, tile[:n])
	b.double(at, n, all)
}

// random is a tile of normally distributed numbers, or of random bytes for U8. All buffers of a type have the same one.
func (b *bencher) random(t op.DType) []byte {
	if b.tiles[t] == nil {
		tile, rng := make([]byte, 1<<18), rand.New(rand.NewPCG(b.Seed, uint64(t)))
		if t == op.U8 {
			fillBytes(tile, rng)
		} else {
			normal(tile, t, rng)
		}
		b.tiles[t] = tile
	}
	return b.tiles[t]
}

// tileRows is how many rows of a matrix are random. The others repeat them, so that 128 rows share their scales as in checkpoints.
const tileRows = op.F8BlockRows

// packOn makes a weight. A checkpoint's matrix is made by repeating a few rows, and packed; all stacked matrices are copies of it.
func (b *bencher) packOn(c *Case, w op.Weight, at op.Ptr) error {
	few := w
	few.Rows = min(tileRows, w.Rows)
	size := w.Scheme.RawBytes(int64(w.Rows), int64(w.Cols))
	raw, err := b.Device.Alloc(size)
	if err != nil {
		return err
	}
	defer b.Device.Free(raw)
	tile := checkpoint(few, c.random(b.Seed))
	from, codes := codeBytes(few), codeBytes(w)
	b.tile(raw, codes, tile[:from])
	if size > codes {
		b.tile(raw+op.Ptr(codes), size-codes, tile[from:])
	}
	one := w
	one.Data, one.Scale, one.Count = at, 0, 1
	b.Set.Pack(b.target.stream, op.Pack{W: one, Raw: raw, Bytes: size})
	packed := b.Set.PackedBytes(w.Scheme, w.Rows, w.Cols)
	b.double(at, w.Stride, w.Stride*int64(w.Count-1)+packed)
	return b.target.stream.Sync() // before raw is freed
}

// codeBytes is how many of a matrix's raw bytes come before its block scales; all of them where codes and scales are mixed.
func codeBytes(w op.Weight) int64 {
	rows, cols := int64(w.Rows), int64(w.Cols)
	switch w.Scheme {
	case op.SchemeF8Block:
		return rows * cols
	case op.SchemeNVFP4:
		return rows * cols / 2
	}
	return w.Scheme.RawBytes(rows, cols)
}
