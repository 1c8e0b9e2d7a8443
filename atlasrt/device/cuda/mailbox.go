package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// mailbox is pinned memory for a step's inputs and results, and a second stream that copies the inputs.
//
// A copy between two steps of one stream takes it 2 to 10 µs (H200). So inputs are copied beside it, long before it comes to
// the step, and results are written by a kernel: pinned memory has the same address on the device.
type mailbox struct {
	stream  *Stream
	beside  uintptr // the stream that copies inputs
	memory  []byte  // inputs, then results
	results []byte
	arrived op.Ptr  // inputs on the device
	sent    uintptr // event: the inputs are there
	done    uintptr // event: the step has run
	posted  int     // bytes of results
	err     error   // why they are not coming
}

// Mailbox makes one for steps of s.
func (d *Device) Mailbox(q device.Stream, inputs, results int) (device.Mailbox, error) {
	m := &mailbox{stream: q.(*Stream)}
	if err := m.build(max(inputs, 1), max(results, 1)); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (m *mailbox) build(inputs, results int) (err error) {
	d := m.stream.device
	begin := (inputs + stagingAlign - 1) &^ (stagingAlign - 1)
	var address *byte
	if r := d.call(cuMemHostAlloc, uintptr(unsafe.Pointer(&address)), uintptr(begin+results), 0); r != 0 {
		return d.driver.failure(r, "take %d bytes of pinned memory", begin+results)
	}
	memory := unsafe.Slice(address, begin+results)
	m.memory, m.results = memory[:inputs], memory[begin:]
	if m.arrived, err = d.Alloc(int64(inputs)); err != nil {
		return err
	}
	if r := d.call(cuStreamCreate, uintptr(unsafe.Pointer(&m.beside)), nonBlocking); r != 0 {
		return d.driver.failure(r, "make a stream")
	}
	for _, event := range []*uintptr{&m.sent, &m.done} {
		if r := d.call(cuEventCreate, uintptr(unsafe.Pointer(event)), withoutTiming); r != 0 {
			return d.driver.failure(r, "make an event")
		}
	}
	return nil
}

// Send copies beside the stream, and makes the stream wait for it.
func (m *mailbox) Send(inputs []byte) op.Ptr {
	s := m.stream
	if len(inputs) > len(m.memory) {
		panic(fmt.Sprintf("BUG: %d bytes for a mailbox of %d", len(inputs), len(m.memory)))
	}
	if !s.live("sends inputs") {
		return m.arrived
	}
	r := s.call(cuEventSynchronize, m.sent) // for a step that failed may not have waited for its inputs
	if r == 0 {
		copy(m.memory, inputs)
		r = s.call(cuMemcpyHtoDAsync, uintptr(m.arrived), address(m.memory), uintptr(len(inputs)), m.beside)
	}
	if r == 0 {
		r = s.call(cuEventRecord, m.sent, m.beside)
	}
	if r == 0 {
		s.idle = false
		r = s.call(cuStreamWaitEvent, s.handle, m.sent, 0)
	}
	if r != 0 {
		s.Fail(s.driver.failure(r, "send %d bytes to the device", len(inputs)))
	}
	return m.arrived
}

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
	if m.beside != 0 {
		check(d.call(cuStreamSynchronize, m.beside), "finish what was sent")
		check(d.call(cuStreamDestroy, m.beside), "give a stream back")
	}
	for _, event := range []uintptr{m.sent, m.done} {
		if event != 0 {
			check(d.call(cuEventDestroy, event), "give an event back")
		}
	}
	d.Free(m.arrived)
	if m.memory != nil {
		check(d.call(cuMemFreeHost, address(m.memory)), "give pinned memory back")
	}
	return first
}
