// Package cpu runs compiled kernels on the processor that the program runs on, without cgo.
//
// An image is a shared object, which is opened from memory. It brings a pool of C threads that stay (kernels/lib/cpu/pool.c). A stream
// only writes a list of launches; when somebody waits, one call hands the list to the pool. The threads take its launches in order and
// share the blocks of each. A captured step is a list that is kept. Memory lies outside the Go heap.
package cpu

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/device/cpu/cgroup"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Device is this computer's processor.
type Device struct {
	threads int
	root    fs.FS // the system's files

	mu     sync.Mutex
	memory memories
	run    uintptr // atlas_pool_run of the first image; every list goes through it
}

// New makes the device. So many threads run kernels, and the caller of Sync is one of them. 0 means a thread for each processor that
// this process may use within the CPU quota of its control groups, 256 at most.
func New(threads int) (*Device, error) {
	return newDevice(threads, runtime.NumCPU(), os.DirFS("/"))
}

func newDevice(threads, processors int, root fs.FS) (*Device, error) {
	d := &Device{threads: threads, root: root, memory: memories{blocks: map[op.Ptr]block{}}}
	if threads == 0 {
		limits, _ := d.Limits()
		d.threads = min(limits.Threads(processors), mostThreads)
	}
	if d.threads < 1 || d.threads > mostThreads {
		return nil, fmt.Errorf("%d threads: choose 1 to %d", threads, mostThreads)
	}
	return d, nil
}

// mostThreads is how many threads a pool can have.
const mostThreads = 256

// Threads is how many threads run kernels.
func (d *Device) Threads() int { return d.threads }

// Limits are what the control groups of this process allow it. The error names files that cannot be read; the limits of the other
// files are still returned.
func (d *Device) Limits() (cgroup.Limits, error) { return cgroup.Read(d.root) }

// Alloc takes zeroed memory in whole pages, on huge pages where the system gives them.
func (d *Device) Alloc(bytes int64) (op.Ptr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.memory.take(bytes)
	if err != nil {
		return 0, fmt.Errorf("cannot take %d bytes of memory: %w", bytes, err)
	}
	return p, nil
}

// Free gives back what Alloc took. Zero is allowed.
func (d *Device) Free(p op.Ptr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.memory.give(p)
}

// CopyIn writes from to device memory.
func (d *Device) CopyIn(to op.Ptr, from []byte) error {
	copy(memory(to, len(from)), from)
	return nil
}

// CopyOut reads device memory.
func (d *Device) CopyOut(to []byte, from op.Ptr) error {
	copy(to, memory(from, len(to)))
	return nil
}

// Memory is how many bytes are free and how many there are: the machine's, or what the control groups of this process leave of them.
func (d *Device) Memory() (free, total int64) {
	free, total, _ = d.BoundMemory()
	return free, total
}

// BoundMemory is Memory, and the control group's file that sets the limit; "" where the machine's memory is the limit.
func (d *Device) BoundMemory() (free, total int64, limit string) {
	limits, _ := d.Limits()
	return systemMemory(d.root, limits.Memory)
}

// Close gives all memory back. Images and their threads stay until the process ends.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.memory.close()
}

// Load opens a shared object from memory. The first one starts its pool of threads, which runs the kernels of all.
func (d *Device) Load(image []byte) (device.Module, error) {
	lib, err := open(image)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run == 0 {
		start, err := purego.Dlsym(lib, "atlas_pool_start")
		if err != nil {
			return nil, fmt.Errorf("the image has no thread pool: %w", err)
		}
		run, err := purego.Dlsym(lib, "atlas_pool_run")
		if err != nil {
			return nil, fmt.Errorf("the image has no thread pool: %w", err)
		}
		if code, _, _ := purego.SyscallN(start, uintptr(d.threads)); int32(code) != 0 {
			return nil, fmt.Errorf("cannot start %d threads: error %d", d.threads, int32(code))
		}
		d.run = run
	}
	return module(lib), nil
}

// open gives image to the dynamic linker, as a file in memory that is never closed. The linker knows an image by its path, which holds
// the file's number: were the number used again, the linker would return the old image.
func open(image []byte) (uintptr, error) {
	fd, err := unix.MemfdCreate("atlas-kernels", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("cannot make a file in memory for the kernels: %w", err)
	}
	for rest := image; len(rest) > 0; {
		n, err := unix.Write(fd, rest)
		if err != nil {
			return 0, fmt.Errorf("cannot write the kernels to memory: %w", err)
		}
		rest = rest[n:]
	}
	runtime.LockOSThread() // which the linker keeps its errors for
	defer runtime.UnlockOSThread()
	lib, err := purego.Dlopen(fmt.Sprintf("/proc/self/fd/%d", fd), purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return 0, fmt.Errorf("the kernels do not load (run `atlasc build`): %w", err)
	}
	return lib, nil
}

type module uintptr

func (m module) Kernel(name string) (op.Kernel, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f, err := purego.Dlsym(uintptr(m), name)
	if err != nil {
		return 0, fmt.Errorf("the image has no kernel %s (run `atlasc build`): %w", name, err)
	}
	return op.Kernel(f), nil
}
