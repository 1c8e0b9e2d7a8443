package cuda

import (
	"runtime"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Sizes of a stream's staging memory. It is large enough that copies of weights run at the bus's speed while other chunks are filled.
const (
	stagingChunks = 16
	chunkBytes    = 1 << 20
	stagingAlign  = 64
)

// copiers is how many goroutines of WriteAll fill staging memory: one alone reaches a fifth of the bus's speed. Each has its own chunks.
const copiers = 8

// staging is pinned host memory that copies of one stream pass through. It is a ring of chunks. A chunk has an event, recorded behind
// the last copy from it; the chunk may be filled again once the event has happened. Small copies share a chunk.
type staging struct {
	memory []byte
	events [stagingChunks]uintptr // by chunk; the event of the chunk that is being filled is old
	chunk  int                    // the one that is being filled
	used   int                    // bytes of it
}

// withoutTiming is CU_EVENT_DISABLE_TIMING: an event that is only waited for.
const withoutTiming = 2

// makeStaging takes s's staging memory.
func (s *Stream) makeStaging() error {
	var address *byte
	if r := s.device.call(cuMemHostAlloc, uintptr(unsafe.Pointer(&address)), stagingChunks*chunkBytes, 0); r != 0 {
		return s.driver.failure(r, "take %d bytes of pinned memory", stagingChunks*chunkBytes)
	}
	s.staging.memory = unsafe.Slice(address, stagingChunks*chunkBytes)
	for i := range s.staging.events {
		if r := s.device.call(cuEventCreate, uintptr(unsafe.Pointer(&s.staging.events[i])), withoutTiming); r != 0 {
			return s.driver.failure(r, "make an event")
		}
	}
	return nil
}

// room lends staging memory for a copy of n bytes to the device. It is less than n bytes where the chunk ends: call again for the rest.
func (s *Stream) room(n int) ([]byte, result) {
	g := &s.staging
	if g.used == chunkBytes {
		if r := s.call(cuEventRecord, g.events[g.chunk], s.handle); r != 0 {
			return nil, r
		}
		g.chunk, g.used = (g.chunk+1)%stagingChunks, 0
		if r := s.call(cuEventSynchronize, g.events[g.chunk]); r != 0 {
			return nil, r
		}
	}
	start := g.chunk*chunkBytes + g.used
	n = min(n, chunkBytes-g.used)
	g.used = min(chunkBytes, (g.used+n+stagingAlign-1)&^(stagingAlign-1))
	return g.memory[start : start+n], 0
}

// Write copies to device memory in queue order; from may change as soon as it returns.
func (s *Stream) Write(to op.Ptr, from []byte) {
	if !s.live("writes to memory") {
		return
	}
	for len(from) > 0 {
		part, r := s.room(len(from))
		if r == 0 {
			copy(part, from)
			s.idle = false
			r = s.call(cuMemcpyHtoDAsync, uintptr(to), address(part), uintptr(len(part)), s.handle)
		}
		if r != 0 {
			s.Fail(s.driver.failure(r, "write %d bytes to the device", len(from)))
			return
		}
		from, to = from[len(part):], to+op.Ptr(len(part))
	}
}

// WriteAll copies pieces to device memory in queue order, but among themselves in any.
func (s *Stream) WriteAll(pieces []device.Piece) {
	if !s.live("writes to memory") {
		return
	}
	bytes := 0
	for _, p := range pieces {
		bytes += len(p.From)
	}
	if bytes == 0 {
		return
	}
	g := &s.staging
	s.idle = false
	failure := func(r result) error {
		if r == 0 {
			return nil
		}
		return s.driver.failure(r, "write %d bytes to the device", bytes)
	}
	if r := s.call(cuEventRecord, g.events[g.chunk], s.handle); r != 0 {
		s.Fail(failure(r))
		return
	}
	g.used = chunkBytes // the next small copy begins a chunk, and waits until that is free
	workers := min(copiers, runtime.GOMAXPROCS(0), (bytes+chunkBytes-1)/chunkBytes)
	each := make([]copier, workers)
	for i := range each {
		each[i] = copier{caller: *s.device.caller(), stream: s, chunk: i}
	}
	err := device.Spread(pieces, chunkBytes, workers, func(worker int, part device.Part) error {
		return failure(each[worker].copy(part))
	})
	if err != nil {
		s.Fail(err)
	}
}

// copier is one goroutine's share of a stream's staging memory: its first chunk, and every chunk that is a multiple of copiers further.
type copier struct {
	caller
	stream *Stream
	chunk  int // for the next part
}

// copy copies a part of at most a chunk.
func (c *copier) copy(part device.Part) result {
	chunk, s := c.chunk, c.stream
	c.chunk = (chunk + copiers) % stagingChunks
	event := s.staging.events[chunk]
	if r := c.call(cuEventSynchronize, event); r != 0 {
		return r
	}
	room := s.staging.memory[chunk*chunkBytes:][:part.Bytes()]
	part.Copy(room)
	if r := c.call(cuMemcpyHtoDAsync, uintptr(part.To), address(room), uintptr(len(room)), s.handle); r != 0 {
		return r
	}
	return c.call(cuEventRecord, event, s.handle)
}

// Read copies from device memory once all that is queued has run. After an error it reads nothing.
func (s *Stream) Read(to []byte, from op.Ptr) {
	if !s.live("reads memory") {
		return
	}
	// Earlier writes use the same staging memory, but the queue's order puts them before this read.
	for len(to) > 0 {
		part := s.staging.memory[:min(len(to), len(s.staging.memory))]
		s.idle = false
		if r := s.call(cuMemcpyDtoHAsync, address(part), uintptr(from), uintptr(len(part)), s.handle); r != 0 {
			s.Fail(s.driver.failure(r, "read %d bytes from the device", len(to)))
			return
		}
		if s.wait(); s.err != nil {
			return
		}
		copy(to, part)
		to, from = to[len(part):], from+op.Ptr(len(part))
	}
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
