package cuda

import (
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Numbers of cuda.h's enumerations for tensor maps.
const (
	tensorBF16         = 9
	interleaveNone     = 0
	swizzle128         = 3
	promoteL2256       = 3
	outsideIsZero      = 0
	tensorMapAlignment = 64
)

// mostTensorMaps bounds how many descriptors a stream keeps. A model needs a few for each number of rows.
const mostTensorMaps = 4096

// TensorMap makes a descriptor for the copy engine. It is made once for each tile and kept, since encoding it takes a call.
func (s *Stream) TensorMap(t op.Tile) op.TensorMap {
	if m, ok := s.tensorMaps[t]; ok {
		return m
	}
	var (
		room    [2 * tensorMapAlignment / 8 * 2]uint64
		sizes   = [2]uint64{uint64(t.Cols), uint64(t.Rows)}
		pitch   = [1]uint64{uint64(2 * t.Pitch)}
		box     = [2]uint32{t.BoxCols, uint32(min(int64(t.BoxRows), t.Rows))}
		strides = [2]uint32{1, 1}
	)
	at := 0 // the driver wants a descriptor's address to be a multiple of 64
	for uintptr(unsafe.Pointer(&room[at]))%tensorMapAlignment != 0 {
		at++
	}
	r := s.device.call(cuTensorMapEncodeTiled, uintptr(unsafe.Pointer(&room[at])), tensorBF16, uintptr(len(sizes)), uintptr(t.Data),
		uintptr(unsafe.Pointer(&sizes)), uintptr(unsafe.Pointer(&pitch)), uintptr(unsafe.Pointer(&box)), uintptr(unsafe.Pointer(&strides)),
		interleaveNone, swizzle128, promoteL2256, outsideIsZero)
	if r != 0 {
		s.Fail(s.driver.failure(r, "describe a matrix of %d×%d elements, %d apart, at %#x", t.Rows, t.Cols, t.Pitch, t.Data))
		return op.TensorMap{}
	}
	m := op.TensorMap(room[at:])
	if len(s.tensorMaps) >= mostTensorMaps {
		clear(s.tensorMaps)
	}
	s.tensorMaps[t] = m
	return m
}
