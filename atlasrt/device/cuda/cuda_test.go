package cuda

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/device/cuda/image"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

func TestOpenSaysWhatIsWrong(t *testing.T) {
	_, err := open(filepath.Join(t.TempDir(), "libcuda.so.1"), 0)
	wantError(t, "no library", err, "there is no NVIDIA driver here (install driver 580 or newer")

	f := newFake(t, "-DWITHOUT_GRAPHS")
	_, err = open(f.path, 0)
	wantError(t, "a function missing", err, "the NVIDIA driver lacks cuGraphLaunch (install driver 580 or newer)")

	f = newFake(t)
	cases := []struct {
		name    string
		prepare func()
		index   int
		want    string
	}{
		{"old driver", func() { f.set("fake_version", 12080) }, 0, "it knows CUDA 12.8, the kernels are built with 13.0"},
		{"no GPU", func() { f.fail("cuInit", 100, 0) }, 0, "see whether nvidia-smi lists one"},
		{"no GPU left", func() { f.set("fake_devices", 0) }, 0, "the NVIDIA driver sees no GPU (see whether"},
		{"index too high", func() {}, 1, "there is no GPU 1: this machine has 1, counted from 0"},
		{"negative index", func() {}, -1, "there is no GPU -1"},
		{"busy", func() { f.fail("cuDevicePrimaryCtxRetain", 46, 0) }, 0, "cannot start using GPU 0 (Fake GPU): CUDA error 46 (another process has"},
		{"full", func() { f.fail("cuDevicePrimaryCtxRetain", 2, 0) }, 0, "CUDA_ERROR_OUT_OF_MEMORY, the driver's words (see with nvidia-smi"},
		{"half updated", func() { f.fail("cuInit", 803, 0) }, 0, "restart the machine"},
		{"no stream", func() { f.fail("cuStreamCreate", 2, 0) }, 0, "cannot make a stream"},
		{"no pinned memory", func() { f.fail("cuMemHostAlloc", 2, 0) }, 0, "bytes of pinned memory"},
	}
	for _, c := range cases {
		f.set("fake_version", 13000)
		f.set("fake_devices", 1)
		c.prepare()
		d, err := open(f.path, c.index)
		wantError(t, c.name, err, c.want)
		if d != nil {
			t.Errorf("%s: got a device", c.name)
		}
	}
	if n := f.get("fake_live"); n != 0 {
		t.Errorf("%d objects of the driver were not given back", n)
	}
}

func TestPropertiesNameWhatRuns(t *testing.T) {
	b, _ := start(t)
	want := Properties{Name: "Fake GPU", Major: 9, Multiprocessors: 132, SharedPerBlock: 232448, SharedPerMultiprocessor: 233472, L2Bytes: 60 << 20}
	if got := b.Properties(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	cases := []struct {
		major, minor int
		want         string
	}{
		{9, 0, "sm_90 sm_90a"},
		{10, 3, "sm_100 sm_101 sm_102 sm_103 sm_103a"},
		{8, 6, "sm_80 sm_81 sm_82 sm_83 sm_84 sm_85 sm_86 sm_86a"},
	}
	for _, c := range cases {
		if got := strings.Join(Properties{Major: c.major, Minor: c.minor}.Features(), " "); got != c.want {
			t.Errorf("%d.%d: got %s, want %s", c.major, c.minor, got, c.want)
		}
	}
}

func TestMemoryIsZeroedAndCopied(t *testing.T) {
	b, f := start(t)
	for _, n := range []int{0, 1, 1000, chunkBytes, 3*stagingChunks*chunkBytes + 5} {
		p := b.alloc(int64(n))
		got := bytes.Repeat([]byte{1}, n)
		if err := b.CopyOut(got, p); err != nil {
			t.Fatal(err)
		}
		if i := bytes.IndexFunc(got, func(r rune) bool { return r != 0 }); i >= 0 {
			t.Errorf("%d bytes: byte %d is %d, want 0", n, i, got[i])
		}
		want := randomBytes(n)
		if err := b.CopyIn(p, want); err != nil {
			t.Fatal(err)
		}
		if err := b.CopyOut(got, p); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: they came back changed (error %v)", n, err)
		}
		b.Free(p)
		b.Free(p) // known no more
	}
	b.Free(0)
	_, err := b.Alloc(1 << 50)
	wantError(t, "too much", err, "cannot take 1125899906842624 bytes of memory, where 1000 of 2000 are free: CUDA_ERROR_OUT_OF_MEMORY")
	f.fail("cuMemsetD8Async", 2, 0)
	_, err = b.Alloc(10)
	wantError(t, "no zeros", err, "cannot clear 10 bytes of memory")
	f.fail("cuMemcpyHtoDAsync_v2", 2, 0)
	wantError(t, "copy in", b.CopyIn(b.alloc(10), make([]byte, 10)), "cannot write 10 bytes to the device")
	f.fail("cuMemcpyDtoHAsync_v2", 2, 0)
	wantError(t, "copy out", b.CopyOut(make([]byte, 10), b.alloc(10)), "cannot read 10 bytes from the device")
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// Contexts belong to threads and goroutines move: every call must bring its own. start checks that none was without.
func TestAnyGoroutineMayCall(t *testing.T) {
	b, _ := start(t)
	var wait sync.WaitGroup
	for i := range 16 {
		wait.Go(func() {
			want := bytes.Repeat([]byte{byte(i)}, 1000)
			got := make([]byte, len(want))
			s, err := b.Stream(0)
			if err != nil {
				t.Error(err)
				return
			}
			for range 20 {
				p, err := b.Alloc(int64(len(want)))
				if err != nil {
					t.Error(err)
				}
				s.Write(p, want)
				s.Read(got, p)
				if err := s.Sync(); err != nil || !bytes.Equal(got, want) {
					t.Errorf("goroutine %d: got %v… (error %v), want %v…", i, got[:3], err, want[:3])
				}
				b.Free(p)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	b, _ := start(t)
	cases := map[string]struct {
		change func(*image.Image)
		want   string
	}{
		"other GPU":     {func(i *image.Image) { i.Units[0].Code = []byte("fake sm_80 test_mark\x00") }, "cannot load unit marks on compute capability 9.0: CUDA error 209 (the kernels are built for another GPU"},
		"no cubin":      {func(i *image.Image) { i.Units[0].Code = []byte("nonsense\x00") }, "CUDA error 200 (the kernels are built for another GPU"},
		"kernel gone":   {func(i *image.Image) { i.Entries[0].Name = "test_gone" }, "cannot find kernel test_gone in unit marks"},
		"large block":   {func(i *image.Image) { i.Entries[0].Block = [3]uint32{1024, 1, 1} }, "kernel test_mark has blocks of 1024 threads: with its 128 registers a thread, at most 512 fit"},
		"shared memory": {func(i *image.Image) { i.Entries[0].SharedBytes = 300000 }, "give kernel test_mark 300000 bytes of dynamic shared memory, where a block has 232448"},
	}
	for name, c := range cases {
		i := testImage(fakeCode)
		c.change(i)
		_, err := b.Load(encode(t, i))
		wantError(t, name, err, c.want)
		wantError(t, name, err, "load kernels on Fake GPU: ")
	}
	_, err := b.Load([]byte("not an image"))
	wantError(t, "not an image", err, "run `atlasc build`")

	m, err := b.Load(encode(t, testImage(fakeCode)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Kernel("test_gone")
	wantError(t, "unknown kernel", err, "the image has no kernel test_gone (run `atlasc build`)")
	if k, err := m.Kernel("test_mark"); err != nil || k == 0 || k == b.mark {
		t.Errorf("a second image gave kernel %d and error %v, want one that is not 0 or the first image's %d", k, err, b.mark)
	}
}

func TestLaunchesSayWhatTheImageSays(t *testing.T) {
	b, f := start(t)
	cases := []struct {
		entry image.Entry
		want  [13]uint32 // grid, block, shared memory, cooperative, programmatic, cluster, percent of memory to share
	}{
		{image.Entry{Block: [3]uint32{64, 2, 1}}, [13]uint32{3, 2, 1, 64, 2, 1, 12: 100}},
		{image.Entry{Block: [3]uint32{32, 1, 1}, SharedBytes: 200000, Programmatic: true}, [13]uint32{3, 2, 1, 32, 1, 1, 200000, 0, 1, 12: 100}},
		{image.Entry{Block: [3]uint32{32, 1, 1}, Cooperative: true, Programmatic: true, Cluster: [3]uint32{3, 2, 2}},
			[13]uint32{3, 2, 1, 32, 1, 1, 0, 1, 1, 3, 2, 2, 100}},
		{image.Entry{Block: [3]uint32{32, 1, 1}, L1: true}, [13]uint32{3, 2, 1, 32, 1, 1}},
	}
	p := b.alloc(24)
	for _, c := range cases {
		i := testImage(fakeCode)
		c.entry.Name, c.entry.Unit = "test_mark", "marks"
		i.Entries[0] = c.entry
		m, err := b.Load(encode(t, i))
		if err != nil {
			t.Fatal(err)
		}
		k, _ := m.Kernel("test_mark")
		b.launch(k, p, op.Grid{X: 3, Y: 2, Z: 1}, 1)
		if err := b.stream.Sync(); err != nil {
			t.Fatal(err)
		}
		if got := *(*[13]uint32)(f.variable("fake_launch")); got != c.want {
			t.Errorf("%+v: got %v, want %v", c.entry, got, c.want)
		}
	}
	if got, want := b.words(p, 6), []uint32{4, 4, 4, 4, 4, 4}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The structs that the driver reads, as cuda.h of CUDA 13.0 lays them out.
func TestLayoutsAreTheDrivers(t *testing.T) {
	var c launchConfig
	var a launchAttribute
	cases := map[string][2]uintptr{
		"CUlaunchConfig":                {unsafe.Sizeof(c), 56},
		"CUlaunchConfig.blockDimX":      {unsafe.Offsetof(c.block), 12},
		"CUlaunchConfig.sharedMemBytes": {unsafe.Offsetof(c.sharedBytes), 24},
		"CUlaunchConfig.hStream":        {unsafe.Offsetof(c.stream), 32},
		"CUlaunchConfig.attrs":          {unsafe.Offsetof(c.attributes), 40},
		"CUlaunchConfig.numAttrs":       {unsafe.Offsetof(c.count), 48},
		"CUlaunchAttribute":             {unsafe.Sizeof(a), 72},
		"CUlaunchAttribute.value":       {unsafe.Offsetof(a.value), 8},
	}
	for name, c := range cases {
		if c[0] != c[1] {
			t.Errorf("%s: got %d, want %d", name, c[0], c[1])
		}
	}
}

// The dynamic linker keeps what went wrong for the thread that asked.
func TestNoLibraryIsNamedOnEveryThread(t *testing.T) {
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 200 {
				if _, err := openDriver("/no/such/libcuda.so.1"); !strings.Contains(err.Error(), "/no/such/libcuda.so.1") {
					t.Errorf("got %v, want an error that names the library", err)
					return
				}
			}
		})
	}
	group.Wait()
}
