package cpu

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

type mark struct {
	out                     op.Ptr
	columns, planes, value_ uint32
	_                       uint32
}

// compiler makes code for the processor of this program, which an emulator may be.
func compiler() string {
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	if path, err := exec.LookPath(machine + "-linux-gnu-gcc"); err == nil {
		return path
	}
	return "gcc"
}

// build compiles the pool and the test kernels into one image.
func build(t testing.TB) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "image.so")
	pool := filepath.Join("..", "..", "..", "kernels", "lib", "cpu", "pool.c")
	gcc := exec.Command(compiler(), "-std=gnu2x", "-O2", "-fPIC", "-shared", "-pthread", "-o", out, pool, "testdata/kernels.c")
	if text, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, text)
	}
	image, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

type bench struct {
	*Device
	stream       device.Stream
	mark, double op.Kernel
}

func start(t testing.TB, threads int) bench {
	t.Helper()
	d, err := New(threads)
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Load(build(t))
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Stream(1 << 12)
	if err != nil {
		t.Fatal(err)
	}
	b := bench{Device: d, stream: s}
	for name, k := range map[string]*op.Kernel{"test_mark": &b.mark, "test_double": &b.double} {
		if *k, err = m.Kernel(name); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b bench) launch(k op.Kernel, out op.Ptr, g op.Grid, value uint32) {
	*(*mark)(b.stream.Args(unsafe.Sizeof(mark{}))) = mark{out: out, columns: g.X, planes: g.Y, value_: value}
	b.stream.Launch(k, g)
}

func (b bench) words(p op.Ptr, n int) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(memory(p, 4*n)))), n)
}

func TestEveryBlockRunsOnceAndInOrder(t *testing.T) {
	for _, threads := range []int{1, 2, 5} {
		b := start(t, threads)
		cases := []op.Grid{{X: 1, Y: 1, Z: 1}, {X: 7, Y: 3, Z: 2}, {X: 1000, Y: 1, Z: 1}, {X: 1, Y: 1, Z: 513}}
		for _, g := range cases {
			n := int(g.X * g.Y * g.Z)
			p, err := b.Alloc(int64(4 * n))
			if err != nil {
				t.Fatal(err)
			}
			for range 40 {
				b.launch(b.mark, p, g, 1)
				b.launch(b.double, p, g, 0)
				b.launch(b.mark, p, g, 3)
				if err := b.stream.Sync(); err != nil {
					t.Fatal(err)
				}
				for i, w := range b.words(p, n) {
					if w != 5 {
						t.Fatalf("%d threads, grid %v, cell %d: got %d, want (0+1)*2+3 = 5", threads, g, i, w)
					}
				}
				b.stream.Write(p, make([]byte, 4*n))
			}
			b.Free(p)
		}
	}
}

// Many goroutines copy, after what was queued and before what comes.
func TestWriteAllKeepsTheOrderOfTheQueue(t *testing.T) {
	for _, threads := range []int{1, 3} {
		b := start(t, threads)
		grid := op.Grid{X: 3 * copyBytes / 4, Y: 1, Z: 1}
		n := int(grid.X)
		p, err := b.Alloc(int64(4 * n))
		if err != nil {
			t.Fatal(err)
		}
		b.launch(b.mark, p, grid, 7) // is overwritten
		from, pieces := make([]byte, 4*n), []device.Piece{{}}
		for at, size := 0, 4; at < len(from); at, size = at+size, 3*size {
			size = min(size, len(from)-at)
			from[at] = 1
			pieces = append(pieces, device.Piece{To: p + op.Ptr(at), From: from[at : at+size]})
		}
		b.stream.WriteAll(pieces)
		want := slices.Clone(unsafe.Slice((*uint32)(unsafe.Pointer(&from[0])), n))
		clear(from) // WriteAll needs it no more
		b.launch(b.mark, p, grid, 1)
		b.launch(b.double, p, grid, 0)
		if err := b.stream.Sync(); err != nil {
			t.Fatal(err)
		}
		for i, got := range b.words(p, n) {
			if got != 2*(want[i]+1) {
				t.Fatalf("%d threads, cell %d: got %d, want (%d+1)*2", threads, i, got, want[i])
			}
		}
	}
}

func TestReplayGivesWhatEagerGives(t *testing.T) {
	b := start(t, 2)
	grid := op.Grid{X: 100, Y: 2, Z: 1}
	p, _ := b.Alloc(800)
	g, err := b.Capture(b.stream, func() {
		b.launch(b.mark, p, grid, 1)
		b.launch(b.double, p, grid, 0)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.words(p, 200)[0]; got != 0 {
		t.Fatalf("capturing ran the step: cell 0 is %d", got)
	}
	want := uint32(0)
	for range 20 {
		b.launch(b.mark, p, grid, 1) // queued before the replay, so it must run before
		g.Replay(b.stream)
		want = (want + 2) * 2
	}
	got := make([]byte, 800)
	b.stream.Read(got, p)
	for i, w := range b.words(p, 200) {
		if w != want {
			t.Fatalf("cell %d: got %d, want %d", i, w, want)
		}
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
}

// Many steps are captured: each keeps its launches and their arguments, and no room for more.
func TestCapturedStepsTakeWhatTheyNeed(t *testing.T) {
	b := start(t, 1)
	p, _ := b.Alloc(4)
	for _, launches := range []int{0, 1, 100} {
		g, err := b.Capture(b.stream, func() {
			for range launches {
				b.launch(b.mark, p, op.Grid{X: 1, Y: 1, Z: 1}, 1)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if taken, most := len((*list)(g.(*graph)).memory), 4096+200*launches; taken > most {
			t.Errorf("%d launches take %d bytes, want %d at most", launches, taken, most)
		}
		before := b.words(p, 1)[0]
		g.Replay(b.stream)
		if err := b.stream.Sync(); err != nil {
			t.Fatal(err)
		}
		if got := b.words(p, 1)[0] - before; got != uint32(launches) {
			t.Errorf("a replay of %d launches ran %d", launches, got)
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLongListsRunInParts(t *testing.T) {
	b := start(t, 2)
	p, _ := b.Alloc(4)
	const launches = 3*listCommands + 5
	for range launches {
		b.launch(b.mark, p, op.Grid{X: 1, Y: 1, Z: 1}, 1)
	}
	if err := b.stream.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := b.words(p, 1)[0]; got != launches {
		t.Errorf("got %d, want %d", got, launches)
	}
}

func TestStreamKeepsTheFirstError(t *testing.T) {
	b := start(t, 1)
	first := errors.New("first")
	b.stream.Fail(first)
	b.stream.Fail(errors.New("second"))
	p, _ := b.Alloc(4)
	b.launch(b.mark, p, op.Grid{X: 1, Y: 1, Z: 1}, 1)
	if err := b.stream.Sync(); err != first {
		t.Errorf("got %v, want %v", err, first)
	}
	if got := b.words(p, 1)[0]; got != 0 {
		t.Errorf("a launch ran after an error: %d", got)
	}
	if err := b.stream.Sync(); err != nil {
		t.Errorf("the error stayed: %v", err)
	}
	b.stream.Scratch(1 << 20)
	if err := b.stream.Sync(); err == nil {
		t.Error("asking for more scratch than there is was no error")
	}
}

func TestLaunchAllocatesNothing(t *testing.T) {
	b := start(t, 1)
	p, _ := b.Alloc(4)
	if n := testing.AllocsPerRun(100, func() {
		b.launch(b.mark, p, op.Grid{X: 1, Y: 1, Z: 1}, 1)
		_ = b.stream.Sync()
	}); n != 0 {
		t.Errorf("%v allocations per launch, want 0", n)
	}
}

// The linker knows an image by its path: loading again must not give the first one.
func TestImagesStayApart(t *testing.T) {
	image := build(t)
	d, _ := New(1)
	var kernels []op.Kernel
	for range 4 {
		m, err := d.Load(image)
		if err != nil {
			t.Fatal(err)
		}
		k, err := m.Kernel("test_mark")
		if err != nil {
			t.Fatal(err)
		}
		kernels = append(kernels, k)
		runtime.GC()
	}
	for i, k := range kernels[1:] {
		if k == kernels[i] {
			t.Errorf("images %d and %d share an address: the linker gave the old one", i, i+1)
		}
	}
	if _, err := (module(0)).Kernel("no_such_kernel"); err == nil {
		t.Error("a kernel that is not there was found")
	}
}

// The dynamic linker keeps what went wrong for the thread that asked.
func TestMissingKernelsAreNamedOnEveryThread(t *testing.T) {
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 5000 {
				if _, err := module(0).Kernel("no_such_kernel"); !strings.Contains(err.Error(), "undefined symbol: no_such_kernel") {
					t.Errorf("got %v, want the linker's words", err)
					return
				}
			}
		})
	}
	group.Wait()
}

func TestLoadRefusesWhatIsNoImage(t *testing.T) {
	d, _ := New(1)
	if _, err := d.Load([]byte("not an object")); err == nil {
		t.Error("loaded nonsense")
	}
	if _, err := d.Stream(0); err == nil {
		t.Error("made a stream without an image")
	}
}

func BenchmarkEmptyLaunches(b *testing.B) {
	for _, threads := range []int{1, 2} {
		b.Run(map[int]string{1: "1 thread", 2: "2 threads"}[threads], func(b *testing.B) {
			d := start(b, threads)
			p, _ := d.Alloc(4096)
			for b.Loop() {
				for range 100 {
					d.launch(d.mark, p, op.Grid{X: 2, Y: 1, Z: 1}, 1)
				}
				_ = d.stream.Sync()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/launch")
		})
	}
}
