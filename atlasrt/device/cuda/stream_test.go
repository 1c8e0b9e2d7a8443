package cuda

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/mapping"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

func TestLaunchesAndCopiesRunInOrder(t *testing.T) {
	b, _ := start(t)
	for _, g := range []op.Grid{one, {X: 7, Y: 3, Z: 2}, {X: 1000, Y: 1, Z: 1}} {
		n := int(g.X * g.Y * g.Z)
		p := b.alloc(int64(4 * n))
		first := bytes.Repeat([]byte{1, 0, 0, 0}, n)
		b.stream.Write(p, first)
		clear(first) // Write needs it no more
		b.launch(b.mark, p, g, 2)
		b.launch(b.double, p, g, 0)
		got := make([]byte, 4*n)
		b.stream.Read(got, p)
		if want := bytes.Repeat([]byte{6, 0, 0, 0}, n); !bytes.Equal(got, want) {
			t.Errorf("grid %v: got %v, want (1+2)*2 everywhere", g, got)
		}
		if err := b.stream.Sync(); err != nil {
			t.Error(err)
		}
	}
}

// More is written than the staging memory holds, in pieces of all sizes, before anything runs.
func TestStagedBytesStayUntilTheyAreCopied(t *testing.T) {
	b, f := start(t)
	want := randomBytes(2*stagingChunks*chunkBytes + 12345)
	p := b.alloc(int64(len(want)))
	for at, size := 0, 1; at < len(want); at, size = at+size, 3*size {
		size = min(size, len(want)-at)
		b.stream.Write(p+op.Ptr(at), want[at:at+size])
	}
	waits := f.calls("cuEventSynchronize")
	got := make([]byte, len(want))
	b.stream.Read(got, p)
	if !bytes.Equal(got, want) {
		t.Error("the bytes came back changed")
	}
	if waits == 0 {
		t.Error("nothing waited: the staging memory was not used twice")
	}
	b.stream.Write(p, want[:10])
	if now := f.calls("cuEventSynchronize"); now != waits {
		t.Errorf("a small copy into free staging memory waited %d times", now-waits)
	}
}

// cut cuts from into pieces of all sizes, empty ones too, for memory at p.
func cut(p op.Ptr, from []byte) []device.Piece {
	var pieces []device.Piece
	for at, size := 0, 0; at < len(from); at, size = at+size, 3*size+1 {
		size = min(size, len(from)-at)
		pieces = append(pieces, device.Piece{To: p + op.Ptr(at), From: from[at : at+size]})
	}
	return pieces
}

// Many goroutines fill staging memory, between copies of one and launches, with more than it holds.
func TestWriteAllKeepsTheOrderOfTheQueue(t *testing.T) {
	b, f := start(t)
	want := randomBytes(2*stagingChunks*chunkBytes + 12345)
	p, q := b.alloc(int64(len(want))), b.alloc(chunkBytes/2)
	half := bytes.Repeat([]byte{^want[0]}, chunkBytes/2)
	for range 2 {
		b.stream.Write(q, half) // leaves a chunk half full
		from := bytes.Clone(want)
		b.stream.WriteAll(cut(p, from))
		clear(from) // WriteAll needs it no more
	}
	b.stream.WriteAll(nil)
	b.launch(b.mark, p, one, 1)
	b.launch(b.double, p, one, 0)
	binary.LittleEndian.PutUint32(want, 2*(binary.LittleEndian.Uint32(want)+1))
	tail := want[len(want)-chunkBytes:] // goes through a chunk that many goroutines have just filled
	clear(tail)
	b.stream.Write(p+op.Ptr(len(want)-len(tail)), tail)
	got := make([]byte, len(want))
	b.stream.Read(got, p)
	gotHalf := make([]byte, len(half))
	b.stream.Read(gotHalf, q)
	if err := b.stream.Sync(); err != nil || !bytes.Equal(got, want) || !bytes.Equal(gotHalf, half) {
		t.Errorf("the bytes came back changed (%v)", err)
	}
	for _, function := range []string{"cuEventRecord", "cuEventSynchronize", "cuMemcpyHtoDAsync_v2"} {
		for _, after := range []int{0, 1, 20} {
			f.fail(function, 2, after)
			b.stream.WriteAll(cut(p, want))
			wantError(t, function, b.stream.Sync(), fmt.Sprintf("cannot write %d bytes to the device: CUDA_ERROR_OUT_OF_MEMORY", len(want)))
		}
	}
	b.stream.WriteAll(cut(p, want))
	if b.stream.Read(got, p); !bytes.Equal(got, want) {
		t.Error("after errors, the bytes came back changed")
	}
}

// A page that cannot be read costs nothing but its write.
func TestWriteAllOfALostPage(t *testing.T) {
	b, _ := start(t)
	path := filepath.Join(t.TempDir(), "file")
	want := randomBytes(4 * chunkBytes)
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := mapping.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := os.Truncate(path, 2*chunkBytes); err != nil {
		t.Fatal(err)
	}
	p, got := b.alloc(4*chunkBytes), make([]byte, 4*chunkBytes)
	wantError(t, "lost", mapping.Guard(func() error {
		b.stream.WriteAll([]device.Piece{{To: p, From: file.Bytes()}})
		return nil
	}), "truncated")
	b.stream.WriteAll([]device.Piece{{To: p, From: want}})
	b.stream.Read(got, p)
	if err := b.stream.Sync(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("afterwards the bytes came back changed (%v)", err)
	}
}

func TestStreamKeepsTheFirstError(t *testing.T) {
	b, _ := start(t)
	first := errors.New("first")
	p := b.alloc(4)
	b.launch(b.mark, p, one, 1) // queued before, so it runs
	b.stream.Fail(first)
	b.stream.Fail(errors.New("second"))
	b.launch(b.mark, p, one, 1)
	b.stream.Write(p, []byte{9, 9, 9, 9})
	b.stream.WriteAll([]device.Piece{{To: p, From: []byte{9, 9, 9, 9}}})
	b.stream.Read([]byte{0, 0, 0, 0}, p)
	if err := b.stream.Sync(); err != first {
		t.Errorf("got %v, want %v", err, first)
	}
	if got := b.words(p, 1)[0]; got != 1 {
		t.Errorf("got %d, want 1: what comes after an error does not run", got)
	}
	if err := b.stream.Sync(); err != nil {
		t.Errorf("the error stayed: %v", err)
	}
	b.stream.Scratch(1 << 20)
	wantError(t, "scratch", b.stream.Sync(), "an operation asks for 1048576 bytes of scratch memory, the stream has 4096")
	if b.stream.Scratch(1<<12) == 0 {
		t.Error("there is no scratch memory")
	}
}

func TestErrorsNameTheKernel(t *testing.T) {
	b, f := start(t)
	p := b.alloc(4)
	b.launch(b.mark, p, op.Grid{X: 1, Y: 70000, Z: 1}, 1)
	wantError(t, "grid", b.stream.Sync(), "cannot launch kernel test_mark with a grid of 1×70000×1 blocks of [32 1 1] threads: CUDA error 1")
	f.fail("cuLaunchKernelEx", 701, 1)
	b.launch(b.mark, p, one, 1)
	b.launch(b.double, p, one, 1)
	b.launch(b.mark, p, one, 1)
	wantError(t, "resources", b.stream.Sync(), "cannot launch kernel test_double with a grid of 1×1×1 blocks of [32 1 1] threads: CUDA error 701 (the kernel's block needs")
	b.launch(b.mark, p, one, 1)
	if err := b.stream.Sync(); err != nil {
		t.Errorf("the stream is not usable after an error: %v", err)
	}
	launches := f.calls("cuLaunchKernelEx")
	b.launch(b.mark, p, op.Grid{X: 0, Y: 1, Z: 1}, 1)
	if err := b.stream.Sync(); err != nil || f.calls("cuLaunchKernelEx") != launches {
		t.Errorf("a grid without blocks was launched (error %v)", err)
	}
}

// A device that a kernel has broken must not look well again.
func TestAFaultStays(t *testing.T) {
	f := newFake(t)
	d, err := open(f.path, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, d, encode(t, testImage(fakeCode)))
	b.launch(b.fault, b.alloc(4), one, 0)
	for i := range 3 {
		err := b.stream.Sync()
		wantError(t, "a fault", err, "CUDA_ERROR_ILLEGAL_ADDRESS (a kernel that was queued before went wrong")
		if err == nil {
			t.Fatalf("Sync %d says that all is well", i)
		}
	}
	wantError(t, "closing", errors.Join(b.stream.Close(), d.Close()), "ILLEGAL_ADDRESS")
}

func TestWaitingTwiceAsksOnce(t *testing.T) {
	b, f := start(t)
	p := b.alloc(4)
	b.launch(b.mark, p, one, 1)
	b.stream.Read(make([]byte, 4), p)
	waits := f.calls("cuStreamSynchronize")
	if err := b.stream.Sync(); err != nil || f.calls("cuStreamSynchronize") != waits {
		t.Errorf("Sync after Read waited again (error %v)", err)
	}
}

func TestAStepAllocatesNothing(t *testing.T) {
	b, _ := start(t)
	p := b.alloc(4)
	g := b.capture(func() { b.launch(b.mark, p, one, 1) })
	from, to := make([]byte, 4), make([]byte, 4)
	cases := map[string]func(){
		"launch": func() { b.launch(b.mark, p, one, 1) },
		"replay": func() { g.Replay(b.stream) },
		"write":  func() { b.stream.Write(p, from) },
		"read":   func() { b.stream.Read(to, p) },
	}
	for name, step := range cases {
		if n := allocations(func() {
			step()
			_ = b.stream.Sync()
		}); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// allocations is how often f allocates, on average; with -race at the least of many times, for there a sync.Pool, where purego keeps arguments, forgets
// some at random.
func allocations(f func()) float64 {
	if !raceEnabled {
		return testing.AllocsPerRun(100, f)
	}
	least := math.Inf(1)
	for range 100 {
		least = min(least, testing.AllocsPerRun(1, f))
	}
	return least
}

func BenchmarkEmptyLaunch(bb *testing.B) {
	b, _ := start(bb)
	p := b.alloc(4)
	for bb.Loop() {
		for range 100 {
			b.launch(b.mark, p, one, 1)
		}
		_ = b.stream.Sync()
	}
	bb.ReportMetric(float64(bb.Elapsed().Nanoseconds())/float64(bb.N)/100, "ns/launch")
}
