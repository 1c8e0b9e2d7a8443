package server

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Bodies up to smallBody bytes have a share of their own and never wait behind large ones.
const (
	smallBody  = 64 << 10
	smallShare = 16 << 20
)

// errFull says that a body waited too long for room.
var errFull = errors.New("the server has too many large requests at the moment")

// admission bounds what bodies cost before they are tokens: memory by the bytes in flight, which are those being read,
// decoded, rendered and tokenised, and time by how many large ones are worked on at once. All of it is first come, first served.
type admission struct {
	large, small *semaphore.Weighted // bytes
	work         *semaphore.Weighted // large bodies
	wait         time.Duration
	spare        *spare
}

func newAdmission(l Limits) *admission {
	return &admission{
		large: semaphore.NewWeighted(l.InFlightBytes), small: semaphore.NewWeighted(smallShare),
		work: semaphore.NewWeighted(int64(workers())),
		wait: l.WaitTime, spare: newSpare(),
	}
}

// workers is how many large bodies are worked on at once: half of the processors go on with what is small.
func workers() int { return max(runtime.GOMAXPROCS(0)/2, 1) }

// visit is the stay of one body. It must be left.
type visit struct {
	admission *admission
	held      []hold
	bytes     int64 // of a large body
}

type hold struct {
	share *semaphore.Weighted
	n     int64
}

// reserve waits for room for a large body, before it is read.
func (v *visit) reserve(ctx context.Context, bytes int64) error {
	if err := v.acquire(ctx, v.admission.large, bytes); err != nil {
		return err
	}
	v.bytes = bytes
	v.admission.spare.enter()
	return nil
}

// begin waits until work on a body that was read may begin.
func (v *visit) begin(ctx context.Context, size int) error {
	if v.bytes > 0 {
		return v.acquire(ctx, v.admission.work, 1)
	}
	return v.acquire(ctx, v.admission.small, int64(size))
}

func (v *visit) acquire(ctx context.Context, share *semaphore.Weighted, n int64) error {
	if !share.TryAcquire(n) {
		ctx, cancel := context.WithTimeoutCause(ctx, v.admission.wait, errFull)
		defer cancel()
		if share.Acquire(ctx, n) != nil {
			return context.Cause(ctx)
		}
	}
	v.held = append(v.held, hold{share, n})
	return nil
}

// leave gives everything back; again does nothing.
func (v *visit) leave() {
	for _, h := range v.held {
		h.share.Release(h.n)
	}
	if v.bytes > 0 {
		v.admission.spare.leave(v.bytes)
	}
	v.held, v.bytes = nil, 0
}

// Memory is given back some time after large bodies have left, and not for less than spareBytes of them.
const (
	spareTime  = 5 * time.Second
	spareBytes = 4 << 20
)

// spare gives memory that large bodies took back to the system. The runtime alone keeps it for minutes.
type spare struct {
	pause time.Duration
	free  func()

	mu     sync.Mutex
	inside int   // large bodies in flight
	left   int64 // bytes of those that left since memory was given back
	armed  bool
}

func newSpare() *spare { return &spare{pause: spareTime, free: freeMemory} }

func (s *spare) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inside++
}

func (s *spare) leave(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inside--
	if s.left += bytes; s.left >= spareBytes && !s.armed {
		s.armed = true
		time.AfterFunc(s.pause, s.tidy) // at most once in a pause
	}
}

// tidy frees memory once no large body is in flight.
func (s *spare) tidy() {
	s.mu.Lock()
	if s.inside > 0 {
		time.AfterFunc(s.pause, s.tidy)
		s.mu.Unlock()
		return
	}
	s.left, s.armed = 0, false
	s.mu.Unlock()
	s.free()
}
