package load

import (
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Measure is an op.Stream that runs nothing and remembers the most scratch memory that an operation asked for.
type Measure struct {
	Most int64 // bytes of scratch memory
	Err  error // the first failure
	args [1024]uint64
}

// Args implements op.Stream.
func (m *Measure) Args(bytes uintptr) unsafe.Pointer {
	if bytes > unsafe.Sizeof(m.args) {
		panic("BUG: an argument block of more than 8 KiB")
	}
	return unsafe.Pointer(&m.args)
}

// Launch implements op.Stream.
func (m *Measure) Launch(op.Kernel, op.Grid) {}

// Scratch implements op.Stream.
func (m *Measure) Scratch(bytes int64) op.Ptr {
	m.Most = max(m.Most, bytes)
	return 0
}

// TensorMap implements op.Stream.
func (m *Measure) TensorMap(op.Tile) op.TensorMap { return op.TensorMap{} }

// Fail implements op.Stream.
func (m *Measure) Fail(err error) {
	if m.Err == nil {
		m.Err = err
	}
}
