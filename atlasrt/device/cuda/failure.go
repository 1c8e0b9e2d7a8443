package cuda

import (
	"errors"
	"fmt"
	"unsafe"
)

// result is CUresult: what every function of the driver returns. Zero is success.
type result int32

// Results that say what to do (cuda.h, enum cudaError_enum).
const (
	outOfMemory        result = 2
	deviceUnavailable  result = 46
	noDevice           result = 100
	invalidImage       result = 200
	noBinaryForGPU     result = 209
	uncorrectableECC   result = 214
	unsupportedPTX     result = 222
	illegalAddress     result = 700
	outOfResources     result = 701
	deviceAssert       result = 710
	stackError         result = 714
	illegalInstruction result = 715
	misalignedAddress  result = 716
	invalidSpace       result = 717
	invalidCounter     result = 718
	launchFailed       result = 719
	systemNotReady     result = 802
	driverMismatch     result = 803
	compatNotSupported result = 804
)

// advice is what a user can do about r; empty where there is nothing to say.
func (r result) advice() string {
	switch r {
	case outOfMemory:
		return "see with nvidia-smi who else uses the device's memory, or plan for less"
	case deviceUnavailable:
		return "another process has the device for itself: end it, or allow several with nvidia-smi -c DEFAULT"
	case noDevice:
		return "see whether nvidia-smi lists one and what CUDA_VISIBLE_DEVICES says; start a container with --gpus all"
	case invalidImage, noBinaryForGPU, unsupportedPTX:
		return "the kernels are built for another GPU or for a newer driver: build for this one with `atlasc build`, or update the driver"
	case uncorrectableECC:
		return "the device's memory is damaged: reset it or replace it"
	case illegalAddress, deviceAssert, stackError, illegalInstruction, misalignedAddress, invalidSpace, invalidCounter, launchFailed:
		return "a kernel that was queued before went wrong and the device answers no more: start the program again; compute-sanitizer names the kernel"
	case outOfResources:
		return "the kernel's block needs more registers or shared memory than there are"
	case systemNotReady:
		return "start nvidia-fabricmanager, which this machine's GPUs need"
	case driverMismatch:
		return "the driver was updated under a running kernel module: restart the machine"
	case compatNotSupported:
		return "remove the CUDA compatibility package from the library path, or update the driver"
	}
	return ""
}

// failure says in words what did not work and why. r is not success.
func (d *driver) failure(r result, format string, args ...any) error {
	text := fmt.Sprintf("cannot "+format, args...) + ": " + d.text(cuGetErrorName, r)
	if meaning := d.text(cuGetErrorString, r); meaning != "" {
		text += ", " + meaning
	}
	if advice := r.advice(); advice != "" {
		text += " (" + advice + ")"
	}
	return errors.New(text)
}

// text asks the driver for its words about r.
func (d *driver) text(which symbol, r result) string {
	var address *byte
	if d.call(which, uintptr(r), uintptr(unsafe.Pointer(&address))) == 0 && address != nil {
		return goString(unsafe.Slice(address, textLimit))
	}
	if which == cuGetErrorName {
		return fmt.Sprintf("CUDA error %d", r)
	}
	return ""
}

// textLimit bounds names and texts that the driver gives.
const textLimit = 256

// goString is the text in b up to its zero.
func goString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
