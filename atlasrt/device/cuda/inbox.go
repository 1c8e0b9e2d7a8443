package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// inbox is pinned memory, and an event that tells when a copy to it is done.
type inbox struct {
	stream *Stream
	memory []byte
	event  uintptr
	posted int   // bytes of the last copy
	err    error // why it is not coming
}

// Inbox makes host memory that results of s come to.
func (d *Device) Inbox(q device.Stream, bytes int) (device.Inbox, error) {
	i := &inbox{stream: q.(*Stream)}
	if err := i.build(max(bytes, 1)); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

func (i *inbox) build(bytes int) error {
	d := i.stream.device
	var address *byte
	if r := d.call(cuMemHostAlloc, uintptr(unsafe.Pointer(&address)), uintptr(bytes), 0); r != 0 {
		return d.driver.failure(r, "take %d bytes of pinned memory", bytes)
	}
	i.memory = unsafe.Slice(address, bytes)
	if r := d.call(cuEventCreate, uintptr(unsafe.Pointer(&i.event)), withoutTiming); r != 0 {
		return d.driver.failure(r, "make an event")
	}
	return nil
}

// Post queues a copy and the event behind it.
func (i *inbox) Post(from op.Ptr, bytes int) error {
	s := i.stream
	if bytes > len(i.memory) {
		panic(fmt.Sprintf("BUG: %d bytes for an inbox of %d", bytes, len(i.memory)))
	}
	i.posted, i.err = bytes, nil
	if s.live("posts results") {
		s.idle = false
		r := result(0)
		if bytes > 0 {
			r = s.call(cuMemcpyDtoHAsync, address(i.memory), uintptr(from), uintptr(bytes), s.handle)
		}
		if r == 0 {
			r = s.call(cuEventRecord, i.event, s.handle)
		}
		if r != 0 {
			s.Fail(s.driver.failure(r, "post %d bytes from the device", bytes))
		}
	}
	i.err = s.err
	return i.err
}

// Wait waits for the event.
func (i *inbox) Wait() ([]byte, error) {
	if i.err == nil {
		if r := i.stream.call(cuEventSynchronize, i.event); r != 0 {
			i.err = i.stream.driver.failure(r, "finish what was queued")
		}
	}
	if i.err != nil {
		return nil, i.err
	}
	return i.memory[:i.posted], nil
}

// Close gives the memory back. What was posted must have come.
func (i *inbox) Close() error {
	d := i.stream.device
	var first error
	check := func(r result, what string) {
		if r != 0 && first == nil {
			first = d.driver.failure(r, "%s", what)
		}
	}
	if i.event != 0 {
		check(d.call(cuEventDestroy, i.event), "give an event back")
	}
	if i.memory != nil {
		check(d.call(cuMemFreeHost, address(i.memory)), "give pinned memory back")
	}
	return first
}
