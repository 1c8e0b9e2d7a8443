// Package image is the container that holds the compiled CUDA kernels of one hardware.
//
// It is three parts in one file, uncompressed:
//
//	atlas cuda image 1\n
//	{"units":[{"name":…,"bytes":…}],"entries":[…]}\n
//	zeros up to a multiple of 64, the first unit's cubin, zeros up to a multiple of 64, the second's, …
//
// The second line is JSON with the keys of Unit and Entry; units follow in its order. The same image always gives the
// same bytes. Nothing in a damaged file panics or allocates more than the file's size.
package image

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// magic is the first line of every image.
const magic = "atlas cuda image 1\n"

// align is where units start: the driver reads ELF headers where they lie.
const align = 64

// Limits of a launch that hold on every GPU (CUDA C++ Programming Guide, technical specifications per compute capability).
const (
	maxThreads      = 1024
	maxClusterSize  = 16
	maxSharedMemory = 1 << 20
	maxNameLength   = 256
)

// Image is compiled units and the kernels in them.
type Image struct {
	Units   []Unit  // cubins
	Entries []Entry // every kernel of the units
}

// Unit is one cubin: what nvcc makes of one source file.
type Unit struct {
	Name string // ASCII without spaces, once in an image
	Code []byte // an ELF file
}

// Entry is a kernel and how it is launched.
type Entry struct {
	Name         string    `json:"name"`                  // of the function in the cubin
	Unit         string    `json:"unit"`                  // that holds it
	Block        [3]uint32 `json:"block"`                 // threads in x, y and z
	SharedBytes  uint32    `json:"shared_bytes"`          // dynamic shared memory
	Cluster      [3]uint32 `json:"cluster,omitzero"`      // blocks of a cluster in x, y and z; zeros: no clusters
	Programmatic bool      `json:"programmatic,omitzero"` // may start before the launch ahead of it ends: the kernel waits by itself
	Cooperative  bool      `json:"cooperative,omitzero"`  // needs all of its blocks to run at the same time
	L1           bool      `json:"l1,omitzero"`           // a multiprocessor keeps what its blocks do not ask for as first-level cache
}

// contents is the second line of a file.
type contents struct {
	Units   []unitSize `json:"units"`
	Entries []Entry    `json:"entries"`
}

type unitSize struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
}

// Write writes i to w, unless something in it is wrong.
func (i *Image) Write(w io.Writer) error {
	if err := i.check(); err != nil {
		return err
	}
	c := contents{Units: []unitSize{}, Entries: append([]Entry{}, i.Entries...)}
	for _, u := range i.Units {
		c.Units = append(c.Units, unitSize{u.Name, len(u.Code)})
	}
	line, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("write a kernel image: %w", err)
	}
	var file bytes.Buffer
	file.WriteString(magic)
	file.Write(line)
	file.WriteByte('\n')
	for _, u := range i.Units {
		file.Write(make([]byte, padding(file.Len())))
		file.Write(u.Code)
	}
	if _, err := file.WriteTo(w); err != nil {
		return fmt.Errorf("write a kernel image: %w", err)
	}
	return nil
}

// Is tells whether a file is such an image, by its first line.
func Is(file []byte) bool { return bytes.HasPrefix(file, []byte(magic)) }

// padding is how many zeros take n to a multiple of align.
func padding(n int) int { return -n & (align - 1) }

// Read reads what Write wrote. The units' code lies in file.
func Read(file []byte) (*Image, error) {
	rest, ok := bytes.CutPrefix(file, []byte(magic))
	if !ok {
		return nil, errors.New("this is no image of CUDA kernels: its first line is not " + magic[:len(magic)-1])
	}
	line, _, ok := bytes.Cut(rest, []byte{'\n'})
	if !ok {
		return nil, errors.New("the kernel image ends in its list of contents")
	}
	var c contents
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return nil, fmt.Errorf("the kernel image has a damaged list of contents: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("the kernel image has something behind its list of contents")
	}
	i := &Image{Entries: append([]Entry(nil), c.Entries...)}
	at := len(magic) + len(line) + 1
	for _, u := range c.Units {
		at += padding(at)
		if u.Bytes < 0 || u.Bytes > len(file)-at {
			return nil, fmt.Errorf("the kernel image ends in unit %q", u.Name)
		}
		i.Units = append(i.Units, Unit{u.Name, file[at : at+u.Bytes : at+u.Bytes]})
		at += u.Bytes
	}
	if at != len(file) {
		return nil, fmt.Errorf("the kernel image has %d bytes behind its last unit", len(file)-at)
	}
	if err := i.check(); err != nil {
		return nil, err
	}
	return i, nil
}

// check finds kernels that no GPU could launch, and names that are missing or used twice.
func (i *Image) check() error {
	units := make(map[string]bool, len(i.Units))
	for _, u := range i.Units {
		if !isName(u.Name) || units[u.Name] {
			return fmt.Errorf("the kernel image names a unit %q: names are ASCII without spaces, each used once", u.Name)
		}
		if len(u.Code) == 0 {
			return fmt.Errorf("unit %s of the kernel image is empty", u.Name)
		}
		units[u.Name] = true
	}
	entries := make(map[string]bool, len(i.Entries))
	for _, e := range i.Entries {
		if !isName(e.Name) || entries[e.Name] {
			return fmt.Errorf("the kernel image names a kernel %q: names are ASCII without spaces, each used once", e.Name)
		}
		if !units[e.Unit] {
			return fmt.Errorf("kernel %s is in unit %q, which the kernel image has not", e.Name, e.Unit)
		}
		if err := e.check(); err != nil {
			return fmt.Errorf("kernel %s: %w", e.Name, err)
		}
		entries[e.Name] = true
	}
	return nil
}

func (e Entry) check() error {
	if n := volume(e.Block); n < 1 || n > maxThreads {
		return fmt.Errorf("a block has %v threads: at least 1 in each direction and at most %d in all", e.Block, maxThreads)
	}
	if n := volume(e.Cluster); e.Cluster != [3]uint32{} && (n < 1 || n > maxClusterSize) {
		return fmt.Errorf("a cluster has %v blocks: at least 1 in each direction and at most %d in all", e.Cluster, maxClusterSize)
	}
	if e.SharedBytes > maxSharedMemory {
		return fmt.Errorf("%d bytes of dynamic shared memory: at most %d", e.SharedBytes, maxSharedMemory)
	}
	return nil
}

// volume is the product of d; what is over any limit counts as maxThreads+1.
func volume(d [3]uint32) uint64 {
	n := uint64(1)
	for _, side := range d {
		n = min(n*uint64(min(side, maxThreads+1)), maxThreads+1)
	}
	return n
}

func isName(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= maxNameLength
}
