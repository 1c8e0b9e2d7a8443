package calls

import (
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Stream is an op.Stream that runs nothing and notes what is queued. Its zero value is ready.
type Stream struct {
	Launches    []Launched // in order
	MostScratch int64      // bytes of the most scratch memory that was asked for; 0 where none was
	Err         error      // the first failure

	args [1024]uint64
}

// Launched is a launch of a kernel.
type Launched struct {
	Kernel op.Kernel // as it was queued
	Grid   op.Grid   // blocks in x, y and z
}

// Args implements op.Stream.
func (s *Stream) Args(bytes uintptr) unsafe.Pointer {
	if bytes > unsafe.Sizeof(s.args) {
		panic("BUG: an argument block of more than 8 KiB")
	}
	return unsafe.Pointer(&s.args)
}

// Launch implements op.Stream.
func (s *Stream) Launch(k op.Kernel, grid op.Grid) {
	s.Launches = append(s.Launches, Launched{k, grid})
}

// Scratch implements op.Stream.
func (s *Stream) Scratch(bytes int64) op.Ptr {
	s.MostScratch = max(s.MostScratch, bytes)
	return 0
}

// TensorMap implements op.Stream.
func (s *Stream) TensorMap(op.Tile) op.TensorMap { return op.TensorMap{} }

// Fail implements op.Stream.
func (s *Stream) Fail(err error) {
	if s.Err == nil {
		s.Err = err
	}
}
