package optest

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// ceilingBytes is more than any cache holds.
const ceilingBytes = 256 << 20

// ceiling measures how many bytes per second the device can read: the best of several goes, by threads of this process
// where its memory is ours, else by the set's own Copy, whose reads and writes count alike.
func (j *judge) ceiling() (bytesPerSecond int64, method string, err error) {
	from, err := j.Device.Alloc(ceilingBytes)
	if err != nil {
		return 0, "", err
	}
	defer j.Device.Free(from)
	// Pages that were never written may all be one and the same.
	if err := j.Device.CopyIn(from, make([]byte, ceilingBytes)); err != nil {
		return 0, "", err
	}
	if j.HostMemory {
		words := unsafe.Slice((*uint64)(*(*unsafe.Pointer)(unsafe.Pointer(&from))), ceilingBytes/8)
		best := bestOf(func() error { readAll(words); return nil })
		return int64(perSecond(ceilingBytes, best.time)), fmt.Sprintf("read by %d threads", runtime.GOMAXPROCS(0)), nil
	}
	to, err := j.Device.Alloc(ceilingBytes)
	if err != nil {
		return 0, "", err
	}
	defer j.Device.Free(to)
	best := bestOf(func() error {
		j.Set.Copy(j.target.stream, op.Copy{Out: to, In: from, Bytes: ceilingBytes})
		return j.target.stream.Sync()
	})
	return int64(perSecond(2*ceilingBytes, best.time)), "read and written by Copy", best.err
}

type timed struct {
	time time.Duration
	err  error
}

func bestOf(run func() error) timed {
	best := timed{time: time.Hour}
	for range 8 {
		start := time.Now()
		err := run()
		best.time = min(best.time, time.Since(start))
		if err != nil {
			best.err = err
		}
	}
	return best
}

// readAll reads all words, each thread its part.
func readAll(words []uint64) {
	var group sync.WaitGroup
	var total atomic.Uint64 // keeps the compiler from dropping the sums
	threads := runtime.GOMAXPROCS(0)
	for t := range threads {
		group.Go(func() {
			part := words[len(words)*t/threads : len(words)*(t+1)/threads]
			var a, b, c, d uint64
			for len(part) >= 8 {
				a += part[0] ^ part[4]
				b += part[1] ^ part[5]
				c += part[2] ^ part[6]
				d += part[3] ^ part[7]
				part = part[8:]
			}
			total.Add(a + b + c + d)
		})
	}
	group.Wait()
}
