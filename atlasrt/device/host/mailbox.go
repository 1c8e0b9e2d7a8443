package host

import (
	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Mailbox serves tests: it behaves as a mailbox of a device that has run every step by the time that Post returns.
type Mailbox struct {
	device          device.Device
	stream          device.Stream
	inputs, results op.Ptr
	came            []byte
}

var _ device.Mailbox = (*Mailbox)(nil)

// NewMailbox takes so many bytes of d's memory for the inputs and results of steps of s.
func NewMailbox(d device.Device, s device.Stream, inputs, results int) (*Mailbox, error) {
	m := &Mailbox{device: d, stream: s}
	var err error
	if m.inputs, err = d.Alloc(int64(inputs)); err != nil {
		return nil, err
	}
	if m.results, err = d.Alloc(int64(results)); err != nil {
		d.Free(m.inputs)
		return nil, err
	}
	return m, nil
}

// Send copies at once.
func (m *Mailbox) Send(inputs []byte) { m.stream.Write(m.inputs, inputs) }

// Inputs is memory of the device.
func (m *Mailbox) Inputs() op.Ptr { return m.inputs }

// Results is memory of the device.
func (m *Mailbox) Results() op.Ptr { return m.results }

// Post waits for the stream and reads the results. An error stays in the stream, as on a device whose steps are still running.
func (m *Mailbox) Post(bytes int) error {
	m.came = make([]byte, bytes)
	m.stream.Read(m.came, m.results)
	err := m.stream.Sync()
	if err != nil {
		m.stream.Fail(err)
	}
	return err
}

// Wait returns what Post has read.
func (m *Mailbox) Wait() ([]byte, error) { return m.came, nil }

// Close gives the memory back.
func (m *Mailbox) Close() error {
	m.device.Free(m.inputs)
	m.device.Free(m.results)
	return nil
}
