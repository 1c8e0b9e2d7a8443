package host

import (
	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Mailbox is a step's mailbox on a device that is infinitely fast: results are there when they are posted.
type Mailbox struct {
	device          device.Device
	stream          device.Stream
	inputs, results op.Ptr
	came            []byte
}

var _ device.Mailbox = (*Mailbox)(nil)

// NewMailbox takes so many bytes of d's memory for inputs and results of steps of s.
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

// Post waits for the stream and reads what came. The stream keeps an error, as one would that goes on later.
func (m *Mailbox) Post(bytes int) error {
	m.came = make([]byte, bytes)
	m.stream.Read(m.came, m.results)
	err := m.stream.Sync()
	if err != nil {
		m.stream.Fail(err)
	}
	return err
}

// Wait lends what came.
func (m *Mailbox) Wait() ([]byte, error) { return m.came, nil }

// Close gives the memory back.
func (m *Mailbox) Close() error {
	m.device.Free(m.inputs)
	m.device.Free(m.results)
	return nil
}
