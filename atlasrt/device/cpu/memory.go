package cpu

import (
	"io/fs"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atlas-inference/atlas/atlasrt/device/cpu/cgroup"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// mapMemory takes zeroed pages outside the Go heap, huge ones where the system gives them.
func mapMemory(bytes int64) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err == nil && bytes >= hugePage {
		_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	}
	return b, err
}

// memory is the one place where a Ptr becomes a Go slice.
//
// Not inlined: go1.26's compiler fails on callers that copy a constant number of bytes.
//
//go:noinline
func memory(p op.Ptr, n int) []byte {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(pointer(p)), n)
}

// pointer turns an address into a pointer. The detour over the variable's own address tells vet that this is meant:
// the memory is not the Go heap's.
func pointer(p op.Ptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// systemMemory is the smaller of what proc/meminfo below root says and what control groups allow; zeros where neither can be read.
// limit is the control group's file, "" where the machine's memory is the limit.
func systemMemory(root fs.FS, bound cgroup.Memory) (free, total int64, limit string) {
	text, _ := fs.ReadFile(root, "proc/meminfo")
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "MemTotal:":
			total = kib << 10
		case "MemAvailable:":
			free = kib << 10
		}
	}
	if bound.From == "" || bound.Limit >= total && bound.Free >= free {
		return free, total, ""
	}
	return min(free, bound.Free), min(total, bound.Limit), bound.From
}
