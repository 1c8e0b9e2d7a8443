package engine

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// tapeDevice is host memory whose streams can be recorded: kernels are Go functions. It is either so fast that what is queued
// runs at once, or so slow that it runs when somebody waits for it.
type tapeDevice struct {
	*host.Device
	fault   func(step int64) error   // of each forward pass; nil never fails
	sampler func(sample int64) error // of each sampling; nil never fails
	sync    func() error             // of each Sync; nil never fails
	steps   atomic.Int64
	samples atomic.Int64
	kernels []func() // of launches
	boxes   []*mailbox
	posting bool           // a mailbox syncs, which no real one does
	counts  map[[2]int]int // how often so many draws were made of a chunk, and so many of them counted; or nil
	pause   sync.Mutex     // held during forward passes

	slow   bool
	queued []func() // on a slow device
	ran    int      // how many there were that are no more
	failed error    // of the slow device's stream, since the last Sync: nothing more runs
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

// queue runs f in queue order.
func (d *tapeDevice) queue(f func()) {
	if !d.slow {
		f()
		return
	}
	d.queued = append(d.queued, f)
}

// runTo runs what was queued, up to a count of all that ever was.
func (d *tapeDevice) runTo(count int) {
	for d.ran < count {
		f := d.queued[0]
		d.queued = d.queued[1:]
		d.ran++
		if d.failed == nil {
			f()
		}
	}
}

// count is of all that ever was queued.
func (d *tapeDevice) count() int { return d.ran + len(d.queued) }

func (t *tape) Launch(k op.Kernel, _ op.Grid) {
	f := t.device.kernels[k]
	if t.recording != nil {
		t.recording.steps = append(t.recording.steps, f)
		return
	}
	t.device.queue(f)
}

func (t *tape) Fail(err error) {
	if t.device.slow && t.device.failed == nil {
		t.device.failed = err
	}
	t.Stream.Fail(err)
}

func (t *tape) Write(to op.Ptr, from []byte) {
	from = slices.Clone(from)
	t.device.queue(func() { t.Stream.Write(to, from) })
}

func (t *tape) Read(to []byte, from op.Ptr) {
	t.device.runTo(t.device.count())
	t.Stream.Read(to, from)
}

func (t *tape) Sync() error {
	t.device.runTo(t.device.count())
	for _, box := range t.device.boxes {
		box.reading = box.reading && t.device.posting
	}
	err := t.Stream.Sync()
	t.device.failed = nil
	if err == nil && t.device.sync != nil {
		err = t.device.sync()
	}
	return err
}

func (r *recording) Replay(device.Stream) {
	for _, f := range r.steps {
		r.device.queue(f)
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
	most  int // steps that were sent and not waited for
	early int // inputs that were sent while a step may still have read those before
}

func (d *aheadDevice) Mailbox(s device.Stream, inputs, results int) (device.Mailbox, error) {
	box, err := host.NewMailbox(d, s, inputs, results)
	m := &mailbox{Mailbox: box, device: d}
	d.boxes = append(d.boxes, m)
	return m, err
}

// mailbox counts steps that are in flight.
type mailbox struct {
	*host.Mailbox
	device  *aheadDevice
	reading bool // a step may read its inputs: it was neither waited for nor was the stream
	end     int  // of the step, in what a slow device has queued
	bytes   int
}

func (m *mailbox) Send(inputs []byte) {
	if m.reading {
		m.device.early++
	}
	m.reading = true
	flying := 0
	for _, box := range m.device.boxes {
		if box.reading {
			flying++
		}
	}
	m.device.most = max(m.device.most, flying)
	if !m.device.slow {
		m.Mailbox.Send(inputs)
	} else if err := m.device.CopyIn(m.Inputs(), inputs); err != nil { // beside the stream
		panic(err)
	}
}

func (m *mailbox) Post(bytes int) error {
	if m.device.slow {
		m.end, m.bytes = m.device.count(), bytes
		return m.device.failed
	}
	m.device.posting = true
	defer func() { m.device.posting = false }()
	return m.Mailbox.Post(bytes)
}

func (m *mailbox) Wait() ([]byte, error) {
	m.reading = false
	if !m.device.slow {
		return m.Mailbox.Wait()
	}
	m.device.runTo(m.end)
	came := make([]byte, m.bytes)
	return came, errors.Join(m.device.failed, m.device.CopyOut(came, m.Results()))
}

// tapeSampler is the oracle, recordable.
type tapeSampler struct {
	set    *oracle.Set
	device *tapeDevice
}

func (s tapeSampler) Sample(q op.Stream, x op.Sample) {
	s.device.launch(q, func() {
		if n := s.device.samples.Add(1); s.device.sampler != nil {
			if err := s.device.sampler(n); err != nil {
				q.Fail(err)
				return
			}
		}
		s.set.Sample(q, x)
	})
}

func (s tapeSampler) Resolve(q op.Stream, x op.Resolve) {
	s.device.launch(q, func() { s.set.Resolve(q, x) })
}

func (s tapeSampler) Advance(q op.Stream, x op.Advance) {
	s.device.launch(q, func() { s.set.Advance(q, x) })
}

func (s tapeSampler) Accept(q op.Stream, x op.Accept) {
	s.device.launch(q, func() {
		s.set.Accept(q, x)
		starts, counts := make([]byte, 4*(x.Chunks+1)), make([]byte, 4*x.Chunks)
		if err := errors.Join(s.device.CopyOut(starts, x.Starts), s.device.CopyOut(counts, x.Counts)); err != nil {
			q.Fail(err)
		}
		word := func(bytes []byte, i int32) int { return int(binary.LittleEndian.Uint32(bytes[4*i:])) }
		for n := range x.Chunks {
			if draws := word(starts, n+1) - word(starts, n); draws > 0 && s.device.counts != nil {
				s.device.counts[[2]int{draws, word(counts, n)}]++
			}
		}
	})
}

func (s tapeSampler) DraftRows(q op.Stream, x op.DraftRows) {
	s.device.launch(q, func() { s.set.DraftRows(q, x) })
}

func (s tapeSampler) NormPair(q op.Stream, x op.NormPair) {
	s.device.launch(q, func() { s.set.NormPair(q, x) })
}

func (s tapeSampler) Lookup(q op.Stream, x op.Lookup) {
	s.device.launch(q, func() { s.set.Lookup(q, x) })
}

func (s tapeSampler) Copy(q op.Stream, x op.Copy) {
	s.device.launch(q, func() { s.set.Copy(q, x) })
}
