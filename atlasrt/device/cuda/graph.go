package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/device"
)

// captureThreadLocal is CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: calls that cannot be part of a step fail on this thread, and on no other.
const captureThreadLocal = 1

// Capture records what step queues, to be run by Replay.
func (d *Device) Capture(q device.Stream, step func()) (device.Graph, error) {
	s := q.(*Stream)
	if s.capturing {
		return nil, errors.New("a step that is captured captures another: do that before or after")
	}
	if err := s.Sync(); err != nil {
		return nil, err
	}
	recorded, err := s.record(step)
	if err != nil {
		return nil, fmt.Errorf("capture a step: %w", err)
	}
	g := &graph{device: d}
	if r := d.call(cuGraphInstantiate, uintptr(unsafe.Pointer(&g.handle)), recorded, 0); r != 0 {
		err = d.driver.failure(r, "make a captured step ready")
	}
	if r := d.call(cuGraphDestroy, recorded); r != 0 {
		err = errors.Join(err, d.driver.failure(r, "give the record of a step back"))
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// record runs step under capture and returns the graph of what it queued. Capture begins and ends on one thread.
func (s *Stream) record(step func()) (recorded uintptr, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if r := s.call(cuStreamBeginCapture, s.handle, captureThreadLocal); r != 0 {
		return 0, s.driver.failure(r, "begin to record")
	}
	s.capturing = true
	defer func() { // a step that panics must not leave the stream recording
		if s.capturing {
			s.capturing = false
			if s.call(cuStreamEndCapture, s.handle, uintptr(unsafe.Pointer(&s.abandoned))) == 0 {
				s.call(cuGraphDestroy, s.abandoned[0])
			}
		}
	}()
	step()
	s.capturing, s.idle = false, true
	if r := s.device.call(cuStreamEndCapture, s.handle, uintptr(unsafe.Pointer(&recorded))); r != 0 {
		s.Fail(s.driver.failure(r, "end the record"))
	}
	if err = s.Sync(); err != nil && recorded != 0 {
		s.call(cuGraphDestroy, recorded)
	}
	return recorded, err
}

// graph is a captured step.
type graph struct {
	device *Device
	handle uintptr
}

// Replay queues the step.
func (g *graph) Replay(q device.Stream) {
	s := q.(*Stream)
	if !s.live("replays another") {
		return
	}
	s.idle = false
	if r := s.call(cuGraphLaunch, g.handle, s.handle); r != 0 {
		s.Fail(s.driver.failure(r, "replay a captured step"))
	}
}

func (g *graph) Close() error {
	if g.handle == 0 {
		return nil
	}
	r := g.device.call(cuGraphExecDestroy, g.handle)
	g.handle = 0
	if r != 0 {
		return g.device.driver.failure(r, "give a captured step back")
	}
	return nil
}
