package cuda

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/device/cuda/image"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// fake is testdata/fake.c: a driver for machines without a GPU.
type fake struct {
	testing.TB
	path   string
	handle uintptr
}

// newFake builds a driver of the test's own.
func newFake(t testing.TB, flags ...string) fake {
	t.Helper()
	f := fake{TB: t, path: filepath.Join(t.TempDir(), "fake.so")}
	gcc := exec.Command("gcc", append(flags, "-Wall", "-Werror", "-fPIC", "-shared", "-pthread", "-o", f.path, "testdata/fake.c")...)
	if text, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, text)
	}
	var err error
	if f.handle, err = purego.Dlopen(f.path, purego.RTLD_NOW|purego.RTLD_LOCAL); err != nil {
		t.Fatal(err)
	}
	return f
}

// variable is the address of one of the fake's variables.
func (f fake) variable(name string) unsafe.Pointer {
	address, err := purego.Dlsym(f.handle, name)
	if err != nil {
		f.Fatal(err)
	}
	return pointer(op.Ptr(address))
}

func (f fake) set(name string, value int32) { *(*int32)(f.variable(name)) = value }

func (f fake) get(name string) int64 { return *(*int64)(f.variable(name)) }

// fail makes a function of the driver return code, once, after it has worked some times.
func (f fake) fail(function string, code, after int) {
	call, _ := purego.Dlsym(f.handle, "fake_fail")
	name := append([]byte(function), 0)
	purego.SyscallN(call, uintptr(unsafe.Pointer(&name[0])), uintptr(code), uintptr(after))
}

// calls counts the calls of a function so far.
func (f fake) calls(function string) int {
	call, _ := purego.Dlsym(f.handle, "fake_calls")
	name := append([]byte(function), 0)
	n, _, _ := purego.SyscallN(call, uintptr(unsafe.Pointer(&name[0])))
	return int(n)
}

// pointer reaches the fake's memory, which is this process's.
func pointer(p op.Ptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// mark is the argument block of the test kernels: test_mark adds value to a cell for each block, test_double doubles it.
type mark struct {
	out                    op.Ptr
	columns, planes, value uint32
	_                      uint32
}

// bench is a device with a stream and the test kernels.
type bench struct {
	*Device
	testing.TB
	stream              *Stream
	mark, double, fault op.Kernel
}

func testImage(code string) *image.Image {
	i := &image.Image{Units: []image.Unit{{Name: "marks", Code: []byte(code)}}}
	for _, name := range []string{"test_mark", "test_double", "test_fault"} {
		i.Entries = append(i.Entries, image.Entry{Name: name, Unit: "marks", Block: [3]uint32{32, 1, 1}})
	}
	return i
}

// fakeCode is what the fake takes for a cubin.
const fakeCode = "fake sm_90 test_mark test_double test_fault\x00"

func encode(t testing.TB, i *image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := i.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// start opens the fake and, when the test ends, checks that everything came back.
func start(t testing.TB) (bench, fake) {
	t.Helper()
	f := newFake(t)
	d, err := open(f.path, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, d, encode(t, testImage(fakeCode)))
	t.Cleanup(func() {
		if err := b.stream.Close(); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if n := f.get("fake_live"); n != 0 {
			t.Errorf("%d objects of the driver were not given back", n)
		}
		if n := f.get("fake_strangers"); n != 0 {
			t.Errorf("%d calls came from a thread without the context", n)
		}
	})
	return b, f
}

func newBench(t testing.TB, d *Device, file []byte) bench {
	t.Helper()
	m, err := d.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Stream(1 << 12)
	if err != nil {
		t.Fatal(err)
	}
	b := bench{Device: d, TB: t, stream: s.(*Stream)}
	for name, k := range map[string]*op.Kernel{"test_mark": &b.mark, "test_double": &b.double, "test_fault": &b.fault} {
		if *k, err = m.Kernel(name); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b bench) alloc(bytes int64) op.Ptr {
	b.Helper()
	p, err := b.Alloc(bytes)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

func (b bench) launch(k op.Kernel, out op.Ptr, g op.Grid, value uint32) {
	*(*mark)(b.stream.Args(unsafe.Sizeof(mark{}))) = mark{out: out, columns: g.X, planes: g.Y, value: value}
	b.stream.Launch(k, g)
}

// words reads n cells.
func (b bench) words(p op.Ptr, n int) []uint32 {
	b.Helper()
	words := make([]uint32, n)
	if err := b.CopyOut(unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 4*n), p); err != nil {
		b.Fatal(err)
	}
	return words
}

func (b bench) capture(step func()) device.Graph {
	b.Helper()
	g, err := b.Capture(b.stream, step)
	if err != nil {
		b.Fatal(err)
	}
	return g
}

func (b bench) mailbox(inputs, results int) *mailbox {
	b.Helper()
	m, err := b.Mailbox(b.stream, inputs, results)
	if err != nil {
		b.Fatal(err)
	}
	return m.(*mailbox)
}

// post posts a word.
func (b bench) post(m *mailbox) {
	b.Helper()
	if err := m.Post(4); err != nil {
		b.Fatal(err)
	}
}

// one is the grid of a single block.
var one = op.Grid{X: 1, Y: 1, Z: 1}

// wantError checks that err says what it should.
func wantError(t testing.TB, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got error %v, want one with %q", what, err, want)
	}
}
