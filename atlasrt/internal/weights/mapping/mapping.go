// Package mapping reads files through memory mappings without trusting them to stay as they are.
//
// Invariants: a mapping is read only. Where a file is truncated while it is mapped, touching the lost pages raises SIGBUS, which ends a
// process. So bytes of a mapping are read inside Guard or Copy, which turn that fault into an error.
package mapping

import (
	"fmt"
	"os"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"
)

// File is a regular file mapped into memory. Its methods may be called from several goroutines, Close only once and last.
type File struct {
	path  string
	bytes []byte
}

// Open maps the file. It refuses anything that is no regular file.
func Open(path string) (*File, error) {
	// A named pipe would block in open(2) until somebody writes to it.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		if target, linkErr := os.Readlink(path); linkErr == nil {
			err = fmt.Errorf("%s is a link to %s, which cannot be opened: %w", path, target, err)
		}
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file (%v)", path, info.Mode().Type())
	}
	if info.Size() == 0 { // mmap(2) refuses it
		return &File{path: path}, nil
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return &File{path: path, bytes: data}, nil
}

// Path is the name the file was opened by.
func (f *File) Path() string { return f.path }

// Bytes is the whole file. It must not be used after Close.
func (f *File) Bytes() []byte { return f.bytes }

// Discard gives back the memory of the pages that lie wholly inside part; they are read from the file again when touched. A slice that
// does not lie in the mapping is left alone.
func (f *File) Discard(part []byte) {
	if len(part) == 0 || len(part) > len(f.bytes) {
		return
	}
	base := uintptr(unsafe.Pointer(unsafe.SliceData(f.bytes)))
	first := uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	if first < base || first-base > uintptr(len(f.bytes)-len(part)) {
		return
	}
	page := uintptr(os.Getpagesize())
	start := (first - base + page - 1) / page * page
	end := (first - base + uintptr(len(part))) / page * page
	if start < end {
		// Where the kernel declines, only more memory is used.
		_ = unix.Madvise(f.bytes[start:end], unix.MADV_DONTNEED)
	}
}

// Close unmaps the file. Slices of it must not be touched any more.
func (f *File) Close() error {
	data := f.bytes
	f.bytes = nil
	if data == nil {
		return nil
	}
	return unix.Munmap(data)
}

// Copy copies len(src) bytes out of a mapping. It fails when the file was truncated or its device gave an error.
func Copy(dst, src []byte) error {
	if len(dst) < len(src) {
		return fmt.Errorf("copy %d bytes into a buffer of %d", len(src), len(dst))
	}
	return Guard(func() error { copy(dst, src); return nil })
}

// Guard runs read, which touches bytes of a mapping. It returns an error where a page could not be read; other panics go on. Only the
// calling goroutine is guarded.
func Guard(read func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(before)
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case interface { // runtime.Error of a fault, as debug.SetPanicOnFault describes it
			error
			Addr() uintptr
		}:
			err = fmt.Errorf("a page of a mapped file could not be read: was the file truncated or replaced while it was open? (%w)", fault)
		default:
			panic(fault)
		}
	}()
	return read()
}
