package cuda

import (
	"bytes"
	"errors"
	"testing"
)

// Results of two steps are on their way at once, and neither waits for the other.
func TestInboxesBringResultsInOrder(t *testing.T) {
	b, f := start(t)
	p := b.alloc(4)
	first, second := b.inbox(8), b.inbox(4)
	for i := range 5 {
		b.stream.Write(p, []byte{byte(i), 0, 0, 0})
		b.launch(b.mark, p, one, 1)
		b.post(first, p)
		b.launch(b.double, p, one, 0)
		b.post(second, p)
		b.launch(b.mark, p, one, 100)
		waits := f.calls("cuStreamSynchronize")
		for _, c := range []struct {
			box  *inbox
			want byte
		}{{first, byte(i + 1)}, {second, byte(2 * (i + 1))}} {
			if got, err := c.box.Wait(); err != nil || !bytes.Equal(got, []byte{c.want, 0, 0, 0}) {
				t.Errorf("round %d: got %v (error %v), want %d", i, got, err, c.want)
			}
		}
		if f.calls("cuStreamSynchronize") != waits {
			t.Error("waiting for a copy waited for all that was queued")
		}
	}
	if err := errors.Join(b.stream.Sync(), first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
}

func TestInboxReportsErrors(t *testing.T) {
	b, f := start(t)
	p := b.alloc(4)
	box := b.inbox(4)
	before := b.inbox(4)
	b.launch(b.mark, p, one, 7)
	b.post(before, p)
	wrong := errors.New("a step went wrong")
	b.stream.Fail(wrong)
	if err := box.Post(p, 4); err != wrong {
		t.Errorf("Post after an error: got %v, want %v", err, wrong)
	}
	if _, err := box.Wait(); err != wrong {
		t.Errorf("Wait after an error: got %v, want %v", err, wrong)
	}
	if _, err := before.Wait(); err != nil {
		t.Errorf("what was posted before did not come: %v", err)
	}
	if err := b.stream.Sync(); err != wrong {
		t.Errorf("Sync: got %v, want %v", err, wrong)
	}
	f.fail("cuMemcpyDtoHAsync_v2", 2, 0)
	wantError(t, "post", box.Post(p, 4), "cannot post 4 bytes from the device")
	wantError(t, "the same error", b.stream.Sync(), "cannot post 4 bytes")
	b.post(box, p)
	f.fail("cuEventSynchronize", 700, 0)
	_, err := box.Wait()
	wantError(t, "a fault meanwhile", err, "CUDA_ERROR_ILLEGAL_ADDRESS")
	if err := errors.Join(b.stream.Sync(), box.Close(), before.Close()); err != nil {
		t.Error(err)
	}
	f.fail("cuMemHostAlloc", 2, 0)
	_, err = b.Inbox(b.stream, 4)
	wantError(t, "no pinned memory", err, "cannot take 4 bytes of pinned memory")
	f.fail("cuEventCreate", 2, 0)
	_, err = b.Inbox(b.stream, 4)
	wantError(t, "no event", err, "cannot make an event")
}

func TestPostingAllocatesNothing(t *testing.T) {
	b, _ := start(t)
	p := b.alloc(4)
	box := b.inbox(4)
	if n := testing.AllocsPerRun(100, func() {
		_ = box.Post(p, 4)
		_, _ = box.Wait()
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
	if err := box.Close(); err != nil {
		t.Error(err)
	}
}
