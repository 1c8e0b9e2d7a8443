package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/mapping"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Loader is a model.Source that places weights. Close it when the model is gone.
type Loader struct {
	ctx        context.Context
	checkpoint weights.Checkpoint
	stored     func(name string) (Storage, bool)
	device     device.Device
	stream     device.Stream
	set        op.Packer
	weights    arena
	buffers    arena
	stages     []stage // one, or two where one may copy while the other packs
	turn       int     // batches so far
	queue      *queue  // owns streams until Finish
	errs       []error

	Asides   []weights.Aside         // parts of the checkpoint that may stay unused
	Progress func(done, total int64) // called during loading, by another goroutine, with the bytes of weights that are placed; may be nil
}

// stage is memory where matrices lie as the checkpoint stores them, before they are packed, and the stream that brings them there.
type stage struct {
	stream device.Stream
	at     op.Ptr
	room   int64 // bytes
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

// NewLoader takes as much memory as counter counted. The loader reads checkpoint, copies through stream, which is its own until Finish or
// Close, and stops when ctx ends.
func NewLoader(ctx context.Context, checkpoint weights.Checkpoint, d device.Device, stream device.Stream, set op.Packer, counter *Counter) (*Loader, error) {
	l := &Loader{ctx: ctx, checkpoint: checkpoint, stored: counter.stored, device: d, stream: stream, set: set}
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
	if err := l.stageOn(stream, counter.Staging); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.queue = newQueue(ctx, l.letGo)
	return l, nil
}

// Overlap gives the loader a second stream, before it loads: batches take turns, so that one is copied while another is packed. It takes some
// more memory until Finish. On a device whose launches take the host's processors it gains nothing.
func (l *Loader) Overlap(stream device.Stream) error {
	return l.stageOn(stream, min(l.stages[0].room, batchBytes))
}

func (l *Loader) stageOn(stream device.Stream, bytes int64) error {
	at, err := l.device.Alloc(bytes)
	if err != nil {
		return fmt.Errorf("staging: %w", err)
	}
	l.stages = append(l.stages, stage{stream, at, bytes})
	return nil
}

// next is the stage of the next batch, of so many bytes.
func (l *Loader) next(bytes int64) stage {
	l.turn++
	if s := l.stages[l.turn%len(l.stages)]; bytes <= s.room {
		return s
	}
	return l.stages[0]
}

// Finish waits for the last launch, gives the staging memory back and returns all errors. A tensor that the model does not use is one.
func (l *Loader) Finish() error {
	l.errs = append(l.errs, l.queue.wait()...)
	for _, s := range l.stages {
		l.fail(s.stream.Sync())
	}
	if l.ctx.Err() != nil {
		return fmt.Errorf("stopped before all weights were there: %w", context.Cause(l.ctx))
	}
	l.unstage()
	l.report(l.weights.end)
	l.fail(weights.CheckUsed(l.checkpoint, l.explained))
	if more := len(l.errs) - maxReported; more > 0 {
		l.errs = append(l.errs[:maxReported], fmt.Errorf("and %d more errors", more))
	}
	return errors.Join(l.errs...)
}

// explained tells tensors that may stay unused: those of asides, buffers that old exports kept, the copy of a tied head, biases that the
// settings turn off, and scales for quantising activations, keys and values, which are not quantised here.
func (l *Loader) explained(name string) bool {
	return name == "lm_head.weight" || isUnusedScale(name) || weights.EndsIn(name, "_proj.bias", ".rotary_emb.inv_freq") ||
		slices.ContainsFunc(l.Asides, func(a weights.Aside) bool { return strings.HasPrefix(name, a.Prefix) })
}

// Close gives all memory back.
func (l *Loader) Close() error {
	if l.queue != nil {
		l.queue.wait()
	}
	l.unstage()
	l.device.Free(l.weights.start)
	l.device.Free(l.buffers.start)
	*l = Loader{device: l.device}
	return nil
}

// unstage gives the memory of all stages back.
func (l *Loader) unstage() {
	for _, s := range l.stages {
		l.device.Free(s.at)
	}
	l.stages = nil
}

func (l *Loader) fail(err error) {
	if err != nil {
		l.errs = append(l.errs, err)
	}
}

// Has implements model.Source.
func (l *Loader) Has(name string) bool {
	_, ok := l.stored(name)
	return ok
}

// Scheme implements model.Source.
func (l *Loader) Scheme(name string) op.Scheme {
	scheme, _ := formOf(l.stored, name)
	return scheme
}

// Matrix implements model.Source.
func (l *Loader) Matrix(cols int32, parts ...model.Part) op.Weight {
	return l.Experts(1, cols, func(int32) []model.Part { return parts })
}

// Experts implements model.Source.
func (l *Loader) Experts(count, cols int32, parts func(e int32) []model.Part) op.Weight {
	w := op.Weight{Cols: cols, Count: count}
	w.Scheme, w.Rounding = formOf(l.stored, parts(0)[0].Name)
	w.Rounding = common(l.stored, w.Rounding, count, parts)
	for _, p := range parts(0) {
		w.Rows += p.Rows
	}
	w.Stride = aligned(l.set.PackedBytes(w.Scheme, w.Rows, cols))
	w.Data = l.weights.take(w.Stride * int64(count))
	raw := w.Scheme.RawBytes(int64(w.Rows), int64(cols))
	room := l.stages[0].room
	if raw > room {
		panic("BUG: the staging memory is smaller than a matrix")
	}
	pitch := aligned(raw) // of matrices in staging memory
	together := int32(max(1, min(room, batchBytes)/pitch))
	var factors []float32
	for first := int32(0); first < count && l.ctx.Err() == nil; first += together { // Finish says what ended it
		last := min(first+together, count)
		b := batch{stage: l.next(int64(last-first) * pitch)}
		for e := first; e < last; e++ {
			factors = append(factors, l.stage(&b, b.stage.at+op.Ptr(int64(e-first)*pitch), w, parts(e))...)
		}
		stack := w
		l.queue.add(func() error { return l.place(&b, stack, first, last, pitch) })
	}
	if scaled(w.Scheme) {
		w.Scale = l.Floats(append(factors, make([]float32, int(count)*int(w.Rows)-len(factors))...))
	}
	return w
}

// place copies a batch and packs its matrices, those from first to last-1 of a stack, which lie in staging memory one pitch after the
// other.
func (l *Loader) place(b *batch, w op.Weight, first, last int32, pitch int64) error {
	if err := b.write(); err != nil {
		return err
	}
	l.queue.done(b.tensors)
	for e := first; e < last; e++ {
		one := w
		one.Data += op.Ptr(w.Stride * int64(e))
		one.Count = 1
		l.set.Pack(b.stage.stream, op.Pack{W: one, Raw: b.stage.at + op.Ptr(int64(e-first)*pitch), Bytes: w.Scheme.RawBytes(int64(w.Rows), int64(w.Cols))})
	}
	l.report(w.Data + op.Ptr(w.Stride*int64(last)))
	return nil
}

// report calls Progress: weights are placed up to an address.
func (l *Loader) report(to op.Ptr) {
	if l.Progress != nil {
		l.Progress(int64(to-l.weights.start), int64(l.weights.end-l.weights.start))
	}
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
		values := l.Values(p.Name, int32(storedRows(p)))
		for i := range int64(p.Rows) {
			all = append(all, values[storedRow(p, i)]+p.Plus)
		}
	}
	return l.Floats(all)
}

// Values implements model.Source.
func (l *Loader) Values(name string, shape ...int32) []float32 {
	n := int64(1)
	for _, size := range shape {
		n *= int64(size)
	}
	values := make([]float32, n)
	t, err := l.checkpoint.Tensor(name)
	if err == nil && t.Elements() != n {
		err = fmt.Errorf("%s has %d elements, not %d", t.Info, t.Elements(), n)
	}
	if err == nil {
		err = wrap(t, mapping.Guard(func() error { return gguf.Dequantize(values, t.Type, t.Data) }))
		l.checkpoint.Release(t)
	}
	l.fail(err)
	return values
}

// Floats implements model.Source.
func (l *Loader) Floats(values []float32) op.Ptr { return placeWords(l, values) }

// Words implements model.Source.
func (l *Loader) Words(values []int32) op.Ptr { return placeWords(l, values) }

// placeWords places elements of 32 bits.
func placeWords[T float32 | int32](l *Loader, values []T) op.Ptr {
	bytes := int64(len(values)) * 4
	p := l.weights.take(bytes)
	if len(values) > 0 {
		own := slices.Clone(values) // the caller may change its own
		l.queue.add(func() error {
			l.stream.Write(p, unsafe.Slice((*byte)(unsafe.Pointer(&own[0])), bytes))
			return nil
		})
	}
	return p
}

// Buffer implements model.Source.
func (l *Loader) Buffer(bytes int64) op.Ptr { return l.buffers.take(bytes) }
