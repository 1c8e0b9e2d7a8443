package cuda

import (
	"errors"
	"runtime"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

func TestReplayGivesWhatEagerGives(t *testing.T) {
	b, _ := start(t)
	grid := op.Grid{X: 100, Y: 2, Z: 1}
	p := b.alloc(800)
	g := b.capture(func() {
		b.launch(b.mark, p, grid, 1)
		runtime.Gosched() // a goroutine that moves between threads must not end the record elsewhere
		b.launch(b.double, p, grid, 0)
	})
	if got := b.words(p, 200)[0]; got != 0 {
		t.Fatalf("capturing ran the step: cell 0 is %d", got)
	}
	want := uint32(0)
	for range 20 {
		b.launch(b.mark, p, grid, 1) // queued before the replay, so it must run before
		g.Replay(b.stream)
		want = (want + 2) * 2
	}
	if err := b.stream.Sync(); err != nil {
		t.Fatal(err)
	}
	for i, w := range b.words(p, 200) {
		if w != want {
			t.Fatalf("cell %d: got %d, want %d", i, w, want)
		}
	}
	for range 2 {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAFailedCaptureLeavesTheStreamUsable(t *testing.T) {
	b, f := start(t)
	p := b.alloc(4)
	launch := func() { b.launch(b.mark, p, one, 1) }
	cases := []struct {
		name    string
		prepare func()
		step    func()
		want    string
	}{
		{"an earlier error", func() { b.stream.Fail(errors.New("before")) }, launch, "before"},
		{"no begin", func() { f.fail("cuStreamBeginCapture_v2", 1, 0) }, launch, "capture a step: cannot begin to record: CUDA error 1"},
		{"an operation fails", func() {}, func() { b.stream.Fail(errors.New("within")) }, "capture a step: within"},
		{"a launch fails", func() { f.fail("cuLaunchKernelEx", 1, 1) }, func() { launch(); launch(); launch() }, "capture a step: cannot launch kernel test_mark"},
		{"no end", func() {}, func() { b.stream.call(cuStreamSynchronize, b.stream.handle) }, "cannot end the record: CUDA error 901"},
		{"no memory", func() { f.fail("cuGraphInstantiateWithFlags", 2, 0) }, launch, "cannot make a captured step ready: CUDA_ERROR_OUT_OF_MEMORY"},
		{"a write", func() {}, func() { b.stream.Write(p, []byte{1}) }, "a step that is captured writes to memory: do that before or after"},
		{"a read", func() {}, func() { b.stream.Read([]byte{1}, p) }, "a step that is captured reads memory"},
		{"a wait", func() {}, func() { _ = b.stream.Sync() }, "a step that is captured waits"},
		{"another capture", func() {}, func() {
			_, err := b.Capture(b.stream, launch)
			b.stream.Fail(err)
		}, "captures another"},
	}
	for _, c := range cases {
		c.prepare()
		g, err := b.Capture(b.stream, c.step)
		wantError(t, c.name, err, c.want)
		if g != nil {
			t.Errorf("%s: got a graph", c.name)
		}
		before := b.words(p, 1)[0]
		launch()
		if err := b.stream.Sync(); err != nil {
			t.Errorf("%s: the stream is not usable: %v", c.name, err)
		}
		if got := b.words(p, 1)[0]; got != before+1 {
			t.Errorf("%s: a launch after it gave %d, want %d", c.name, got, before+1)
		}
	}
}

func TestAPanicEndsTheCapture(t *testing.T) {
	b, _ := start(t)
	p := b.alloc(4)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not come through")
			}
		}()
		_, _ = b.Capture(b.stream, func() {
			b.launch(b.mark, p, one, 1)
			panic("a kernel table is empty")
		})
	}()
	b.launch(b.mark, p, one, 2)
	if err := b.stream.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := b.words(p, 1)[0]; got != 2 {
		t.Errorf("got %d, want 2: only what was launched after the capture", got)
	}
}

func TestReplayErrors(t *testing.T) {
	b, f := start(t)
	p := b.alloc(4)
	g := b.capture(func() { b.launch(b.mark, p, one, 1) })
	f.fail("cuGraphLaunch", 2, 0)
	g.Replay(b.stream)
	g.Replay(b.stream) // after an error: nothing
	wantError(t, "replay", b.stream.Sync(), "cannot replay a captured step: CUDA_ERROR_OUT_OF_MEMORY")
	if got := b.words(p, 1)[0]; got != 0 {
		t.Errorf("a replay after an error ran: got %d, want 0", got)
	}
	_, err := b.Capture(b.stream, func() { g.Replay(b.stream) })
	wantError(t, "replay within", err, "a step that is captured replays another")
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
