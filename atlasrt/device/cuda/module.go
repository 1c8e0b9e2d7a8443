package cuda

import (
	"fmt"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/device/cuda/image"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// launchConfig is CUlaunchConfig of cuda.h.
type launchConfig struct {
	grid        op.Grid
	block       [3]uint32
	sharedBytes uint32
	_           uint32
	stream      uintptr
	attributes  *launchAttribute
	count       uint32
	_           uint32
}

// launchAttribute is CUlaunchAttribute of cuda.h: a number that names the attribute, and a union of 64 bytes for its value.
type launchAttribute struct {
	id    uint32
	_     uint32
	value [16]uint32
}

// Numbers of enum CUlaunchAttributeID, and what their values mean.
const (
	attributeCooperative  = 2 // 1: all blocks of the launch run at the same time
	attributeCluster      = 4 // blocks of a cluster in x, y and z
	attributeSerialized   = 6 // 1: the launch may start before the one ahead of it in the stream has ended
	possibleAttributes    = 3
	portableClusterBlocks = 8 // a cluster of more needs a permission
)

// Numbers of enum CUfunction_attribute.
const (
	functionMaxThreads      = 0
	functionRegisters       = 4
	functionDynamicShared   = 8
	functionSharedPercent   = 9 // how much of a multiprocessor's on-chip memory is shared memory; the rest is first-level cache
	functionNonPortableSize = 14
)

// function is a kernel that can be launched.
type function struct {
	name       string
	handle     uintptr
	config     launchConfig // of every launch; grid and stream are filled in
	attributes [possibleAttributes]launchAttribute
}

func newFunction(e image.Entry) *function {
	f := &function{name: e.Name, config: launchConfig{block: e.Block, sharedBytes: e.SharedBytes}}
	f.config.attributes = &f.attributes[0]
	if e.Cooperative {
		f.set(attributeCooperative, 1)
	}
	if e.Cluster != [3]uint32{} {
		f.set(attributeCluster, e.Cluster[:]...)
	}
	if e.Programmatic {
		f.set(attributeSerialized, 1)
	}
	return f
}

func (f *function) set(id uint32, value ...uint32) {
	a := &f.attributes[f.config.count]
	a.id = id
	copy(a.value[:], value)
	f.config.count++
}

// module finds kernels of one image by name.
type module map[string]op.Kernel

func (m module) Kernel(name string) (op.Kernel, error) {
	k, ok := m[name]
	if !ok {
		return 0, fmt.Errorf("the image has no kernel %s (run `atlasc build`)", name)
	}
	return k, nil
}

// load loads the units of an image and prepares its kernels. What was loaded before an error stays until the device closes.
func (d *Device) load(file []byte) (module, error) {
	i, err := image.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%w (run `atlasc build`)", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	units := make(map[string]uintptr, len(i.Units))
	for _, u := range i.Units {
		var handle uintptr
		if r := d.call(cuModuleLoadData, uintptr(unsafe.Pointer(&handle)), uintptr(unsafe.Pointer(unsafe.SliceData(u.Code)))); r != 0 {
			return nil, d.driver.failure(r, "load unit %s on compute capability %d.%d", u.Name, d.properties.Major, d.properties.Minor)
		}
		d.modules = append(d.modules, handle)
		units[u.Name] = handle
	}
	m := make(module, len(i.Entries))
	all := append([]*function(nil), *d.functions.Load()...)
	for _, e := range i.Entries {
		f := newFunction(e)
		if err := d.prepare(f, units[e.Unit], e); err != nil {
			return nil, err
		}
		all = append(all, f)
		m[e.Name] = op.Kernel(len(all)) // zero is no kernel
	}
	d.functions.Store(&all)
	return m, nil
}

// function is what k stands for.
func (d *Device) function(k op.Kernel) *function { return (*d.functions.Load())[k-1] }

// prepare finds f in its unit and checks that its block fits this GPU.
func (d *Device) prepare(f *function, unit uintptr, e image.Entry) error {
	name := append([]byte(e.Name), 0)
	if r := d.call(cuModuleGetFunction, uintptr(unsafe.Pointer(&f.handle)), unit, uintptr(unsafe.Pointer(&name[0]))); r != 0 {
		return d.driver.failure(r, "find kernel %s in unit %s", e.Name, e.Unit)
	}
	var threads, registers int32
	if r := d.call(cuFuncGetAttribute, uintptr(unsafe.Pointer(&threads)), functionMaxThreads, f.handle); r != 0 {
		return d.driver.failure(r, "ask how many threads kernel %s can have", e.Name)
	}
	if r := d.call(cuFuncGetAttribute, uintptr(unsafe.Pointer(&registers)), functionRegisters, f.handle); r != 0 {
		return d.driver.failure(r, "ask how many registers kernel %s has", e.Name)
	}
	if block := e.Block[0] * e.Block[1] * e.Block[2]; block > uint32(threads) {
		return fmt.Errorf("kernel %s has blocks of %d threads: with its %d registers a thread, at most %d fit", e.Name, block, registers, threads)
	}
	if r := d.call(cuFuncSetAttribute, f.handle, functionDynamicShared, uintptr(e.SharedBytes)); r != 0 {
		return d.driver.failure(r, "give kernel %s %d bytes of dynamic shared memory, where a block has %d in all",
			e.Name, e.SharedBytes, d.properties.SharedPerBlock)
	}
	// A multiprocessor changes its split between shared memory and cache only when it is idle. Kernels with the same split can run beside
	// each other.
	if !e.L1 {
		if r := d.call(cuFuncSetAttribute, f.handle, functionSharedPercent, 100); r != 0 {
			return d.driver.failure(r, "let kernel %s share all memory of a multiprocessor", e.Name)
		}
	}
	if e.Cluster[0]*e.Cluster[1]*e.Cluster[2] > portableClusterBlocks {
		if r := d.call(cuFuncSetAttribute, f.handle, functionNonPortableSize, 1); r != 0 {
			return d.driver.failure(r, "launch kernel %s in clusters of %v blocks", e.Name, e.Cluster)
		}
	}
	return nil
}
