// Package cuda runs compiled kernels on NVIDIA GPUs through the driver's own library, without cgo.
//
// The library is opened at run time, so that one binary serves machines with and without it. Any goroutine may call a device; a
// stream belongs to one goroutine at a time. Each call of the driver first makes the device's context current on its thread. The driver
// may read host memory after a call has returned, so that it never gets memory of Go: copies go through pinned memory, and argument
// blocks lie outside the heap.
package cuda

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

var (
	_ device.Device     = (*Device)(nil)
	_ device.Grapher    = (*Device)(nil)
	_ device.Overlapper = (*Device)(nil)
)

// Device is one GPU.
type Device struct {
	driver     *driver
	handle     int32
	context    uintptr // the primary context, which libraries such as NCCL use too
	properties Properties
	functions  atomic.Pointer[[]*function] // kernel k is element k-1; elements are never changed

	mu      sync.Mutex
	blocks  map[op.Ptr]bool // what Alloc took
	modules []uintptr       // loaded units

	copying sync.Mutex
	copies  *Stream // that CopyIn, CopyOut and Alloc use
}

// Open takes the GPU with this index, counted as CUDA_VISIBLE_DEVICES leaves them.
func Open(index int) (*Device, error) { return open(libraryName, index) }

func open(library string, index int) (*Device, error) {
	driver, err := openDriver(library)
	if err != nil {
		return nil, err
	}
	d := &Device{driver: driver, blocks: map[op.Ptr]bool{}}
	d.functions.Store(new([]*function))
	if d.handle, d.properties, err = driver.find(index); err != nil {
		return nil, err
	}
	if r := driver.call(cuDevicePrimaryCtxRetain, uintptr(unsafe.Pointer(&d.context)), uintptr(d.handle)); r != 0 {
		return nil, driver.failure(r, "start using GPU %d (%s)", index, d.properties.Name)
	}
	if d.copies, err = d.newStream(0); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Properties are what the GPU is.
func (d *Device) Properties() Properties { return d.properties }

// call calls a function in the device's context.
//
//go:uintptrescapes
func (d *Device) call(f symbol, args ...uintptr) result { return d.caller().call(f, args...) }

func (d *Device) caller() *caller { return &caller{driver: d.driver, context: [1]uintptr{d.context}} }

// Alloc takes zeroed memory, aligned to 256 bytes.
func (d *Device) Alloc(bytes int64) (op.Ptr, error) {
	bytes = max(bytes, 1)
	var p op.Ptr
	if r := d.call(cuMemAlloc, uintptr(unsafe.Pointer(&p)), uintptr(bytes)); r != 0 {
		free, total := d.Memory()
		return 0, d.driver.failure(r, "take %d bytes of memory, where %d of %d are free", bytes, free, total)
	}
	d.mu.Lock()
	d.blocks[p] = true
	d.mu.Unlock()
	if err := d.atOnce(func(s *Stream) { s.clear(p, bytes) }); err != nil {
		d.Free(p)
		return 0, err
	}
	return p, nil
}

// Free gives back what Alloc took, once the launches queued so far have run. Zero is allowed.
func (d *Device) Free(p op.Ptr) {
	d.mu.Lock()
	known := d.blocks[p]
	delete(d.blocks, p)
	d.mu.Unlock()
	if known {
		d.call(cuMemFree, uintptr(p))
	}
}

// CopyIn writes from to device memory.
func (d *Device) CopyIn(to op.Ptr, from []byte) error {
	return d.atOnce(func(s *Stream) { s.Write(to, from) })
}

// CopyOut reads device memory.
func (d *Device) CopyOut(to []byte, from op.Ptr) error {
	return d.atOnce(func(s *Stream) { s.Read(to, from) })
}

// atOnce runs queue on the device's own stream and waits for what it queued.
func (d *Device) atOnce(queue func(*Stream)) error {
	d.copying.Lock()
	defer d.copying.Unlock()
	queue(d.copies)
	return d.copies.Sync()
}

// Memory is how many bytes are free and how many there are; zeros where the device does not answer.
func (d *Device) Memory() (free, total int64) {
	if d.call(cuMemGetInfo, uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total))) != 0 {
		return 0, 0
	}
	return free, total
}

// Close gives all memory and modules back and returns the first error. Close graphs and streams first.
func (d *Device) Close() error {
	if d.context == 0 {
		return nil
	}
	var first error
	if d.copies != nil {
		first = d.copies.Close()
	}
	check := func(r result, what string) {
		if r != 0 && first == nil {
			first = d.driver.failure(r, "%s", what)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for p := range d.blocks {
		check(d.call(cuMemFree, uintptr(p)), "give memory back")
	}
	for _, m := range d.modules {
		check(d.call(cuModuleUnload, m), "unload kernels")
	}
	check(d.driver.call(cuDevicePrimaryCtxRelease, uintptr(d.handle)), "stop using the GPU")
	clear(d.blocks)
	d.context, d.modules, d.copies = 0, nil, nil
	return first
}

// Load makes the kernels of an image callable. See package image for its form.
func (d *Device) Load(file []byte) (device.Module, error) {
	m, err := d.load(file)
	if err != nil {
		return nil, fmt.Errorf("load kernels on %s: %w", d.properties.Name, err)
	}
	return m, nil
}
