package cuda

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/device/cuda/image"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// gpu opens the first real GPU and loads the test kernels, built on the spot; without either the test is skipped.
func gpu(t testing.TB) bench {
	t.Helper()
	d, err := Open(0)
	if err != nil {
		t.Skip(err)
	}
	file := encode(t, gpuImage(t, d.Properties()))
	b := newBench(t, d, file)
	t.Logf("%+v", d.Properties())
	return b
}

func gpuImage(t testing.TB, p Properties) *image.Image {
	t.Helper()
	nvcc, err := exec.LookPath("nvcc")
	if err != nil {
		t.Skip("there is a GPU, but no nvcc that builds the test kernels")
	}
	cubin := filepath.Join(t.TempDir(), "kernels.cubin")
	features := p.Features()
	arch := features[len(features)-1]
	if text, err := exec.Command(nvcc, "-arch="+arch, "-cubin", "-o", cubin, "testdata/kernels.cu").CombinedOutput(); err != nil {
		t.Fatalf("nvcc: %v\n%s", err, text)
	}
	code, err := os.ReadFile(cubin)
	if err != nil {
		t.Fatal(err)
	}
	i := testImage(string(code))
	for k := range i.Entries[:2] {
		i.Entries[k].Programmatic = p.Major >= 9
	}
	return i
}

func (b bench) close() {
	b.Helper()
	if err := b.stream.Close(); err != nil {
		b.Error(err)
	}
	if err := b.Close(); err != nil {
		b.Error(err)
	}
}

func TestGPULaunchesCopiesAndReplays(t *testing.T) {
	b := gpu(t)
	defer b.close()
	grid := op.Grid{X: 1000, Y: 3, Z: 2}
	p := b.alloc(24000)
	step := func() {
		b.launch(b.mark, p, grid, 3)
		b.launch(b.double, p, grid, 0)
	}
	g := b.capture(step)
	want := uint32(0)
	for range 10 {
		step()
		g.Replay(b.stream)
		want = ((want+3)*2 + 3) * 2
	}
	if err := b.stream.Sync(); err != nil {
		t.Fatal(err)
	}
	for i, w := range b.words(p, 6000) {
		if w != want {
			t.Fatalf("cell %d: got %d, want %d", i, w, want)
		}
	}
	if _, err := b.Capture(b.stream, func() { b.stream.call(cuStreamSynchronize, b.stream.handle) }); err == nil {
		t.Error("waiting within a captured step was no error")
	} else {
		t.Log(err)
	}
	step()
	if err := b.stream.Sync(); err != nil {
		t.Errorf("the stream is not usable after a failed capture: %v", err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// Results come while what was queued behind them still runs.
func TestGPUResultsComeEarly(t *testing.T) {
	b := gpu(t)
	defer b.close()
	grid := op.Grid{X: 1 << 16, Y: 64, Z: 1}
	q := b.alloc(4 << 22)
	box := b.mailbox(4, 4)
	*box.word() = 0
	for i := range 20 {
		begin := time.Now()
		b.launch(b.mark, box.Results(), one, 1)
		b.post(box)
		for range 20 {
			b.launch(b.mark, q, grid, 1)
		}
		queued := time.Since(begin)
		got, err := box.Wait()
		came := time.Since(begin)
		if err != nil || got[0] != byte(i+1) {
			t.Fatalf("round %d: got %v (error %v), want %d", i, got, err, i+1)
		}
		if err := b.stream.Sync(); err != nil {
			t.Fatal(err)
		}
		if ended := time.Since(begin); came > ended/2 {
			t.Errorf("round %d: queued after %v, the result came after %v, all ended after %v", i, queued, came, ended)
		} else if i == 19 {
			t.Logf("queued after %v, the result came after %v, all ended after %v", queued, came, ended)
		}
	}
	begin := time.Now()
	for range 1000 {
		b.post(box)
		if _, err := box.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("post and wait: %v", time.Since(begin)/1000)
	if err := box.Close(); err != nil {
		t.Error(err)
	}
}

func TestGPUMovesBytes(t *testing.T) {
	b := gpu(t)
	defer b.close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	want := randomBytes(256 << 20)
	free, total := b.Memory()
	p := b.alloc(int64(len(want)))
	if after, _ := b.Memory(); after >= free || total < free {
		t.Errorf("of %d bytes %d were free, after taking %d still %d", total, free, len(want), after)
	}
	got := make([]byte, len(want))
	b.stream.Read(got, p)
	if !bytes.Equal(got, make([]byte, len(want))) {
		t.Error("memory is not zeroed")
	}
	begin := time.Now()
	b.stream.Write(p, want)
	if err := b.stream.Sync(); err != nil {
		t.Fatal(err)
	}
	written := time.Now()
	b.stream.Read(got, p)
	t.Logf("%d MiB written in %v, read in %v", len(want)>>20, written.Sub(begin), time.Since(written))
	if err := b.stream.Sync(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the bytes came back changed (error %v)", err)
	}
	_, err := b.Alloc(total + 1)
	wantError(t, "too much", err, "OUT_OF_MEMORY")
}

// Clusters of any size, shared memory over 48 KiB and cooperative launches need permissions of their own.
func TestGPULaunchAttributes(t *testing.T) {
	b := gpu(t)
	defer b.close()
	p := b.alloc(4 * 32)
	cases := []struct {
		cluster     [3]uint32
		cooperative bool
	}{{cluster: [3]uint32{}}, {cluster: [3]uint32{4, 1, 1}}, {cluster: [3]uint32{16, 1, 1}}, {cooperative: true}}
	for _, c := range cases {
		if c.cluster[0] > 0 && b.Properties().Major < 9 {
			continue
		}
		i := gpuImage(t, b.Properties())
		i.Entries = []image.Entry{{Name: "test_cluster", Unit: "marks", Block: [3]uint32{32, 1, 1}, SharedBytes: 128 << 10, Cluster: c.cluster,
			Cooperative: c.cooperative}}
		if b.Properties().SharedPerBlock < 128<<10 {
			t.Skipf("blocks have %d bytes of shared memory", b.Properties().SharedPerBlock)
		}
		m, err := b.Load(encode(t, i))
		if err != nil {
			t.Fatal(err)
		}
		k, _ := m.Kernel("test_cluster")
		b.stream.Write(p, make([]byte, 128))
		b.launch(k, p, op.Grid{X: 32, Y: 1, Z: 1}, 5)
		if err := b.stream.Sync(); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		for x, got := range b.words(p, 32) {
			if want := 5 + uint32(x)%max(1, c.cluster[0]); got != want {
				t.Errorf("%+v, block %d: got %d, want %d", c, x, got, want)
			}
		}
	}
}

func TestGPURefusesOtherCode(t *testing.T) {
	b := gpu(t)
	defer b.close()
	other := Properties{Major: 8, Minor: 0}
	if b.Properties().Major == 8 {
		other.Major = 9
	}
	nvcc, _ := exec.LookPath("nvcc")
	cubin := filepath.Join(t.TempDir(), "other.cubin")
	arch := fmt.Sprintf("-arch=sm_%d%d", other.Major, other.Minor)
	if text, err := exec.Command(nvcc, arch, "-cubin", "-o", cubin, "testdata/kernels.cu").CombinedOutput(); err != nil {
		t.Fatalf("nvcc: %v\n%s", err, text)
	}
	code, _ := os.ReadFile(cubin)
	_, err := b.Load(encode(t, testImage(string(code))))
	wantError(t, "another GPU's code", err, "the kernels are built for another GPU")
	_, err = b.Load(encode(t, testImage("nonsense that is no cubin at all, but long enough for a header of an ELF file\x00")))
	wantError(t, "no code", err, "the kernels are built for another GPU")
	t.Log(err)
	_, err = Open(99)
	wantError(t, "no such GPU", err, "there is no GPU 99")
}

func BenchmarkGPULaunch(bb *testing.B) {
	b := gpu(bb)
	defer b.close()
	p := b.alloc(4)
	launches := func() {
		for range 400 {
			b.launch(b.mark, p, one, 1)
		}
	}
	g := b.capture(launches)
	cases := map[string]func(){"eager": launches, "replay": func() { g.Replay(b.stream) }}
	for name, step := range cases {
		bb.Run(name, func(bb *testing.B) {
			for bb.Loop() {
				step()
				_ = b.stream.Sync()
			}
			bb.ReportMetric(float64(bb.Elapsed().Nanoseconds())/float64(bb.N)/400, "ns/launch")
		})
	}
	bb.Run("queueing only", func(bb *testing.B) {
		for bb.Loop() {
			launches()
			bb.StopTimer()
			_ = b.stream.Sync()
			bb.StartTimer()
		}
		bb.ReportMetric(float64(bb.Elapsed().Nanoseconds())/float64(bb.N)/400, "ns/launch")
	})
	if err := g.Close(); err != nil {
		bb.Error(err)
	}
}

// A fault ends the process's use of the GPU, so this runs in a process of its own.
func TestGPUAFaultStays(t *testing.T) {
	if os.Getenv("ATLAS_TEST_FAULT") == "" {
		gpu(t).close()
		again := exec.Command(os.Args[0], "-test.run=^TestGPUAFaultStays$", "-test.v")
		again.Env = append(os.Environ(), "ATLAS_TEST_FAULT=1")
		text, err := again.CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, text)
		}
		t.Logf("%s", text)
		return
	}
	b := gpu(t)
	b.launch(b.fault, b.alloc(4), one, 1)
	for range 3 {
		err := b.stream.Sync()
		wantError(t, "a fault", err, "a kernel that was queued before went wrong")
		t.Log(err)
	}
	t.Log("closing says: ", b.stream.Close(), b.Close())
}
