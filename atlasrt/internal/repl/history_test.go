package repl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// entries are the last first, as a terminal takes them.
func entries(h *History) string {
	var all []string
	for i := range h.Len() {
		all = append(all, h.At(i))
	}
	return strings.Join(all, "|")
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "atlasrt", "history")
	open := func() *History {
		t.Helper()
		h, err := OpenHistory(path)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	first := open()
	for _, line := range []string{"a", "b", "b", "", "  ", "two\nlines", "bad \xff", strings.Repeat("x", mostEntryBytes+1), "c "} {
		first.Add(line)
	}
	open().Add("from another run")
	first.Add("d")
	if got, want := entries(open()), "d|from another run|c|b|a"; got != want || first.Err() != nil {
		t.Errorf("got %q, %v, want %q", got, first.Err(), want)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want a file that its owner alone reads", info.Mode(), err)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	var text strings.Builder
	for i := 0; text.Len() < mostFileBytes+1000; i++ {
		fmt.Fprintf(&text, "%0300d\n", i)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := OpenHistory(path)
	if err != nil || h.Len() != mostEntries {
		t.Fatalf("got %d entries, %v, want %d", h.Len(), err, mostEntries)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() != mostEntries*301 || info.Mode().Perm() != 0o600 {
		t.Errorf("got a file of %d bytes, %v, %v, want %d", info.Size(), info.Mode(), err, mostEntries*301)
	}
	again, err := OpenHistory(path)
	if err != nil || entries(again) != entries(h) {
		t.Errorf("the shortened file holds something else (%v)", err)
	}
}

// What cannot be read or written is said, and a talk goes on without.
func TestHistoryThatCannotBeKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenHistory(filepath.Dir(file)); err == nil || !strings.Contains(err.Error(), "--no-history") {
		t.Errorf("a folder: got %v", err)
	}
	h := &History{path: filepath.Join(file, "history")}
	h.Add("a")
	if h.Err() == nil || h.Len() != 1 {
		t.Errorf("below a file: got %v, %d entries", h.Err(), h.Len())
	}
}
