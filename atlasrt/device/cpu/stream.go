package cpu

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// command is atlas_command of kernels/lib/cpu/pool.c.
type command struct {
	run  op.Kernel
	args unsafe.Pointer
	grid op.Grid
	// chunk is how many blocks a thread claims at a time.
	chunk uint32
}

// Sizes of a stream's list. A step of 200 layers has about 3,000 launches.
const (
	listCommands = 1 << 14
	argsBytes    = 4 << 20
	argsAlign    = 64
)

// claimsPerThread is how often a thread claims blocks of one launch, in the mean. With several claims, a thread that the system
// interrupts gets fewer blocks and the others do not wait for it.
const claimsPerThread = 3

// list is launches and their argument blocks, at addresses that C may keep.
type list struct {
	memory   []byte
	commands []command
	count    int
	args     []byte
	used     uintptr
	last     unsafe.Pointer // what Args lent last
}

// newList has room for so many launches, and for so many bytes of arguments.
func newList(launches int, bytes uintptr) (*list, error) {
	commandBytes := (uintptr(launches)*unsafe.Sizeof(command{}) + argsAlign - 1) &^ (argsAlign - 1)
	m, err := mapMemory(int64(commandBytes + bytes))
	if err != nil {
		return nil, fmt.Errorf("cannot take memory for a list of launches: %w", err)
	}
	return &list{
		memory:   m,
		commands: unsafe.Slice((*command)(unsafe.Pointer(unsafe.SliceData(m))), launches),
		args:     m[commandBytes:],
	}, nil
}

// clone is a list of the same launches that has no room for more: many may be kept.
func (l *list) clone() (*list, error) {
	c, err := newList(l.count, max(l.used, 1))
	if err != nil {
		return nil, err
	}
	c.count, c.used = l.count, l.used
	copy(c.commands, l.commands)
	copy(c.args, l.args[:l.used])
	for i := range c.commands {
		if from := c.commands[i].args; from != nil {
			c.commands[i].args = unsafe.Add(unsafe.Pointer(&c.args[0]), uintptr(from)-uintptr(unsafe.Pointer(&l.args[0])))
		}
	}
	return c, nil
}

// empty forgets the launches.
func (l *list) empty() { l.count, l.used, l.last = 0, 0, nil }

func (l *list) close() error { return unix.Munmap(l.memory) }

// Stream holds what was queued: at most one replay, and launches behind it. They run when somebody waits for them.
type Stream struct {
	device    *Device
	list      *list // that launches are written to
	capturing bool  // they are to be kept, and not run
	scratch   op.Ptr
	room      int64  // bytes of scratch
	replay    *graph // runs before the list
	err       error  // the first since the last Sync
	call      []uintptr
}

// Stream makes a queue with scratch bytes of scratch memory. Load an image first.
func (d *Device) Stream(scratch int64) (device.Stream, error) {
	if d.run == 0 {
		return nil, errors.New("no image is loaded yet: load one before making a stream")
	}
	l, err := newList(listCommands, argsBytes)
	if err != nil {
		return nil, err
	}
	s := &Stream{device: d, list: l, room: scratch}
	if s.scratch, err = d.Alloc(scratch); err != nil {
		return nil, errors.Join(fmt.Errorf("scratch: %w", err), l.close())
	}
	return s, nil
}

// Args lends space whose contents are not defined: the caller writes all of it.
func (s *Stream) Args(bytes uintptr) unsafe.Pointer {
	l := s.list
	size := (bytes + argsAlign - 1) &^ (argsAlign - 1)
	if l.count == len(l.commands) || l.used+size > uintptr(len(l.args)) {
		if s.capturing {
			s.Fail(fmt.Errorf("a captured step has more than %d launches", l.count))
			l.empty()
		} else {
			s.flush()
		}
	}
	l.last = unsafe.Pointer(&l.args[l.used])
	l.used += size
	return l.last
}

// Launch queues a launch.
func (s *Stream) Launch(k op.Kernel, g op.Grid) {
	l := s.list
	blocks := uint64(g.X) * uint64(g.Y) * uint64(g.Z)
	chunk := max(1, blocks/uint64(s.device.threads*claimsPerThread))
	l.commands[l.count] = command{run: k, args: l.last, grid: g, chunk: uint32(chunk)}
	l.count++
}

// Scratch lends the stream's one scratch buffer. Every launch may have it, because launches run one after the other.
func (s *Stream) Scratch(bytes int64) op.Ptr {
	if bytes > s.room {
		s.Fail(fmt.Errorf("an operation asks for %d bytes of scratch memory, the stream has %d", bytes, s.room))
	}
	return s.scratch
}

// TensorMap fails: only GPUs have a copy engine.
func (s *Stream) TensorMap(op.Tile) op.TensorMap {
	s.Fail(errors.New("a CPU has no copy engine"))
	return op.TensorMap{}
}

// Fail keeps the first error.
func (s *Stream) Fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// flush runs what is queued, or drops it after an error.
func (s *Stream) flush() {
	if s.replay != nil {
		s.run((*list)(s.replay))
		s.replay = nil
	}
	s.run(s.list)
	s.list.empty()
}

// run hands a list to the threads and waits. The slice of arguments is kept, so that a call allocates nothing.
func (s *Stream) run(l *list) {
	if s.err == nil && l.count > 0 {
		s.call = append(s.call[:0], uintptr(unsafe.Pointer(&l.commands[0])), uintptr(l.count))
		purego.SyscallN(s.device.run, s.call...)
	}
}

// Write copies to device memory after all that is queued.
func (s *Stream) Write(to op.Ptr, from []byte) {
	s.flush()
	copy(memory(to, len(from)), from)
}

// copyBytes is how much a goroutine of WriteAll copies at a time.
const copyBytes = 1 << 20

// WriteAll copies to device memory after all that is queued, with as many goroutines as there are threads.
func (s *Stream) WriteAll(pieces []device.Piece) {
	s.flush()
	_ = device.Spread(pieces, copyBytes, s.device.threads, func(_ int, part device.Part) error {
		part.Copy(memory(part.To, part.Bytes()))
		return nil
	})
}

// Read copies from device memory after all that is queued.
func (s *Stream) Read(to []byte, from op.Ptr) {
	s.flush()
	copy(to, memory(from, len(to)))
}

// Sync runs what is queued and returns the first error since the last Sync.
func (s *Stream) Sync() error {
	s.flush()
	err := s.err
	s.err = nil
	return err
}

// Close gives the stream's memory back.
func (s *Stream) Close() error {
	s.device.Free(s.scratch)
	return s.list.close()
}

// Capture records what step queues, to be run by Replay.
func (d *Device) Capture(q device.Stream, step func()) (device.Graph, error) {
	s := q.(*Stream)
	if err := s.Sync(); err != nil {
		return nil, err
	}
	s.capturing = true
	step()
	s.capturing = false
	defer s.list.empty()
	if s.err != nil {
		return nil, s.Sync()
	}
	l, err := s.list.clone()
	if err != nil {
		return nil, err
	}
	return (*graph)(l), nil
}

// graph is the list of a captured step.
type graph list

// Replay only queues, as a launch does: the step runs when somebody waits for it.
func (g *graph) Replay(q device.Stream) {
	s := q.(*Stream)
	s.flush()
	s.replay = g
}

func (g *graph) Close() error { return (*list)(g).close() }
