package cuda

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"unsafe"
)

// word is what pinned memory holds.
func (m *mailbox) word() *uint32 { return (*uint32)(unsafe.Pointer(&m.results[0])) }

// Two steps are on their way at once: each finds its inputs, and neither's results wait for the other. One is recorded, and
// finds what is sent each time.
func TestMailboxesServeStepsInOrder(t *testing.T) {
	b, f := start(t)
	first, second, later := b.mailbox(8, 8), b.mailbox(4, 4), b.alloc(4)
	recorded := b.capture(func() {
		b.launch(b.mark, first.Inputs()+4, one, 1)
		b.launch(b.mark, first.Results(), one, 3)
	})
	for i := range 5 {
		var sent [8]byte
		binary.LittleEndian.PutUint32(sent[4:], uint32(10*i))
		*first.word(), *second.word() = 0, 0
		first.Send(sent[:])
		recorded.Replay(b.stream)
		b.post(first)
		second.Send([]byte{byte(i), 0, 0, 0})
		b.launch(b.mark, second.Inputs(), one, 1)
		clear(sent[:]) // Send has taken it
		b.launch(b.mark, second.Results(), one, 7)
		b.post(second)
		b.launch(b.mark, later, one, 100)
		waits := f.calls("cuStreamSynchronize")
		for _, c := range []struct {
			box  *mailbox
			want byte
		}{{first, 3}, {second, 7}} {
			if got, err := c.box.Wait(); err != nil || !bytes.Equal(got, []byte{c.want, 0, 0, 0}) {
				t.Errorf("round %d: got %v (error %v), want %d", i, got, err, c.want)
			}
		}
		if f.calls("cuStreamSynchronize") != waits {
			t.Error("waiting for a step waited for all that was queued")
		}
		if got := b.words(first.Inputs()+4, 1)[0]; got != uint32(10*i+1) {
			t.Errorf("round %d: the first step made %d of its inputs, want %d", i, got, 10*i+1)
		}
		if got := b.words(second.Inputs(), 1)[0]; got != uint32(i+1) {
			t.Errorf("round %d: the second step made %d of its inputs, want %d", i, got, i+1)
		}
	}
	if err := errors.Join(b.stream.Sync(), recorded.Close(), first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
}

// A step takes the driver two calls, its launch and its event, however large its inputs are.
func TestAStepTakesTwoCalls(t *testing.T) {
	b, f := start(t)
	box := b.mailbox(1<<20, 4)
	recorded := b.capture(func() { b.launch(b.mark, box.Inputs(), one, 1) })
	inputs := make([]byte, 1<<20)
	before := f.calls("cuCtxSetCurrent") // before each call
	box.Send(inputs)
	recorded.Replay(b.stream)
	b.post(box)
	if got := f.calls("cuCtxSetCurrent") - before; got != 2 {
		t.Errorf("%d calls, want 2", got)
	}
	if _, err := box.Wait(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(recorded.Close(), box.Close()); err != nil {
		t.Error(err)
	}
}

func TestMailboxReportsErrors(t *testing.T) {
	b, f := start(t)
	box, before := b.mailbox(4, 4), b.mailbox(4, 4)
	b.launch(b.mark, before.Results(), one, 7)
	b.post(before)
	wrong := errors.New("a step went wrong")
	b.stream.Fail(wrong)
	if err := box.Post(4); err != wrong {
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
	f.fail("cuEventRecord", 2, 0)
	wantError(t, "post", box.Post(4), "cannot post 4 bytes from the device")
	wantError(t, "the same error", b.stream.Sync(), "cannot post 4 bytes")
	b.post(box)
	f.fail("cuEventSynchronize", 700, 0)
	_, err := box.Wait()
	wantError(t, "a fault meanwhile", err, "CUDA_ERROR_ILLEGAL_ADDRESS")
	if err := errors.Join(b.stream.Sync(), box.Close(), before.Close()); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		function, want string
	}{
		{"cuMemHostAlloc", "cannot take 68 bytes of pinned memory"},
		{"cuEventCreate", "cannot make an event"},
	} {
		f.fail(c.function, 2, 0)
		_, err = b.Mailbox(b.stream, 4, 4)
		wantError(t, c.function, err, c.want)
	}
}

func TestMailingAllocatesNothing(t *testing.T) {
	b, _ := start(t)
	box := b.mailbox(4, 4)
	inputs := []byte{1, 2, 3, 4}
	if n := allocations(func() {
		box.Send(inputs)
		_ = box.Post(4)
		_, _ = box.Wait()
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
	if err := box.Close(); err != nil {
		t.Error(err)
	}
}
