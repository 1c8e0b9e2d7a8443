package load

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/mapping"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Loader is a model.Source that places weights. Close it when the model is gone.
type Loader struct {
	checkpoint weights.Checkpoint
	device     device.Device
	stream     device.Stream
	set        op.Packer
	weights    arena
	buffers    arena
	staging    op.Ptr
	room       int64
	progress   func(bytes int64) // called with the bytes placed so far
	placed     int64
	errs       []error
}

// arena hands out pieces of one allocation.
type arena struct {
	start, next op.Ptr
	end         op.Ptr
}

func (a *arena) take(bytes int64) op.Ptr {
	p := a.next
	a.next += op.Ptr(aligned(bytes))
	if a.next > a.end {
		panic("BUG: a family asked the loader for more than it asked the counter for")
	}
	return p
}

// NewLoader takes the memory that counter found and loads checkpoint into it through stream. progress may be nil.
func NewLoader(checkpoint weights.Checkpoint, d device.Device, stream device.Stream, set op.Packer, counter *Counter, progress func(bytes int64)) (*Loader, error) {
	l := &Loader{checkpoint: checkpoint, device: d, stream: stream, set: set, room: counter.Staging, progress: progress}
	for _, a := range []struct {
		arena *arena
		bytes int64
		what  string
	}{{&l.weights, counter.Weights, "weights"}, {&l.buffers, counter.Buffers, "activations"}} {
		p, err := d.Alloc(a.bytes)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", a.what, err), l.Close())
		}
		*a.arena = arena{p, p, p + op.Ptr(a.bytes)}
	}
	var err error
	if l.staging, err = d.Alloc(counter.Staging); err != nil {
		return nil, errors.Join(fmt.Errorf("staging: %w", err), l.Close())
	}
	return l, nil
}

// Finish waits for the last launch, gives the staging memory back and reports what went wrong, a tensor that the model
// has no use for included.
func (l *Loader) Finish() error {
	l.fail(l.stream.Sync())
	l.device.Free(l.staging)
	l.staging = 0
	l.fail(weights.CheckUsed(l.checkpoint, explained))
	return errors.Join(l.errs...)
}

// explained tells tensors that carry nothing a model needs: buffers that old exports kept, and the copy of a tied head.
func explained(name string) bool {
	return strings.HasSuffix(name, ".rotary_emb.inv_freq") || name == "lm_head.weight"
}

// Close gives all memory back.
func (l *Loader) Close() error {
	for _, p := range []op.Ptr{l.weights.start, l.buffers.start, l.staging} {
		l.device.Free(p)
	}
	*l = Loader{device: l.device}
	return nil
}

func (l *Loader) fail(err error) {
	if err != nil {
		l.errs = append(l.errs, err)
	}
}

// Scheme implements model.Source.
func (l *Loader) Scheme(name string) op.Scheme {
	info, ok := l.checkpoint.Info(name)
	if !ok {
		return op.SchemeBF16
	}
	return SchemeOf(info.Type)
}

// Matrix implements model.Source.
func (l *Loader) Matrix(cols int32, parts ...model.Part) op.Weight {
	return l.Experts(1, cols, func(int32) []model.Part { return parts })
}

// Experts implements model.Source.
func (l *Loader) Experts(count, cols int32, parts func(e int32) []model.Part) op.Weight {
	w := op.Weight{Cols: cols, Count: count, Scheme: l.Scheme(parts(0)[0].Name)}
	for _, p := range parts(0) {
		w.Rows += p.Rows
	}
	w.Stride = aligned(l.set.PackedBytes(w.Scheme, w.Rows, cols))
	w.Data = l.weights.take(w.Stride * int64(count))
	raw := w.Scheme.RawBytes(int64(w.Rows), int64(cols))
	for e := range count {
		offset := int64(0)
		for _, p := range parts(e) {
			bytes := w.Scheme.RawBytes(int64(p.Rows), int64(cols))
			l.fail(l.stage(p.Name, w.Scheme, l.staging+op.Ptr(offset), bytes))
			offset += bytes
		}
		one := w
		one.Data += op.Ptr(w.Stride * int64(e))
		one.Count = 1
		l.set.Pack(l.stream, op.Pack{W: one, Raw: l.staging, Bytes: raw})
		l.placed += raw
		if l.progress != nil {
			l.progress(l.placed)
		}
	}
	return w
}

// stage copies a tensor's bytes to device memory, in scheme's form.
func (l *Loader) stage(name string, scheme op.Scheme, to op.Ptr, bytes int64) error {
	t, err := l.checkpoint.Tensor(name)
	if err != nil {
		return err
	}
	defer l.checkpoint.Release(t)
	if int64(to-l.staging)+bytes > l.room {
		panic("BUG: the staging memory is smaller than a matrix")
	}
	if t.Type == tensor.BF16 || SchemeOf(t.Type) != op.SchemeBF16 {
		if int64(len(t.Data)) != bytes {
			return fmt.Errorf("%s has %d bytes, not %d", t.Info, len(t.Data), bytes)
		}
		return wrap(t, mapping.Guard(func() error {
			l.stream.Write(to, t.Data)
			return nil
		}))
	}
	rounded := make([]byte, bytes)
	if err := toBF16(rounded, t); err != nil {
		return wrap(t, err)
	}
	l.stream.Write(to, rounded)
	return nil
}

func wrap(t weights.Tensor, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", t.Info, err)
}

// Vector implements model.Source.
func (l *Loader) Vector(parts ...model.Part) op.Ptr {
	var all []float32
	for _, p := range parts {
		values := l.Values(p.Name, p.Rows)
		if values == nil {
			values = make([]float32, p.Rows)
			l.fail(fmt.Errorf("%s: %w", p.Name, weights.ErrMissing))
		}
		all = append(all, values...)
	}
	return l.Floats(all)
}

// Values implements model.Source.
func (l *Loader) Values(name string, n int32) []float32 {
	if _, ok := l.checkpoint.Info(name); !ok {
		return nil
	}
	t, err := l.checkpoint.Tensor(name)
	if err == nil && t.Elements() != int64(n) {
		err = fmt.Errorf("%s has %d elements, not %d", t.Info, t.Elements(), n)
	}
	values := make([]float32, n)
	if err == nil {
		err = wrap(t, mapping.Guard(func() error { return gguf.Dequantize(values, t.Type, t.Data) }))
		l.checkpoint.Release(t)
	}
	l.fail(err)
	return values
}

// Floats implements model.Source.
func (l *Loader) Floats(values []float32) op.Ptr {
	bytes := int64(len(values)) * op.F32.Bytes()
	p := l.weights.take(bytes)
	if len(values) > 0 {
		l.stream.Write(p, unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), bytes))
	}
	return p
}

// Buffer implements model.Source.
func (l *Loader) Buffer(bytes int64) op.Ptr { return l.buffers.take(bytes) }
