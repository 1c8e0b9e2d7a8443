package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// argsBytes bounds an argument block (CUDA C++ Programming Guide, __global__ function parameters).
const argsBytes = 32764

// nonBlocking is CU_STREAM_NON_BLOCKING: a stream that does not wait for the default one, which other libraries may use.
const nonBlocking = 1

// Stream is a CUDA stream that keeps its first error.
type Stream struct {
	caller
	device    *Device
	handle    uintptr
	scratch   op.Ptr
	scratched int64 // bytes of scratch
	err       error
	idle      bool // all that was queued has run without an error
	capturing bool
	abandoned [1]uintptr // the record of a step that panicked

	staging    staging
	tensorMaps map[op.Tile]op.TensorMap
	args       []byte       // the argument block, outside the Go heap; the driver copies it when it launches
	config     launchConfig // of the next launch
	params     [1]uintptr   // the address of a kernel's one argument
}

// Stream makes a queue with scratch bytes of scratch memory.
func (d *Device) Stream(scratch int64) (device.Stream, error) {
	s, err := d.newStream(scratch)
	if err != nil {
		return nil, fmt.Errorf("a stream: %w", err)
	}
	return s, nil
}

func (d *Device) newStream(scratch int64) (*Stream, error) {
	s := &Stream{caller: *d.caller(), device: d, scratched: scratch, tensorMaps: map[op.Tile]op.TensorMap{}}
	if err := s.build(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Stream) build() (err error) {
	if r := s.device.call(cuStreamCreate, uintptr(unsafe.Pointer(&s.handle)), nonBlocking); r != 0 {
		return s.driver.failure(r, "make a stream")
	}
	if s.args, err = unix.Mmap(-1, 0, argsBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE); err != nil {
		return fmt.Errorf("cannot take memory for arguments: %w", err)
	}
	s.params[0] = address(s.args)
	if err := s.makeStaging(); err != nil {
		return err
	}
	if s.scratched > 0 {
		if s.scratch, err = s.device.Alloc(s.scratched); err != nil {
			return fmt.Errorf("scratch: %w", err)
		}
	}
	return nil
}

// Args lends the same space for every launch: the caller writes all of it.
func (s *Stream) Args(bytes uintptr) unsafe.Pointer {
	if bytes > argsBytes {
		panic("BUG: an argument block is larger than CUDA allows")
	}
	return unsafe.Pointer(unsafe.SliceData(s.args))
}

// Launch queues a launch; none where the grid has no blocks or after an error.
func (s *Stream) Launch(k op.Kernel, g op.Grid) {
	if s.err != nil || g.X == 0 || g.Y == 0 || g.Z == 0 {
		return
	}
	f := s.device.function(k)
	s.config = f.config
	s.config.grid, s.config.stream = g, s.handle
	s.idle = false
	r := s.call(cuLaunchKernelEx, uintptr(unsafe.Pointer(&s.config)), f.handle, uintptr(unsafe.Pointer(&s.params)), 0)
	if r != 0 {
		s.Fail(s.driver.failure(r, "launch kernel %s with a grid of %d×%d×%d blocks of %v threads", f.name, g.X, g.Y, g.Z, f.config.block))
	}
}

// Scratch lends the stream's one scratch buffer. Every launch may have it, because launches run one after the other.
func (s *Stream) Scratch(bytes int64) op.Ptr {
	if bytes > s.scratched {
		s.Fail(fmt.Errorf("an operation asks for %d bytes of scratch memory, the stream has %d", bytes, s.scratched))
	}
	return s.scratch
}

// Fail keeps the first error.
func (s *Stream) Fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// live reports whether a copy or a wait may be queued. A captured step must not have any: it could not be replayed. what completes the
// error, "a step that is captured …".
func (s *Stream) live(what string) bool {
	if s.capturing {
		s.Fail(fmt.Errorf("a step that is captured %s: do that before or after", what))
	}
	return s.err == nil
}

// clear sets bytes to zero in queue order.
func (s *Stream) clear(p op.Ptr, bytes int64) {
	s.idle = false
	if r := s.call(cuMemsetD8Async, uintptr(p), 0, uintptr(bytes), s.handle); r != 0 {
		s.Fail(s.driver.failure(r, "clear %d bytes of memory", bytes))
	}
}

// wait waits for all that was queued. After a failure it asks the device again each time, so that a device that is lost says so again.
func (s *Stream) wait() {
	if s.idle {
		return
	}
	if r := s.call(cuStreamSynchronize, s.handle); r != 0 {
		s.Fail(s.driver.failure(r, "finish what was queued"))
		return
	}
	s.idle = true
	s.staging.chunk, s.staging.used = 0, 0
}

// Sync waits for all that was queued and returns the first error since the last Sync.
func (s *Stream) Sync() error {
	if s.capturing {
		s.live("waits")
		return s.err
	}
	s.wait()
	err := s.err
	s.err = nil
	return err
}

// Close waits for all that was queued, gives the stream's memory back and returns the first error.
func (s *Stream) Close() error {
	check := func(r result, what string) {
		if r != 0 {
			s.Fail(s.driver.failure(r, "%s", what))
		}
	}
	if s.handle != 0 {
		s.wait()
		check(s.call(cuStreamDestroy, s.handle), "give a stream back")
	}
	for _, e := range s.staging.events {
		if e != 0 {
			check(s.call(cuEventDestroy, e), "give an event back")
		}
	}
	if s.staging.memory != nil {
		check(s.call(cuMemFreeHost, address(s.staging.memory)), "give pinned memory back")
	}
	if s.args != nil {
		if err := unix.Munmap(s.args); err != nil {
			s.Fail(fmt.Errorf("cannot give the memory of arguments back: %w", err))
		}
	}
	s.device.Free(s.scratch)
	return s.err
}
