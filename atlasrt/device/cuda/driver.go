package cuda

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// libraryName is the driver's shared object, which comes with the driver and not with the CUDA toolkit.
const libraryName = "libcuda.so.1"

// minimumDriver is the CUDA version whose compiler makes the kernels, as cuDriverGetVersion counts: 13.0.
const minimumDriver = 13000

// symbol is a function of the driver.
type symbol int

const (
	cuInit symbol = iota
	cuDriverGetVersion
	cuGetErrorName
	cuGetErrorString
	cuDeviceGetCount
	cuDeviceGet
	cuDeviceGetName
	cuDeviceGetAttribute
	cuDevicePrimaryCtxRetain
	cuDevicePrimaryCtxRelease
	cuCtxSetCurrent
	cuMemGetInfo
	cuMemAlloc
	cuMemFree
	cuMemHostAlloc
	cuMemFreeHost
	cuMemsetD8Async
	cuMemcpyHtoDAsync
	cuMemcpyDtoHAsync
	cuModuleLoadData
	cuModuleUnload
	cuModuleGetFunction
	cuFuncGetAttribute
	cuFuncSetAttribute
	cuStreamCreate
	cuStreamDestroy
	cuStreamSynchronize
	cuEventCreate
	cuEventDestroy
	cuEventRecord
	cuEventSynchronize
	cuLaunchKernelEx
	cuStreamBeginCapture
	cuStreamEndCapture
	cuGraphInstantiate
	cuGraphDestroy
	cuGraphExecDestroy
	cuGraphLaunch
	cuTensorMapEncodeTiled
	symbols // how many there are
)

// exported are the functions' names in the library: what cuda.h of CUDA 13 calls when a program calls the plain name.
var exported = [symbols]string{
	cuInit:                    "cuInit",
	cuDriverGetVersion:        "cuDriverGetVersion",
	cuGetErrorName:            "cuGetErrorName",
	cuGetErrorString:          "cuGetErrorString",
	cuDeviceGetCount:          "cuDeviceGetCount",
	cuDeviceGet:               "cuDeviceGet",
	cuDeviceGetName:           "cuDeviceGetName",
	cuDeviceGetAttribute:      "cuDeviceGetAttribute",
	cuDevicePrimaryCtxRetain:  "cuDevicePrimaryCtxRetain",
	cuDevicePrimaryCtxRelease: "cuDevicePrimaryCtxRelease_v2",
	cuCtxSetCurrent:           "cuCtxSetCurrent",
	cuMemGetInfo:              "cuMemGetInfo_v2",
	cuMemAlloc:                "cuMemAlloc_v2",
	cuMemFree:                 "cuMemFree_v2",
	cuMemHostAlloc:            "cuMemHostAlloc",
	cuMemFreeHost:             "cuMemFreeHost",
	cuMemsetD8Async:           "cuMemsetD8Async",
	cuMemcpyHtoDAsync:         "cuMemcpyHtoDAsync_v2",
	cuMemcpyDtoHAsync:         "cuMemcpyDtoHAsync_v2",
	cuModuleLoadData:          "cuModuleLoadData",
	cuModuleUnload:            "cuModuleUnload",
	cuModuleGetFunction:       "cuModuleGetFunction",
	cuFuncGetAttribute:        "cuFuncGetAttribute",
	cuFuncSetAttribute:        "cuFuncSetAttribute",
	cuStreamCreate:            "cuStreamCreate",
	cuStreamDestroy:           "cuStreamDestroy_v2",
	cuStreamSynchronize:       "cuStreamSynchronize",
	cuEventCreate:             "cuEventCreate",
	cuEventDestroy:            "cuEventDestroy_v2",
	cuEventRecord:             "cuEventRecord",
	cuEventSynchronize:        "cuEventSynchronize",
	cuLaunchKernelEx:          "cuLaunchKernelEx",
	cuStreamBeginCapture:      "cuStreamBeginCapture_v2",
	cuStreamEndCapture:        "cuStreamEndCapture",
	cuGraphInstantiate:        "cuGraphInstantiateWithFlags",
	cuGraphDestroy:            "cuGraphDestroy",
	cuGraphExecDestroy:        "cuGraphExecDestroy",
	cuGraphLaunch:             "cuGraphLaunch",
	cuTensorMapEncodeTiled:    "cuTensorMapEncodeTiled",
}

// driver is the loaded library.
type driver struct {
	entry [symbols]uintptr
}

// openDriver loads the library and finds all functions, so that none is missing later.
func openDriver(library string) (*driver, error) {
	runtime.LockOSThread() // which the linker keeps its errors for
	defer runtime.UnlockOSThread()
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("there is no NVIDIA driver here (install driver 580 or newer; start a container with --gpus all): %w", err)
	}
	d := new(driver)
	var missing []string
	for s, name := range exported {
		if d.entry[s], err = purego.Dlsym(handle, name); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("the NVIDIA driver lacks %s (install driver 580 or newer)", strings.Join(missing, ", "))
	}
	var version int32
	if r := d.call(cuDriverGetVersion, uintptr(unsafe.Pointer(&version))); r != 0 {
		return nil, d.failure(r, "ask for the driver's version")
	}
	if version < minimumDriver {
		return nil, fmt.Errorf("the NVIDIA driver is too old: it knows CUDA %s, the kernels are built with %s (install driver 580 or newer)",
			cudaVersion(version), cudaVersion(minimumDriver))
	}
	if r := d.call(cuInit, 0); r != 0 {
		return nil, d.failure(r, "start the NVIDIA driver")
	}
	return d, nil
}

// cudaVersion writes 13020 as 13.2.
func cudaVersion(v int32) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// call calls a function that needs no context.
//
// The directive moves what arguments point to from the stack to the heap, where it does not move during the call. Every function here
// that takes addresses as numbers has it.
//
//go:uintptrescapes
func (d *driver) call(f symbol, args ...uintptr) result {
	r, _, _ := purego.SyscallN(d.entry[f], args...)
	return result(int32(r))
}

// caller calls functions in one context, from any thread. One goroutine at a time may use it.
type caller struct {
	driver  *driver
	context [1]uintptr
	args    [12]uintptr // kept, so that a call allocates nothing
}

// call makes the context current on the thread that it runs on, and calls f there. A context belongs to a thread, and goroutines move
// between threads. Where the context is current already, the driver returns sooner than it takes to ask which thread this is.
//
// Arguments are numbers, or addresses outside the Go heap, or addresses of something on the heap that the caller keeps alive.
func (c *caller) call(f symbol, args ...uintptr) result {
	n := copy(c.args[:], args)
	runtime.LockOSThread()
	r, _, _ := purego.SyscallN(c.driver.entry[cuCtxSetCurrent], c.context[:]...)
	if r == 0 {
		r, _, _ = purego.SyscallN(c.driver.entry[f], c.args[:n]...)
	}
	runtime.UnlockOSThread()
	return result(int32(r))
}
