package optest

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// ceilingBytes is more than any cache holds.
const ceilingBytes = 256 << 20

// ceiling measures how many bytes per second the device can move, and says how. Where its memory is this process's own, threads read it;
// else the set's own kernels do. The best of several attempts counts, also where that is a kernel that only writes.
func (b *bencher) ceiling() (bytesPerSecond int64, method string, err error) {
	if b.HostMemory {
		return b.hostCeiling()
	}
	for _, c := range b.streams() {
		var r BenchResult
		if err := b.bench(c, &r); err != nil {
			return 0, "", fmt.Errorf("%s %s: %w", c.Op, c.Name, err)
		}
		if rate := int64(perSecond(r.Bytes, r.Cold.Min)); rate > bytesPerSecond {
			bytesPerSecond, method = rate, "by "+c.Op+" "+c.Name
		}
	}
	return bytesPerSecond, method, nil
}

// streams are calls that do little but move bytes: a fill, a copy, whose reads and writes both count, and the product of one row with a
// large matrix.
func (b *bencher) streams() []*Case {
	largest, bytes, name := shape{151936, 4096}, int64(ceilingBytes), "256 MiB"
	if b.Short {
		largest, bytes, name = shape{512, 256}, 64<<10, "64 KiB"
	}
	list := []*Case{of(name, op.Fill{Count: bytes / 4}), of(name, op.Copy{Bytes: bytes})}
	for _, scheme := range schemes {
		if b.has(scheme) {
			name := fmt.Sprintf("%s %s rows 1", scheme, largest)
			return append(list, of(name, op.Linear{W: matrix(scheme, largest.rows, largest.cols), Rows: 1, OutPitch: int32(largest.rows)}).with(factored(scheme)))
		}
	}
	return list
}

func (b *bencher) hostCeiling() (bytesPerSecond int64, method string, err error) {
	from, err := b.Device.Alloc(ceilingBytes)
	if err != nil {
		return 0, "", err
	}
	defer b.Device.Free(from)
	// Pages that were never written may all be the same page of zeros, which a cache holds.
	if err := b.Device.CopyIn(from, make([]byte, ceilingBytes)); err != nil {
		return 0, "", err
	}
	words := unsafe.Slice((*uint64)(*(*unsafe.Pointer)(unsafe.Pointer(&from))), ceilingBytes/8)
	best := time.Duration(math.MaxInt64)
	for range 8 {
		start := time.Now()
		readAll(words)
		best = min(best, time.Since(start))
	}
	return int64(perSecond(ceilingBytes, best)), fmt.Sprintf("read by %d threads", runtime.GOMAXPROCS(0)), nil
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
