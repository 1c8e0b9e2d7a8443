package mapping

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func write(t *testing.T, size int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, bytes.Repeat([]byte{7}, size), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTruncatedWhileMapped(t *testing.T) {
	path := write(t, 1<<20)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 1<<20)
	if err := Copy(buffer, f.Bytes()[:4096]); err != nil || buffer[4095] != 7 {
		t.Errorf("the part that is left: %v, last byte %d; want no error and 7", err, buffer[4095])
	}
	if err := Copy(buffer, f.Bytes()); err == nil || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("Copy of lost pages: %v; want an error that says truncated", err)
	}
}

func TestGuardPassesOtherPanics(t *testing.T) {
	defer func() {
		if got := recover(); got != "mine" {
			t.Errorf("recovered %v, want mine", got)
		}
	}()
	_ = Guard(func() error { panic("mine") })
}

func TestDiscard(t *testing.T) {
	f, err := Open(write(t, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Discard(f.Bytes()[100:900000])
	f.Discard(f.Bytes()[1<<20-1:])
	f.Discard(make([]byte, 1<<16)) // not of this mapping
	f.Discard(nil)
	if got := f.Bytes()[5000]; got != 7 {
		t.Errorf("a discarded page reads %d, want 7", got)
	}
}

// A part of a larger mapping that follows in memory is left alone.
func TestDiscardOfAnotherMapping(t *testing.T) {
	f, err := Open(write(t, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	first := &File{bytes: f.Bytes()[: 1<<16 : 1<<16]}
	first.Discard(f.Bytes()[1<<16:])
	first.Discard(f.Bytes())
	if got := f.Bytes()[1<<19]; got != 7 {
		t.Errorf("read %d, want 7", got)
	}
}

func TestOpenRefuses(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{fifo: "no regular file", t.TempDir(): "no regular file", fifo + "x": "no such file"}
	for path, want := range cases {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%s): %v; want %q", path, err, want)
		}
	}
	if f, err := Open(write(t, 0)); err != nil || len(f.Bytes()) != 0 || f.Close() != nil {
		t.Errorf("an empty file: %v, %v; want an empty mapping", f, err)
	}
}

func TestCopyIntoShortBuffer(t *testing.T) {
	if err := Copy(make([]byte, 3), make([]byte, 4)); err == nil {
		t.Error("Copy of 4 bytes into 3 gave no error")
	}
}
