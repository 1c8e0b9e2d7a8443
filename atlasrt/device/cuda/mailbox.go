package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// mailbox is pinned memory for a step's inputs and results. It has the same address on the device, and kernels read and write it
// themselves. A copy queued between two steps would delay the second; a copy on another stream would take the host four more calls.
type mailbox struct {
	stream  *Stream
	memory  []byte // inputs and results
	inputs  []byte
	results []byte
	done    uintptr // an event: the step has run
	posted  int     // bytes of results
	err     error   // why there are no results
}

// Mailbox makes one for steps of s.
func (d *Device) Mailbox(q device.Stream, inputs, results int) (device.Mailbox, error) {
	m := &mailbox{stream: q.(*Stream)}
	if err := m.build(max(inputs, 1), max(results, 1)); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (m *mailbox) build(inputs, results int) error {
	d := m.stream.device
	begin := (inputs + stagingAlign - 1) &^ (stagingAlign - 1)
	var address *byte
	if r := d.call(cuMemHostAlloc, uintptr(unsafe.Pointer(&address)), uintptr(begin+results), 0); r != 0 {
		return d.driver.failure(r, "take %d bytes of pinned memory", begin+results)
	}
	m.memory = unsafe.Slice(address, begin+results)
	m.inputs, m.results = m.memory[:inputs], m.memory[begin:]
	if r := d.call(cuEventCreate, uintptr(unsafe.Pointer(&m.done)), withoutTiming); r != 0 {
		return d.driver.failure(r, "make an event")
	}
	return nil
}

// Send writes to pinned memory, which the step before has read.
func (m *mailbox) Send(inputs []byte) {
	if len(inputs) > len(m.inputs) {
		panic(fmt.Sprintf("BUG: %d bytes for a mailbox of %d", len(inputs), len(m.inputs)))
	}
	copy(m.inputs, inputs)
}

// Inputs is pinned memory.
func (m *mailbox) Inputs() op.Ptr { return op.Ptr(address(m.inputs)) }

// Results is pinned memory.
func (m *mailbox) Results() op.Ptr { return op.Ptr(address(m.results)) }

// Post queues the event behind the step.
func (m *mailbox) Post(bytes int) error {
	s := m.stream
	if bytes > len(m.results) {
		panic(fmt.Sprintf("BUG: %d bytes for a mailbox of %d", bytes, len(m.results)))
	}
	m.posted, m.err = bytes, nil
	if s.live("posts results") {
		s.idle = false
		if r := s.call(cuEventRecord, m.done, s.handle); r != 0 {
			s.Fail(s.driver.failure(r, "post %d bytes from the device", bytes))
		}
	}
	m.err = s.err
	return m.err
}

// Wait waits for the event.
func (m *mailbox) Wait() ([]byte, error) {
	if m.err == nil {
		if r := m.stream.call(cuEventSynchronize, m.done); r != 0 {
			m.err = m.stream.driver.failure(r, "finish what was queued")
		}
	}
	if m.err != nil {
		return nil, m.err
	}
	return m.results[:m.posted], nil
}

// Close gives everything back. Steps must have run.
func (m *mailbox) Close() error {
	d := m.stream.device
	var first error
	check := func(r result, what string) {
		if r != 0 && first == nil {
			first = d.driver.failure(r, "%s", what)
		}
	}
	if m.done != 0 {
		check(d.call(cuEventDestroy, m.done), "give an event back")
	}
	if m.memory != nil {
		check(d.call(cuMemFreeHost, address(m.memory)), "give pinned memory back")
	}
	return first
}
