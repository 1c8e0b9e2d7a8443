package load

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sync/errgroup"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/mapping"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// batchBytes bounds the stacked matrices that are copied together. It is enough to keep every copying goroutine busy.
const batchBytes = 64 << 20

// batch is copies into a stage that are made together, and the tensors of the checkpoint whose bytes they read.
type batch struct {
	stage   stage
	pieces  []device.Piece
	tensors []weights.Tensor
}

func (b *batch) add(to op.Ptr, from []byte) {
	b.pieces = append(b.pieces, device.Piece{To: to, From: from})
}

// write makes the copies. Where a page cannot be read, the error names the tensor.
func (b *batch) write() error {
	slices.SortFunc(b.pieces, func(a, b device.Piece) int { return cmp.Compare(a.To, b.To) }) // what follows each other is copied together
	err := mapping.Guard(func() error {
		b.stage.stream.WriteAll(b.pieces)
		return nil
	})
	var fault interface{ Addr() uintptr }
	if !errors.As(err, &fault) {
		return err
	}
	for _, t := range b.tensors {
		if start := uintptr(unsafe.Pointer(unsafe.SliceData(t.Data))); fault.Addr()-start < uintptr(len(t.Data)) {
			return wrap(t, err)
		}
	}
	return err
}

// letGo gives tensors back whose bytes were copied. While those are still in memory it looks at codes of FP8: one that is no number is an
// error, since the kernels of a GPU would read NaN there and those of a CPU 480.
func (l *Loader) letGo(tensors []weights.Tensor) []error {
	errs := make([]error, len(tensors))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, t := range tensors {
		group.Go(func() error {
			if t.Type == tensor.F8_E4M3 {
				errs[i] = weights.Finite(t)
			}
			l.checkpoint.Release(t)
			return nil
		})
	}
	group.Wait()
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// stage adds a matrix to b, to be copied to the address to: the codes of all parts, and then their block scales. It returns the scales of
// its rows, in formats that have them.
func (l *Loader) stage(b *batch, to op.Ptr, w op.Weight, parts []model.Part) (factors []float32) {
	codes, _ := split(w.Scheme, int64(w.Rows), int64(w.Cols))
	code, scale := to, to+op.Ptr(codes)
	for _, p := range parts {
		s, ok := l.stored(p.Name)
		if !ok || s.problem != "" || s.Scheme != w.Scheme {
			l.fail(fmt.Errorf("%s is not stored as %s %s", p.Name, w.Scheme, s.problem))
			return make([]float32, w.Rows)
		}
		codes, scales := split(w.Scheme, int64(p.Rows), int64(w.Cols))
		if s.quantises {
			own, err := l.quantised(b, s, p, code, scale, int64(w.Cols))
			l.fail(err)
			factors = append(factors, append(own, make([]float32, int(p.Rows)-len(own))...)...)
			code, scale = code+op.Ptr(codes), scale+op.Ptr(scales)
			continue
		}
		l.fail(l.codes(b, s, p, code, codes))
		switch w.Scheme {
		case op.SchemeF8Block:
			l.fail(l.blocks(b, s, p, scale, int64(w.Cols)))
		case op.SchemeNVFP4:
			l.fail(l.tensor(b, s.blocks.Name, p, scale, scales))
		}
		if scaled(w.Scheme) {
			factors = append(factors, l.factors(s, p)...)
		}
		code, scale = code+op.Ptr(codes), scale+op.Ptr(scales)
	}
	return factors
}

// codes adds the codes of one part, so many bytes, converted where they are kept in another form than the checkpoint's.
func (l *Loader) codes(b *batch, s Storage, p model.Part, to op.Ptr, bytes int64) error {
	if !s.converts() {
		return l.tensor(b, s.Name, p, to, bytes)
	}
	t, err := l.checkpoint.Tensor(s.Name)
	if err != nil {
		return err
	}
	defer l.checkpoint.Release(t)
	if stored := rowsIn(p, bytes); s.Scheme.RawBytes(1, t.Elements()) != stored {
		return fmt.Errorf("%s has %d elements, which are not %d bytes of %s", t.Info, t.Elements(), stored, s.Scheme)
	}
	converted := make([]byte, bytes)
	if err := convert(converted, s.Scheme, t.Type, runs(t.Data, p)); err != nil {
		return wrap(t, err)
	}
	b.add(to, converted)
	return nil
}

// tensor adds a part's rows of a tensor, so many bytes, as they are.
func (l *Loader) tensor(b *batch, name string, p model.Part, to op.Ptr, bytes int64) error {
	t, err := l.checkpoint.Tensor(name)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(b.tensors, func(other weights.Tensor) bool { return other.Name == name }) { // several parts may be rows of one
		b.tensors = append(b.tensors, t)
	}
	if stored := rowsIn(p, bytes); int64(len(t.Data)) != stored {
		return fmt.Errorf("%s has %d bytes, not %d", t.Info, len(t.Data), stored)
	}
	for _, run := range runs(t.Data, p) {
		b.add(to, run)
		to += op.Ptr(len(run))
	}
	return nil
}

// blocks adds the block scales of a part. A block of the checkpoint (usually 128×128) holds several of SchemeF8Block's: its scale is
// written for each of them.
func (l *Loader) blocks(b *batch, s Storage, p model.Part, to op.Ptr, cols int64) error {
	pitch := divideUp(cols, s.blockCols)
	stored := divideUp(storedRows(p), s.blockRows) * pitch
	if s.blocks.Elements() != stored {
		return fmt.Errorf("%s has %d elements, not %d", s.blocks, s.blocks.Elements(), stored)
	}
	values := l.Values(s.blocks.Name, int32(stored))
	var all []byte
	for row := int64(0); row < int64(p.Rows); row += op.F8BlockRows {
		for col := int64(0); col < cols; col += op.F8BlockCols {
			all = binary.LittleEndian.AppendUint32(all, math.Float32bits(values[storedRow(p, row)/s.blockRows*pitch+col/s.blockCols]))
		}
	}
	b.add(to, all)
	return nil
}

// factors are the scales of a part's rows.
func (l *Loader) factors(s Storage, p model.Part) []float32 {
	all := make([]float32, p.Rows)
	n, stored := s.factor.Elements(), storedRows(p)
	if n != 1 && n != stored {
		l.fail(fmt.Errorf("%s is not one scale, nor one for each of %d rows", s.factor, stored))
		return all
	}
	values := l.Values(s.factor.Name, int32(n))
	for i := range all {
		all[i] = values[min(storedRow(p, int64(i)), n-1)]
		if s.divides {
			all[i] = 1 / all[i]
		}
		if math.IsInf(float64(all[i]), 0) {
			l.fail(fmt.Errorf("%s: row %d is scaled by %g: the file is damaged", s.factor, i, all[i]))
			return all
		}
	}
	return all
}
