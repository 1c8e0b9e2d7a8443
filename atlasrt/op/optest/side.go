package optest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
	"github.com/atlas-inference/atlas/generated/ops"
)

// guard is how many bytes of noise lie between buffers; align is what their addresses are a multiple of.
const (
	guard = 256
	align = 64
)

// side is a kernel set on its device: the target's or the oracle's.
type side struct {
	device device.Device
	stream device.Stream
	set    bundle.Set
	act    op.DType

	launched []op.Kernel // by the last run

	// unrounded, where it is not nil and the set is the oracle, is filled by run: its floating-point results before they were rounded.
	unrounded map[string]*oracle.Unrounded
}

// placed is a buffer's place in an arena.
type placed struct {
	field
	offset int64
}

// layout places buffers one after the other in an arena, with guards around each, and returns the size of the arena.
func layout(list []field) ([]placed, int64) {
	places, end := make([]placed, len(list)), int64(guard)
	for i, f := range list {
		places[i] = placed{f, end}
		end = (end + f.bytes() + guard + align - 1) / align * align
	}
	return places, end
}

// run makes the call of a case: its buffers hold before, and run returns what they hold after it. It is an error where the launch fails, or
// where something was written that is no result. look, which may be nil, is called with the struct as long as the buffers are allocated.
func (s *side) run(c *Case, before contents, look func(args reflect.Value)) (contents, error) {
	list, err := s.fields(c)
	if err != nil {
		return nil, err
	}
	places, size := layout(list)
	image := make([]byte, size)
	rng, end := rand.New(rand.NewPCG(uint64(size), 1)), int64(0)
	for _, p := range places {
		data, ok := before[p.name]
		if !ok || int64(len(data)) != p.bytes() {
			return nil, fmt.Errorf("BUG: %s holds %d bytes, want %d", p.name, len(data), p.bytes())
		}
		poison(image[end:p.offset], rng)
		end = p.offset + int64(copy(image[p.offset:], data))
	}
	poison(image[end:], rng)
	base, err := s.device.Alloc(size)
	if err != nil {
		return nil, err
	}
	defer s.device.Free(base)
	if err := s.device.CopyIn(base, image); err != nil {
		return nil, err
	}
	args := s.bind(c, places, base)
	l := &listener{Stream: s.stream}
	if !ops.Call(s.watching(places, base), l, args.Interface()) {
		return nil, errNotServed
	}
	s.launched = l.kernels
	if err := s.stream.Sync(); err != nil {
		return nil, fmt.Errorf("the launch failed: %w", err)
	}
	if look != nil {
		look(args)
	}
	result := make([]byte, size)
	if err := s.device.CopyOut(result, base); err != nil {
		return nil, err
	}
	after := maps.Clone(before)
	for _, p := range places {
		if p.role != in {
			after[p.name] = bytes.Clone(result[p.offset : p.offset+p.bytes()])
		}
	}
	return after, untouched(places, image, result)
}

// watching is the side's set. Where unrounded results are wanted, it is an oracle that notes them.
func (s *side) watching(places []placed, base op.Ptr) bundle.Set {
	reference, ok := s.set.(*oracle.Set)
	if s.unrounded == nil || !ok {
		return s.set
	}
	var list []*oracle.Unrounded
	for _, p := range places {
		if p.role != in && (p.dtype == op.F32 || p.dtype == op.BF16 || p.dtype == op.F16) {
			u := oracle.NewUnrounded(base+op.Ptr(p.offset), p.dtype, p.bytes()/p.dtype.Bytes())
			list, s.unrounded[p.name] = append(list, u), u
		}
	}
	return reference.Watching(list...)
}

// fields lists the buffers of a case, with weights of the size that this side packs them to.
func (s *side) fields(c *Case) ([]field, error) {
	packed := func(w op.Weight) int64 { return s.set.PackedBytes(w.Scheme, w.Rows, w.Cols) }
	for _, name := range c.matrices() {
		c.args.FieldByName(name).FieldByName("Stride").SetInt(stride(packed(c.matrix(name))))
	}
	return c.fields(s.act, packed)
}

// stride is the bytes from one stacked matrix to the next, where each has so many packed bytes.
func stride(packed int64) int64 { return (packed + align - 1) / align * align }

// bind is a copy of the case's struct with the addresses of its buffers.
func (s *side) bind(c *Case, places []placed, base op.Ptr) reflect.Value {
	args := reflect.New(c.args.Type()).Elem()
	args.Set(c.args)
	address := map[string]uint64{}
	for _, p := range places {
		address[p.name] = uint64(base) + uint64(p.offset)
	}
	for name, target := range c.alias {
		address[name] = address[target]
	}
	t := args.Type()
	for i := range t.NumField() {
		name, f := t.Field(i).Name, args.Field(i)
		switch f.Type() {
		case reflect.TypeFor[op.Ptr]():
			f.SetUint(address[name])
		case reflect.TypeFor[op.Weight]():
			f.FieldByName("Data").SetUint(address[name+".Data"])
			f.FieldByName("Scale").SetUint(address[name+".Scale"])
		}
	}
	return args
}

// untouched compares an arena before and after a call, except the results, which it overwrites in after. The error says what else was written.
func untouched(places []placed, before, after []byte) error {
	for _, p := range places {
		if p.role != in {
			p.items(func(from, to int64) { copy(after[p.offset+from:p.offset+to], before[p.offset+from:]) })
		}
	}
	first, same := firstDifference(before, after)
	if same {
		return nil
	}
	at := int64(first)
	for _, p := range places {
		end := p.offset + p.bytes()
		switch {
		case at >= p.offset && at < end && p.role == in:
			return fmt.Errorf("the input %s was changed, at byte %d of %d", p.name, at-p.offset, p.bytes())
		case at >= p.offset && at < end:
			return fmt.Errorf("the gap between rows of %s was written to, at byte %d", p.name, at-p.offset)
		case at < p.offset && at >= p.offset-guard/2:
			return fmt.Errorf("memory %d bytes before %s was written to", p.offset-at, p.name)
		case at >= end && at < end+guard/2:
			return fmt.Errorf("memory %d bytes past the end of %s was written to", at-end, p.name)
		}
	}
	return fmt.Errorf("memory between buffers was written to, at byte %d of all", at)
}

// Errors for which a case is skipped.
var (
	errNoScheme  = errors.New("the set has no kernels for this scheme")
	errNotServed = errors.New("the set has no fused kernel for this call")
)

// pack brings each stacked matrix from the checkpoint's bytes into the set's layout. It checks that unpacking gives the same bytes again
// (see plain).
func (s *side) pack(w op.Weight, raw [][]byte) ([]byte, error) {
	size := s.set.PackedBytes(w.Scheme, w.Rows, w.Cols)
	if size == 0 {
		return nil, errNoScheme
	}
	packed := make([]byte, stride(size)*int64(w.Count-1)+size)
	rng := rand.New(rand.NewPCG(uint64(size), 2))
	poison(packed, rng)
	w.Count = 1
	for e, matrix := range raw {
		place, bytesRaw := packed[int64(e)*stride(size):][:size], int64(len(matrix))
		after, err := s.run(of("", op.Pack{W: w, Bytes: bytesRaw}), contents{"W.Data": place, "Raw": matrix}, nil)
		if err != nil {
			return nil, fmt.Errorf("op Pack: %w", err)
		}
		copy(place, after["W.Data"])
		back := make([]byte, bytesRaw)
		poison(back, rng)
		after, err = s.run(of("", op.Unpack{W: w, Bytes: bytesRaw}), contents{"W.Data": place, "Raw": back}, nil)
		if err != nil {
			return nil, fmt.Errorf("op Unpack: %w", err)
		}
		want, got := plain(w.Scheme, matrix), plain(w.Scheme, after["Raw"])
		if at, same := firstDifference(want, got); !same {
			return nil, fmt.Errorf("op Unpack gave %#02x as byte %d of the checkpoint, want %#02x", got[at], at, want[at])
		}
	}
	return packed, nil
}

// firstDifference is the first byte in which two slices of one length differ.
func firstDifference(a, b []byte) (at int, same bool) {
	if bytes.Equal(a, b) {
		return 0, true
	}
	for a[at] == b[at] {
		at++
	}
	return at, false
}
