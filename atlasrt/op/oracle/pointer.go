package oracle

import (
	"runtime"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// slice is the n elements at p. This file alone turns addresses into slices; the rest of the package is ordinary, bounds-checked Go.
func slice[T any](p op.Ptr, n int) []T {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), n)
}

// Address is the address of a slice, which stays valid until pin is unpinned. An op.Ptr alone does not keep memory alive, and does not
// follow a stack that moves.
func Address[T any](pin *runtime.Pinner, data []T) op.Ptr {
	at := unsafe.Pointer(unsafe.SliceData(data))
	pin.Pin(at)
	return op.Ptr(uintptr(at))
}

// load reads n elements of a buffer, starting with element first.
func load(p op.Ptr, t op.DType, first, n int) []float64 {
	values := make([]float64, n)
	Decode(values, t, span(p, t, first, n))
	return values
}

// store rounds values into a buffer, starting with element first.
func (s *Set) store(p op.Ptr, t op.DType, first int, values []float64) {
	Encode(span(p, t, first, len(values)), t, values)
	for _, e := range s.watched {
		if at, ok := e.holds(p, t, first, len(values)); ok {
			copy(e.Values[at:], values)
		}
	}
}

// holds reports whether the n elements lie in the watched buffer; at is the number of the first of them there.
func (e *Unrounded) holds(p op.Ptr, t op.DType, first, n int) (at int64, ok bool) {
	if p < e.at || t != e.is {
		return 0, false
	}
	at = int64(p-e.at)/t.Bytes() + int64(first)
	return at, at+int64(n) <= int64(len(e.Values))
}

func span(p op.Ptr, t op.DType, first, n int) []byte {
	return slice[byte](p+op.Ptr(int64(first)*t.Bytes()), n*int(t.Bytes()))
}
