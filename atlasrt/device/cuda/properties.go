package cuda

import (
	"fmt"
	"unsafe"
)

// Properties describe a GPU.
type Properties struct {
	Name                    string // "NVIDIA H200"
	Major, Minor            int    // compute capability: 9.0 is Major 9, Minor 0
	Multiprocessors         int    // how many there are
	SharedPerBlock          int    // bytes of shared memory that one block can have
	SharedPerMultiprocessor int    // bytes of shared memory that all blocks on one multiprocessor have together
	L2Bytes                 int    // size of the second-level cache
}

// Features names the targets whose code runs here: "sm_90" and "sm_90a" for compute capability 9.0. Code for sm_XY also runs on later
// GPUs of the same X; code for sm_XYa runs on that compute capability only (CUDA Binary Utilities, compatibility).
func (p Properties) Features() []string {
	var names []string
	for minor := 0; minor <= p.Minor; minor++ {
		names = append(names, fmt.Sprintf("sm_%d%d", p.Major, minor))
	}
	return append(names, fmt.Sprintf("sm_%d%da", p.Major, p.Minor))
}

// Probe reads the properties of the GPU with this index without taking any of its memory.
func Probe(index int) (Properties, error) {
	d, err := openDriver(libraryName)
	if err != nil {
		return Properties{}, err
	}
	_, p, err := d.find(index)
	return p, err
}

// Numbers of enum CUdevice_attribute.
const (
	multiprocessorCount           = 16
	l2CacheSize                   = 38
	computeCapabilityMajor        = 75
	computeCapabilityMinor        = 76
	sharedMemoryPerMultiprocessor = 81
	sharedMemoryPerBlockOptIn     = 97
)

// find is the driver's handle of the device with this index, and what it is.
func (d *driver) find(index int) (handle int32, p Properties, err error) {
	var count int32
	if r := d.call(cuDeviceGetCount, uintptr(unsafe.Pointer(&count))); r != 0 {
		return 0, p, d.failure(r, "count GPUs")
	}
	if count == 0 {
		return 0, p, fmt.Errorf("the NVIDIA driver sees no GPU (%s)", noDevice.advice())
	}
	if index < 0 || index >= int(count) {
		return 0, p, fmt.Errorf("there is no GPU %d: this machine has %d, counted from 0 (CUDA_VISIBLE_DEVICES hides others)", index, count)
	}
	if r := d.call(cuDeviceGet, uintptr(unsafe.Pointer(&handle)), uintptr(index)); r != 0 {
		return 0, p, d.failure(r, "find GPU %d", index)
	}
	var name [textLimit]byte
	if r := d.call(cuDeviceGetName, uintptr(unsafe.Pointer(&name)), uintptr(len(name)), uintptr(handle)); r != 0 {
		return 0, p, d.failure(r, "read the name of GPU %d", index)
	}
	p.Name = goString(name[:])
	fields := []struct {
		attribute uintptr
		to        *int
	}{
		{multiprocessorCount, &p.Multiprocessors},
		{l2CacheSize, &p.L2Bytes},
		{computeCapabilityMajor, &p.Major},
		{computeCapabilityMinor, &p.Minor},
		{sharedMemoryPerMultiprocessor, &p.SharedPerMultiprocessor},
		{sharedMemoryPerBlockOptIn, &p.SharedPerBlock},
	}
	for _, f := range fields {
		var value int32
		if r := d.call(cuDeviceGetAttribute, uintptr(unsafe.Pointer(&value)), f.attribute, uintptr(handle)); r != 0 {
			return 0, p, d.failure(r, "read attribute %d of GPU %d", f.attribute, index)
		}
		*f.to = int(value)
	}
	return handle, p, nil
}
