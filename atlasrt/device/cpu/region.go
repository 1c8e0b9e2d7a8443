package cpu

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Buffers of less than ownBytes share regions, so that small ones lie on huge pages as well. Where memory is virtual twice, as in a
// virtual machine, reading what no cache holds takes up to twice as long on pages of 4 KiB, and writing it up to five times as long.
const (
	hugePage    = 2 << 20
	regionBytes = 64 << 20 // pages that are never touched cost nothing
	ownBytes    = 16 << 20
	bufferAlign = 4 << 10 // of what Alloc returns: a page
)

// region is a mapping for buffers, which are taken from its front to its end. No byte is used twice, so all are zero at first.
type region struct {
	mapping []byte
	next    int // where the next buffer begins
	live    int // buffers that are in use
}

// newRegion has room for bytes, from the start of a huge page on.
func newRegion(bytes int) (*region, error) {
	m, err := mapMemory(int64(bytes) + hugePage)
	if err != nil {
		return nil, err
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(m)))
	return &region{mapping: m, next: int(-start & (hugePage - 1))}, nil
}

// take lends the next bytes, or nil where they have no room.
func (r *region) take(bytes int) []byte {
	if bytes > len(r.mapping)-r.next {
		return nil
	}
	b := r.mapping[r.next : r.next+bytes : r.next+bytes]
	r.next += bytes
	r.live++
	return b
}

// block is what Alloc took.
type block struct {
	bytes []byte
	from  *region
}

// memories are the buffers of a device, and the regions that they lie in.
type memories struct {
	blocks map[op.Ptr]block
	open   *region // whose room is not used up
}

func (m *memories) take(bytes int64) (op.Ptr, error) {
	size := int(max(bytes, 1)+bufferAlign-1) &^ (bufferAlign - 1)
	var b []byte
	from := m.open
	if size < ownBytes && from != nil {
		b = from.take(size)
	}
	if b == nil {
		room := size
		if size < ownBytes {
			room = regionBytes
		}
		var err error
		if from, err = newRegion(room); err != nil {
			return 0, err
		}
		b = from.take(size)
		if size < ownBytes {
			m.open = from
		}
	}
	p := op.Ptr(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	m.blocks[p] = block{b, from}
	return p, nil
}

// give returns a buffer's pages to the system, and its region's addresses with the last one.
func (m *memories) give(p op.Ptr) error {
	b, ok := m.blocks[p]
	if !ok {
		return nil
	}
	delete(m.blocks, p)
	b.from.live--
	if b.from.live > 0 {
		return unix.Madvise(b.bytes, unix.MADV_DONTNEED)
	}
	if m.open == b.from {
		m.open = nil
	}
	return unix.Munmap(b.from.mapping)
}

func (m *memories) close() error {
	var errs []error
	for p := range m.blocks {
		errs = append(errs, m.give(p))
	}
	return errors.Join(errs...)
}
