// Package host is a device on ordinary memory for kernel sets written in Go, such as the oracle.
//
// It runs no compiled kernels: such a set computes when its method is called. Every address of a copy is checked against the
// buffers that were allocated, so that a wrong one is an error and not a crash.
package host

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Align is what the address of every buffer is a multiple of, in bytes: a cache line.
const Align = 64

// Device is host memory up to a limit.
type Device struct {
	capacity int64

	mu      sync.Mutex
	buffers map[op.Ptr][]byte // the map keeps the memory alive; Go's heap does not move
	used    int64
}

var _ device.Device = (*Device)(nil)

// New makes a device that lends up to capacity bytes; 0 means no limit but the machine's.
func New(capacity int64) *Device {
	if capacity <= 0 {
		capacity = math.MaxInt64
	}
	return &Device{capacity: capacity, buffers: map[op.Ptr][]byte{}}
}

// Alloc takes zeroed memory, aligned to 64 bytes.
func (d *Device) Alloc(bytes int64) (op.Ptr, error) {
	if bytes < 0 {
		return 0, fmt.Errorf("cannot allocate %d bytes", bytes)
	}
	size := max(bytes, 1) // an empty buffer has an address of its own, too
	d.mu.Lock()
	defer d.mu.Unlock()
	if size > d.capacity-d.used {
		return 0, fmt.Errorf("cannot allocate %d bytes: %d of %d are free", bytes, d.capacity-d.used, d.capacity)
	}
	memory := make([]byte, size+Align-1)
	start := -uintptr(unsafe.Pointer(unsafe.SliceData(memory))) % Align
	memory = memory[start : start+uintptr(size)]
	p := op.Ptr(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
	d.buffers[p] = memory
	d.used += size
	return p, nil
}

// Free gives a buffer back. Freeing address zero does nothing.
func (d *Device) Free(p op.Ptr) {
	if p == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	memory, ok := d.buffers[p]
	if !ok {
		panic(fmt.Sprintf("BUG: address %#x was not allocated, or was freed before", uint64(p)))
	}
	delete(d.buffers, p)
	d.used -= int64(len(memory))
}

// CopyIn copies to a buffer.
func (d *Device) CopyIn(to op.Ptr, from []byte) error {
	memory, err := d.find(to, len(from))
	copy(memory, from)
	return err
}

// CopyOut copies from a buffer.
func (d *Device) CopyOut(to []byte, from op.Ptr) error {
	memory, err := d.find(from, len(to))
	copy(to, memory)
	return err
}

// find returns the n bytes at p, which must lie in one buffer.
func (d *Device) find(p op.Ptr, n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for start, memory := range d.buffers {
		if p >= start && p-start < op.Ptr(len(memory)) && op.Ptr(n) <= op.Ptr(len(memory))-(p-start) {
			return memory[p-start:][:n], nil
		}
	}
	return nil, fmt.Errorf("%d bytes at %#x lie in no buffer of this device", n, uint64(p))
}

// Load fails: there is nothing that could run an image.
func (d *Device) Load([]byte) (device.Module, error) {
	return nil, errors.New("host memory runs no compiled kernels: use the device that the image was built for")
}

// Memory reports what Alloc may still lend, and the limit.
func (d *Device) Memory() (free, total int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.capacity - d.used, d.capacity
}

// Close forgets every buffer.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.buffers)
	d.used = 0
	return nil
}
