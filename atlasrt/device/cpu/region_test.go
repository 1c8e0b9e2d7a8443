package cpu

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// flagsAt are the flags of the mapping that holds an address, as the system prints them.
func flagsAt(t *testing.T, p op.Ptr) []string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skipf("mappings cannot be read: %v", err)
	}
	var begin, end uint64
	for line := range strings.Lines(string(text)) {
		if n, _ := fmt.Sscanf(line, "%x-%x ", &begin, &end); n == 2 {
			continue
		}
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && begin <= uint64(p) && uint64(p) < end {
			return strings.Fields(flags)
		}
	}
	t.Fatalf("no mapping holds %#x", p)
	return nil
}

func TestSmallBuffersShareHugePages(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skip("this kernel has no transparent huge pages")
	}
	d, err := New(1)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	pages := map[op.Ptr]int{}
	for _, size := range []int64{1, 100 << 10, 1 << 20, 3 << 20, 90 << 10, 0} {
		p, err := d.Alloc(size)
		if err != nil {
			t.Fatal(err)
		}
		if p%bufferAlign != 0 {
			t.Errorf("a buffer of %d bytes begins at %#x, not with a page", size, p)
		}
		if flags := flagsAt(t, p); !strings.Contains(strings.Join(flags, " "), "hg") {
			t.Errorf("the mapping of a buffer of %d bytes has the flags %v, without hg: nobody asked for huge pages", size, flags)
		}
		pages[p/hugePage]++
	}
	if len(pages) != 2 {
		t.Errorf("six buffers of 4.2 MiB begin in %d huge pages, want 2", len(pages))
	}
}

func TestBuffersAreZeroAndApart(t *testing.T) {
	d, err := New(1)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	type buffer struct {
		at   op.Ptr
		size int
		fill byte
	}
	var live []buffer
	sizes := []int{1, 4096, 4097, hugePage - 1, hugePage, hugePage + 1, ownBytes - bufferAlign, ownBytes, ownBytes + 1}
	for i := range 60 {
		b := buffer{size: sizes[i*7%len(sizes)], fill: byte(i + 1)}
		if b.at, err = d.Alloc(int64(b.size)); err != nil {
			t.Fatal(err)
		}
		m := memory(b.at, b.size)
		if len(bytes.Trim(m, "\x00")) > 0 {
			t.Fatalf("buffer %d of %d bytes is not zero", i, b.size)
		}
		for j := range m {
			m[j] = b.fill
		}
		if live = append(live, b); len(live) > 6 {
			gone := i % len(live)
			d.Free(live[gone].at)
			live = append(live[:gone], live[gone+1:]...)
		}
		for _, other := range live {
			if m := memory(other.at, other.size); m[0] != other.fill || m[len(m)-1] != other.fill {
				t.Fatalf("after %d buffers one of %d bytes has %d and %d at its ends, want %d", i+1, other.size, m[0], m[len(m)-1], other.fill)
			}
		}
	}
	for _, b := range live {
		d.Free(b.at)
	}
	d.Free(live[0].at) // is gone: nothing happens
	if d.memory.open != nil || len(d.memory.blocks) > 0 {
		t.Errorf("all buffers are freed, and the device still holds %d and the region %v", len(d.memory.blocks), d.memory.open != nil)
	}
}
