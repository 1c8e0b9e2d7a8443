package host_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

func TestBuffersAreAlignedAndZeroed(t *testing.T) {
	d := host.New(0)
	for _, size := range []int64{0, 1, 63, 64, 65, 1 << 20} {
		p, err := d.Alloc(size)
		if err != nil || p == 0 || p%host.Align != 0 {
			t.Fatalf("Alloc(%d): got %#x, %v, want an address that is a multiple of %d", size, p, err, host.Align)
		}
		got := bytes.Repeat([]byte{1}, int(size))
		if err := d.CopyOut(got, p); err != nil || !bytes.Equal(got, make([]byte, size)) {
			t.Errorf("Alloc(%d): memory is not zeroed (%v)", size, err)
		}
	}
}

func TestMemoryIsCounted(t *testing.T) {
	d := host.New(1000)
	p, err := d.Alloc(600)
	if err != nil {
		t.Fatal(err)
	}
	if free, total := d.Memory(); free != 400 || total != 1000 {
		t.Errorf("after Alloc(600): got %d of %d free, want 400 of 1000", free, total)
	}
	if _, err := d.Alloc(401); err == nil || !strings.Contains(err.Error(), "400 of 1000 are free") {
		t.Errorf("Alloc(401): got %v, want an error that says what is free", err)
	}
	if _, err := d.Alloc(-1); err == nil {
		t.Error("Alloc(-1): got no error")
	}
	d.Free(p)
	d.Free(0)
	if free, _ := d.Memory(); free != 1000 {
		t.Errorf("after Free: got %d free, want 1000", free)
	}
}

func TestCopiesStayInsideOneBuffer(t *testing.T) {
	d := host.New(0)
	p, _ := d.Alloc(10)
	cases := []struct {
		name string
		at   op.Ptr
		n    int
		ok   bool
	}{
		{"all", p, 10, true},
		{"middle", p + 3, 4, true},
		{"nothing", 0, 0, true},
		{"one too many", p, 11, false},
		{"past the end", p + 10, 1, false},
		{"before", p - 1, 2, false},
		{"zero", 0, 1, false},
		{"wraps", ^op.Ptr(0), 4, false},
	}
	for _, c := range cases {
		in := d.CopyIn(c.at, make([]byte, c.n))
		out := d.CopyOut(make([]byte, c.n), c.at)
		if (in == nil) != c.ok || (out == nil) != c.ok {
			t.Errorf("%s: CopyIn gave %v, CopyOut %v, want success %v", c.name, in, out, c.ok)
		}
	}
}

func TestStreamKeepsItsFirstError(t *testing.T) {
	d := host.New(0)
	s, err := d.Stream(128)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if p := s.Scratch(128); p == 0 || p != s.Scratch(1) {
		t.Errorf("Scratch within the limit: got %#x", p)
	}
	p, _ := d.Alloc(3)
	s.Write(p, []byte("abc"))
	got := make([]byte, 3)
	s.Read(got, p)
	if err := s.Sync(); err != nil || string(got) != "abc" {
		t.Errorf("Write and Read: got %q, %v", got, err)
	}
	s.Scratch(129)
	s.Launch(1, op.Grid{X: 1, Y: 1, Z: 1})
	s.Write(1, []byte("x"))
	if err := s.Sync(); err == nil || !strings.Contains(err.Error(), "129 bytes") {
		t.Errorf("Sync: got %v, want the first error", err)
	}
	if err := s.Sync(); err != nil {
		t.Errorf("second Sync: got %v, want none", err)
	}
}

func TestManyGoroutines(t *testing.T) {
	d := host.New(0)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				p, err := d.Alloc(100)
				if err != nil || d.CopyIn(p, make([]byte, 100)) != nil {
					t.Error("a buffer that was just allocated is not there")
				}
				d.Free(p)
			}
		})
	}
	group.Wait()
	if _, err := d.Load(nil); err == nil {
		t.Error("Load: got no error")
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestMailboxBringsInputsAndResults(t *testing.T) {
	d := host.New(1000)
	s, err := d.Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := d.Memory()
	box, err := host.NewMailbox(d, s, 4, 8)
	if err != nil {
		t.Fatal(err)
	}
	box.Send([]byte{1, 2, 3})
	sent := make([]byte, 3)
	if err := d.CopyOut(sent, box.Inputs()); err != nil || !bytes.Equal(sent, []byte{1, 2, 3}) {
		t.Errorf("inputs: got %v (error %v), want [1 2 3]", sent, err)
	}
	if err := d.CopyIn(box.Results(), []byte{4, 5, 6}); err != nil {
		t.Fatal(err)
	}
	posted := box.Post(2)
	if got, err := box.Wait(); posted != nil || err != nil || !bytes.Equal(got, []byte{4, 5}) {
		t.Errorf("results: got %v (errors %v, %v), want [4 5]", got, posted, err)
	}
	box.Send(make([]byte, 5)) // more than there is room for
	if err := box.Post(0); err == nil || s.Sync() == nil {
		t.Errorf("inputs past the end: got error %v, want one that the stream keeps", err)
	}
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	if free, _ := d.Memory(); free != before {
		t.Errorf("%d bytes are free, want %d", free, before)
	}
	if _, err := host.NewMailbox(d, s, 600, 600); err == nil {
		t.Error("more memory than there is was given")
	}
	if free, _ := d.Memory(); free != before {
		t.Errorf("after a failure %d bytes are free, want %d", free, before)
	}
}
