package host

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Stream does everything when it is called, so that its order is the order of the calls.
type Stream struct {
	device  *Device
	args    []byte
	scratch op.Ptr
	room    int64
	err     error
}

// Stream makes a queue with scratch bytes of scratch memory.
func (d *Device) Stream(scratch int64) (device.Stream, error) {
	p, err := d.Alloc(scratch)
	if err != nil {
		return nil, fmt.Errorf("scratch memory of a stream: %w", err)
	}
	return &Stream{device: d, scratch: p, room: scratch}, nil
}

// Args lends space that nothing reads, because every launch fails.
func (s *Stream) Args(bytes uintptr) unsafe.Pointer {
	s.args = make([]byte, max(bytes, 1))
	return unsafe.Pointer(unsafe.SliceData(s.args))
}

// Launch fails: kernels here are Go functions, which are called and not launched.
func (s *Stream) Launch(op.Kernel, op.Grid) {
	s.Fail(errors.New("a compiled kernel was launched on host memory: use the device that it was built for"))
}

// Scratch lends the stream's scratch memory, or address zero if it is too small.
func (s *Stream) Scratch(bytes int64) op.Ptr {
	if bytes < 0 || bytes > s.room {
		s.Fail(fmt.Errorf("%d bytes of scratch memory are wanted: the stream was made with %d", bytes, s.room))
		return 0
	}
	return s.scratch
}

// TensorMap fails: only GPUs have a copy engine.
func (s *Stream) TensorMap(op.Tile) op.TensorMap {
	s.Fail(errors.New("a CPU has no copy engine"))
	return op.TensorMap{}
}

// Fail records err unless an error came before it.
func (s *Stream) Fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// Write copies to a buffer.
func (s *Stream) Write(to op.Ptr, from []byte) {
	if err := s.device.CopyIn(to, from); err != nil {
		s.Fail(err)
	}
}

// WriteAll copies to buffers.
func (s *Stream) WriteAll(pieces []device.Piece) {
	for _, p := range pieces {
		s.Write(p.To, p.From)
	}
}

// Read copies from a buffer.
func (s *Stream) Read(to []byte, from op.Ptr) {
	if err := s.device.CopyOut(to, from); err != nil {
		s.Fail(err)
	}
}

// Sync returns the first error since the last Sync.
func (s *Stream) Sync() error {
	err := s.err
	s.err = nil
	return err
}

// Close gives the scratch memory back.
func (s *Stream) Close() error {
	s.device.Free(s.scratch)
	s.scratch, s.room = 0, 0
	return nil
}
