package optest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// coldBytes is what calls read and write of all copies of a case's buffers, which they take turns with, so that weights
// come from memory as they do when a model runs, and not from a cache.
const coldBytes = 256 << 20

// coldBytes is less for tests.
func (b *bencher) coldBytes() int64 {
	if b.Short {
		return coldBytes >> 5
	}
	return coldBytes
}

// lineAlign is where buffers that are timed begin: at a line of every cache, and where devices begin theirs.
const lineAlign = 256

// staged is a case's buffers on the target, several times over.
type staged struct {
	fields []field
	base   op.Ptr
	calls  []any // the op's struct for each copy
	cold   bool  // the copies are more than a cache holds
}

// stage fills a case's buffers on the device itself: a little randomness, repeated. Results are not looked at, so that
// contents need only be numbers of the usual size. The caller frees base.
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
	touched, _ := c.work(list) // of many experts or blocks, few may be
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

// double repeats the first have bytes at base until all of them are filled.
func (b *bencher) double(base op.Ptr, have, all int64) {
	for ; have < all && have > 0; have *= 2 {
		b.Set.Copy(b.target.stream, op.Copy{Out: base + op.Ptr(have), In: base, Bytes: min(have, all-have)})
	}
}

// fillOn fills one buffer. What an op writes stays zero, as it was taken.
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

// random is a tile of normal numbers or, of U8, of bytes: the same for all buffers of a type.
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

// tileRows is how many rows of a matrix are random; the others repeat them, so that those of 128 share scales as in checkpoints.
const tileRows = op.F8BlockRows

// packOn makes a weight: one matrix is packed from a checkpoint's bytes that repeat those of a few rows, all that are
// stacked repeat it.
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

// codeBytes is the part of a matrix's raw bytes that is not block scales which lie apart.
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
