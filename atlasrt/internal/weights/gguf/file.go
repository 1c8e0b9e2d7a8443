// Package gguf reads GGUF files, versions 2 and 3, little endian, whole or in parts: typed metadata and tensors in ggml's
// block formats.
//
// Invariants: everything a file says about itself is checked once, when it is opened, before a slice is made from it: counts and
// lengths against the bytes that are there, products for overflow, offsets for alignment, bounds and overlap. Memory
// grows with the file and never with a number inside it. Arrays stay in the mapping until they are asked for.
//
// Source: ggml's docs/gguf.md.
package gguf

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/filetype"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/mapping"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// Limits of a file. The format's own are 64 bytes of a tensor's name and four dimensions.
const (
	maxCount        = 1_000_000 // tensors, and keys
	maxStringBytes  = 1 << 28   // a whole tokenizer.json may lie in one
	maxKeyBytes     = 1 << 16   // the format's own
	maxNameBytes    = 64
	maxDimensions   = 4
	maxAlignment    = 1 << 30
	maxNesting      = 8 // arrays inside arrays, which are only skipped
	alignmentNormal = 32
)

// The ways a file can be wrong.
var (
	ErrMagic     = errors.New("not a GGUF file")
	ErrVersion   = errors.New("GGUF version is not 2 or 3, little endian")
	ErrTruncated = errors.New("the file ends early: the download did not finish, or the file was cut (get it again)")
	ErrCount     = errors.New("count is out of range")
	ErrString    = errors.New("string is too long")
	ErrKind      = errors.New("unknown type of a metadata value")
	ErrDuplicate = errors.New("name given twice")
	ErrAlignment = errors.New("general.alignment must be a power of two up to 2^30")
	ErrName      = errors.New("tensor name is empty, longer than 64 bytes, has control characters or is not UTF-8")
	ErrShape     = errors.New("shape is not of at most 4 dimensions, none negative, in whole blocks")
	ErrOverflow  = errors.New("tensor size overflows")
	ErrType      = errors.New("unsupported tensor type")
	ErrOffset    = errors.New("tensor data is unaligned or overlaps other data")
)

// File is an open GGUF file, with its further parts where it is split.
type File struct {
	Metadata
	mapped  *mapping.File
	tensors map[string]tensor.Tensor
	others  []*File // the parts after this one
}

// openOne maps one file and checks it.
func openOne(path string) (*File, error) {
	mapped, err := mapping.Open(path)
	if err != nil {
		return nil, err
	}
	f := &File{mapped: mapped}
	if err := mapping.Guard(f.read); err != nil {
		mapped.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Path is the name the file was opened by; that of the first part.
func (f *File) Path() string { return f.mapped.Path() }

// Names lists the tensors in alphabetical order.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.tensors)) }

// Tensor finds a tensor by its GGUF name. Its shape is row-major: [rows, columns], experts outermost. Its bytes lie in
// the mapping: see mapping.Guard.
func (f *File) Tensor(name string) (tensor.Tensor, bool) {
	t, ok := f.tensors[name]
	return t, ok
}

// Release lets the memory of a tensor go that has been copied; it is read again when touched.
func (f *File) Release(t tensor.Tensor) {
	f.mapped.Discard(t.Data)
	for _, other := range f.others {
		other.Release(t)
	}
}

// Bytes is the size of the file, all parts together.
func (f *File) Bytes() int64 {
	total := int64(len(f.mapped.Bytes()))
	for _, other := range f.others {
		total += other.Bytes()
	}
	return total
}

// Files is the number of files: 1, or the parts.
func (f *File) Files() int { return 1 + len(f.others) }

// Close unmaps the file; neither its tensors nor its metadata must be read any more.
func (f *File) Close() error {
	err := f.mapped.Close()
	for _, other := range f.others {
		err = errors.Join(err, other.Close())
	}
	return err
}

// read checks the file; it runs under mapping.Guard.
func (f *File) read() error {
	c := &cursor{bytes: f.mapped.Bytes()}
	if string(c.take(4)) != "GGUF" {
		if what := filetype.Describe(c.bytes[:min(filetype.BeginningBytes, len(c.bytes))]); what != "" {
			return fmt.Errorf("%w: it is %s", ErrMagic, what)
		}
		return ErrMagic
	}
	switch version := c.uint32(); {
	case c.err != nil:
		return c.err
	case version == 1:
		return fmt.Errorf("%w: it says 1, whose lengths have 32 bits (get a file that was made after October 2023)", ErrVersion)
	case version != 0 && version&0xffff == 0:
		return fmt.Errorf("%w: it says %#x, so it is big endian (convert it with gguf_convert_endian.py of llama.cpp)", ErrVersion, version)
	case version != 2 && version != 3:
		return fmt.Errorf("%w: it says %d", ErrVersion, version)
	}
	tensors, keys := c.uint64(), c.uint64()
	if c.err != nil {
		return c.err
	}
	if tensors > maxCount || keys > maxCount {
		return fmt.Errorf("%w: %d tensors, %d keys, at most %d of each are allowed", ErrCount, tensors, keys, maxCount)
	}
	if err := f.Metadata.read(c, int(keys)); err != nil {
		return err
	}
	alignment, err := f.alignment()
	if err != nil {
		return err
	}
	infos, err := readInfos(c, int(tensors))
	if err != nil {
		return err
	}
	// Without tensors the padding, and so the data, may be missing.
	start := min((uint64(c.position)+alignment-1)/alignment*alignment, uint64(len(c.bytes)))
	f.tensors, err = place(infos, c.bytes[start:], alignment)
	return err
}

func (f *File) alignment() (uint64, error) {
	n, err := f.Int("general.alignment")
	if errors.Is(err, ErrAbsent) {
		return alignmentNormal, nil
	}
	if err != nil {
		return 0, err
	}
	if n < 1 || n > maxAlignment || n&(n-1) != 0 {
		return 0, fmt.Errorf("%w: it is %d", ErrAlignment, n)
	}
	return uint64(n), nil
}

// placed is a tensor's description with where its bytes are said to lie.
type placed struct {
	tensor.Info
	offset, bytes uint64
}

func readInfos(c *cursor, count int) ([]placed, error) {
	const smallest = 8 + 1 + 4 + 4 + 8 // bytes of an info with a name of one byte and no dimension
	if count > c.left()/smallest {
		return nil, fmt.Errorf("%w: %d tensors do not fit into the %d bytes that are left", ErrCount, count, c.left())
	}
	infos := make([]placed, 0, count)
	for range count {
		info, err := readInfo(c)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

func readInfo(c *cursor) (placed, error) {
	name := c.string(maxNameBytes)
	rank := c.uint32()
	if c.err != nil {
		return placed{}, fmt.Errorf("tensor description %q: %w", name, c.err)
	}
	if !validName(name) {
		return placed{}, fmt.Errorf("tensor %q: %w", name, ErrName)
	}
	if rank > maxDimensions {
		return placed{}, fmt.Errorf("tensor %s has %d dimensions: %w", name, rank, ErrShape)
	}
	shape := make([]int64, rank)
	for i := range shape {
		d := int64(c.uint64())
		if d < 0 && c.err == nil {
			return placed{}, fmt.Errorf("tensor %s, dimension %d is %d: %w", name, i, d, ErrShape)
		}
		shape[len(shape)-1-i] = d // the file has the fastest first
	}
	id, offset := c.uint32(), c.uint64()
	if c.err != nil {
		return placed{}, fmt.Errorf("tensor %s: %w", name, c.err)
	}
	kind, ok := types[id]
	if !ok {
		return placed{}, fmt.Errorf("tensor %s: %w %s: use a file of Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, IQ4_NL, BF16, F16 or F32",
			name, ErrType, typeName(id))
	}
	info := tensor.Info{Name: name, Type: kind, Shape: shape}
	size, err := kind.Bytes(shape)
	switch {
	case errors.Is(err, tensor.ErrPartial):
		return placed{}, fmt.Errorf("tensor %v: rows do not fill whole blocks: %w", info, ErrShape)
	case err != nil:
		return placed{}, fmt.Errorf("tensor %v: %w", info, ErrOverflow)
	}
	return placed{info, offset, uint64(size)}, nil
}

// place gives every tensor its bytes. This is the only place where a file's offsets become slices.
func place(infos []placed, data []byte, alignment uint64) (map[string]tensor.Tensor, error) {
	slices.SortFunc(infos, func(a, b placed) int { return cmp.Compare(a.offset, b.offset) })
	tensors := make(map[string]tensor.Tensor, len(infos))
	end, size := uint64(0), uint64(len(data))
	for _, info := range infos {
		if info.offset%alignment != 0 || info.offset < end || info.offset+info.bytes < info.offset {
			return nil, fmt.Errorf("tensor %v at offset %d with %d bytes, the tensor before ends at %d: %w",
				info.Info, info.offset, info.bytes, end, ErrOffset)
		}
		if info.offset > size || info.bytes > size-info.offset {
			last := infos[len(infos)-1]
			return nil, fmt.Errorf("tensor %v ends at byte %d of the data, %d bytes are there, and the last tensor ends at %d: %w",
				info.Info, info.offset+info.bytes, size, last.offset+last.bytes, ErrTruncated)
		}
		end = info.offset + info.bytes
		if _, ok := tensors[info.Name]; ok {
			return nil, fmt.Errorf("tensor %s: %w", info.Name, ErrDuplicate)
		}
		tensors[info.Name] = tensor.Tensor{Info: info.Info, Data: data[info.offset:end:end]}
	}
	return tensors, nil
}
