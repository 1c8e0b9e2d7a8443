// Package safetensors reads and writes the safetensors format: a JSON header and the bytes of named tensors.
//
// Invariants: every rule of the format's reference reader is checked before a tensor can be asked for, so a Tensor's
// bytes always lie inside the file and match its type and shape; each broken rule has its own error. What the reference
// lets pass and no writer makes is refused too: doubled names, control characters in names, more than eight dimensions.
package safetensors

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/mapping"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// Limits of a header. The first is the format's own.
const (
	maxHeaderBytes = 100_000_000
	maxTensors     = 1_000_000
	maxNameBytes   = 512
	maxDimensions  = 8
)

// The rules that a file can break. The names are those of the reference reader, but for the last four, which are ours.
var (
	ErrHeaderTooSmall           = errors.New("header too small: a file starts with 8 bytes of header length")
	ErrHeaderTooLarge           = errors.New("header too large: at most 100000000 bytes are allowed")
	ErrInvalidHeaderLength      = errors.New("invalid header length: the header ends after the file does (get the file again)")
	ErrInvalidHeader            = errors.New("invalid header: not UTF-8")
	ErrInvalidHeaderJSON        = errors.New("invalid header: not the JSON that the format asks for")
	ErrInvalidOffset            = errors.New("invalid offset: tensors must follow each other without hole or overlap")
	ErrTensorInvalidInfo        = errors.New("tensor size differs from its type and shape")
	ErrValidationOverflow       = errors.New("tensor size overflows")
	ErrMisalignedSlice          = errors.New("tensor ends inside a byte")
	ErrMetadataIncompleteBuffer = errors.New("the last tensor does not end where the file does: truncated, or trailing bytes")
	ErrDuplicate                = errors.New("name given twice")
	ErrTooManyTensors           = errors.New("more than 1000000 tensors")
	ErrName                     = errors.New("tensor name is longer than 512 bytes, has control characters or is not UTF-8")
	ErrRank                     = errors.New("more than 8 dimensions")
)

// File is an open safetensors file.
type File struct {
	mapped   *mapping.File
	data     []byte // what follows the header
	entries  []entry
	metadata map[string]string
}

// entry is one tensor of the header; its bytes are data[begin:end].
type entry struct {
	name       string
	kind       tensor.Type
	shape      []int64
	begin, end int64
}

// Open maps the file and checks its header. The error wraps one of the Err values, or the file system's error.
func Open(path string) (*File, error) {
	mapped, err := mapping.Open(path)
	if err != nil {
		return nil, err
	}
	f := &File{mapped: mapped}
	if err := mapping.Guard(f.read); err != nil {
		known := mapping.Guard(func() error { err = orElse(err, mapped.Bytes()); return nil })
		mapped.Close()
		return nil, fmt.Errorf("%s: %w", path, errors.Join(err, known))
	}
	return f, nil
}

// Path is the name the file was opened by.
func (f *File) Path() string { return f.mapped.Path() }

// Names lists the tensors in alphabetical order.
func (f *File) Names() []string {
	names := make([]string, len(f.entries))
	for i, e := range f.entries {
		names[i] = e.name
	}
	return names
}

// Metadata is the header's `__metadata__`, nil when it has none.
func (f *File) Metadata() map[string]string { return f.metadata }

// Tensor finds a tensor by name. Its bytes lie in the mapping: see mapping.Guard.
func (f *File) Tensor(name string) (tensor.Tensor, bool) {
	i, ok := slices.BinarySearchFunc(f.entries, name, func(e entry, name string) int { return cmp.Compare(e.name, name) })
	if !ok {
		return tensor.Tensor{}, false
	}
	e := f.entries[i]
	return tensor.Tensor{Info: tensor.Info{Name: e.name, Type: e.kind, Shape: e.shape}, Data: f.data[e.begin:e.end:e.end]}, true
}

// Release lets the memory of a tensor go that has been copied; it is read again when touched.
func (f *File) Release(t tensor.Tensor) { f.mapped.Discard(t.Data) }

// Close unmaps the file; its tensors must not be read any more.
func (f *File) Close() error { return f.mapped.Close() }

// read checks the file; it runs under mapping.Guard.
func (f *File) read() error {
	bytes := f.mapped.Bytes()
	header, err := headerOf(bytes)
	if err != nil {
		return err
	}
	f.data = bytes[8+len(header):]
	if f.entries, f.metadata, err = parseHeader(header); err != nil {
		return err
	}
	if err := checkPlacement(f.entries, int64(len(f.data))); err != nil {
		return err
	}
	slices.SortFunc(f.entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	for i := 1; i < len(f.entries); i++ {
		if f.entries[i].name == f.entries[i-1].name {
			return fmt.Errorf("tensor %q: %w", f.entries[i].name, ErrDuplicate)
		}
	}
	return nil
}

// headerOf finds the header's bytes, which start at byte 8 of the file.
func headerOf(file []byte) ([]byte, error) {
	if len(file) < 8 {
		return nil, fmt.Errorf("%w, this one has %d", ErrHeaderTooSmall, len(file))
	}
	n := binary.LittleEndian.Uint64(file)
	if n > maxHeaderBytes {
		return nil, fmt.Errorf("%w, this one says %d", ErrHeaderTooLarge, n)
	}
	if n > uint64(len(file)-8) {
		return nil, fmt.Errorf("%w: it has %d bytes, the file %d", ErrInvalidHeaderLength, n, len(file))
	}
	header := file[8 : 8+n]
	if !utf8.Valid(header) {
		return nil, ErrInvalidHeader
	}
	return header, nil
}

// checkPlacement sorts the tensors by offset and checks that they fill the data exactly.
func checkPlacement(entries []entry, size int64) error {
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), cmp.Compare(a.name, b.name))
	})
	position := int64(0)
	for _, e := range entries {
		if e.begin != position || e.end < e.begin {
			return fmt.Errorf("tensor %q at [%d, %d), wanted a start of %d: %w", e.name, e.begin, e.end, position, ErrInvalidOffset)
		}
		position = e.end
		want, err := e.kind.Bytes(e.shape)
		switch {
		case errors.Is(err, tensor.ErrPartial):
			return fmt.Errorf("tensor %q, %v %s: %w", e.name, e.kind, tensor.FormatShape(e.shape), ErrMisalignedSlice)
		case err != nil:
			return fmt.Errorf("tensor %q, %v %s: %w", e.name, e.kind, tensor.FormatShape(e.shape), ErrValidationOverflow)
		case want != e.end-e.begin:
			return fmt.Errorf("tensor %q, %v %s: %w: %d bytes given, %d needed",
				e.name, e.kind, tensor.FormatShape(e.shape), ErrTensorInvalidInfo, e.end-e.begin, want)
		}
	}
	if position > size {
		return fmt.Errorf("%w (tensors end at %d, the file has %d bytes of data: the download did not finish, or the file was cut; get it again)",
			ErrMetadataIncompleteBuffer, position, size)
	}
	if position < size {
		return fmt.Errorf("%w (tensors end at %d, the file has %d bytes of data)", ErrMetadataIncompleteBuffer, position, size)
	}
	return nil
}

// checkName says whether a tensor may be called so.
func checkName(name string) error {
	if len(name) > maxNameBytes {
		return fmt.Errorf("tensor %.40q…: %w", name, ErrName)
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Errorf("tensor %q: %w", name, ErrName)
	}
	return nil
}
