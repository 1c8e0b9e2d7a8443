package engine

import (
	"sync/atomic"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// tapeDevice is host memory whose streams can be recorded: kernels are Go functions, and a launch runs one at once or is kept.
type tapeDevice struct {
	*host.Device
	fault   func(step int64) error // of each launch; nil never fails
	sync    func() error           // of each Sync; nil never fails
	steps   atomic.Int64
	kernels []func() // of launches
	boxes   []*countedMailbox
	posting bool // a mailbox syncs, which no real one does
}

type tape struct {
	device.Stream
	device    *tapeDevice
	recording *recording
}

type recording struct {
	steps  []func()
	device *graphDevice
}

func (d *tapeDevice) Stream(scratch int64) (device.Stream, error) {
	s, err := d.Device.Stream(scratch)
	return &tape{Stream: s, device: d}, err
}

// launch queues f as a kernel, through whatever stream lies before the tape.
func (d *tapeDevice) launch(q op.Stream, f func()) {
	d.kernels = append(d.kernels, f)
	*(*int64)(q.Args(8)) = 1
	q.Launch(op.Kernel(len(d.kernels)-1), op.Grid{X: 1, Y: 1, Z: 1})
}

func (t *tape) Launch(k op.Kernel, _ op.Grid) {
	f := t.device.kernels[k]
	if t.recording != nil {
		t.recording.steps = append(t.recording.steps, f)
		return
	}
	f()
}

func (t *tape) Sync() error {
	for _, box := range t.device.boxes {
		box.reading = box.reading && t.device.posting
	}
	err := t.Stream.Sync()
	if err == nil && t.device.sync != nil {
		err = t.device.sync()
	}
	return err
}

func (r *recording) Replay(device.Stream) {
	for _, f := range r.steps {
		f()
	}
}

func (r *recording) Close() error {
	r.device.live.Add(-1)
	return nil
}

// graphDevice is a tapeDevice that says it can record.
type graphDevice struct {
	*tapeDevice
	captures atomic.Int64
	live     atomic.Int64 // recordings that are not closed
	refuse   func(capture int64) error
}

func (d *graphDevice) Capture(s device.Stream, step func()) (device.Graph, error) {
	if n := d.captures.Add(1); d.refuse != nil {
		if err := d.refuse(n); err != nil {
			return nil, err
		}
	}
	t := s.(*tape)
	d.live.Add(1)
	t.recording = &recording{device: d}
	defer func() { t.recording = nil }()
	step()
	return t.recording, nil
}

// aheadDevice is a graphDevice that says it works while the host does.
type aheadDevice struct {
	*graphDevice
	flying, most int // results that were posted and not waited for
	early        int // inputs that were sent while a step may still have read those before
}

func (d *aheadDevice) Mailbox(s device.Stream, inputs, results int) (device.Mailbox, error) {
	box, err := host.NewMailbox(d, s, inputs, results)
	m := &countedMailbox{Mailbox: box, device: d}
	d.boxes = append(d.boxes, m)
	return m, err
}

// countedMailbox counts steps that are in flight.
type countedMailbox struct {
	*host.Mailbox
	device  *aheadDevice
	reading bool // a step may read its inputs: it was neither waited for nor was the stream
}

func (m *countedMailbox) Send(inputs []byte) {
	if m.reading {
		m.device.early++
	}
	m.Mailbox.Send(inputs)
	m.reading = true
}

func (m *countedMailbox) Post(bytes int) error {
	m.device.posting = true
	err := m.Mailbox.Post(bytes)
	m.device.posting = false
	if err == nil {
		m.device.flying++
		m.device.most = max(m.device.most, m.device.flying)
	}
	return err
}

func (m *countedMailbox) Wait() ([]byte, error) {
	m.device.flying--
	m.reading = false
	return m.Mailbox.Wait()
}

// tapeSampler is the oracle, recordable.
type tapeSampler struct {
	set    *oracle.Set
	device *tapeDevice
}

func (s tapeSampler) Sample(q op.Stream, x op.Sample) {
	s.device.launch(q, func() { s.set.Sample(q, x) })
}

func (s tapeSampler) Resolve(q op.Stream, x op.Resolve) {
	s.device.launch(q, func() { s.set.Resolve(q, x) })
}

func (s tapeSampler) Copy(q op.Stream, x op.Copy) {
	s.device.launch(q, func() { s.set.Copy(q, x) })
}
