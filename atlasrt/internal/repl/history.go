package repl

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Bounds of the history. A longer entry is not kept, and a longer file is written anew.
const (
	mostEntries    = 1000
	mostEntryBytes = 8 << 10
	mostFileBytes  = 2 * mostEntries * 256
)

// History is what was entered, kept in a file for the next run. It implements term.History of golang.org/x/term.
type History struct {
	path    string   // empty: nothing is written
	entries []string // the last entered is the last
	err     error    // the first error of writing
}

// OpenHistory reads the history in a file, which need not exist yet; with an empty path there is no file. Files that it makes can be read
// by the user alone.
func OpenHistory(path string) (*History, error) {
	h := &History{path: path}
	if path == "" {
		return h, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return nil, fmt.Errorf("history: %w (--no-history goes without)", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, mostFileBytes)
	for lines.Scan() {
		h.keep(lines.Text())
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("history %s: %w (remove it, or go without by --no-history)", path, err)
	}
	if info, err := f.Stat(); err == nil && info.Size() > mostFileBytes {
		return h, h.rewrite()
	}
	return h, nil
}

// keep adds an entry to those in memory and reports whether it is new.
func (h *History) keep(entry string) bool {
	entry = strings.TrimRight(entry, " \r\n")
	if entry == "" || len(entry) > mostEntryBytes || !utf8.ValidString(entry) || strings.Contains(entry, "\n") || len(h.entries) > 0 && h.entries[len(h.entries)-1] == entry {
		return false
	}
	h.entries = append(h.entries, entry)
	if len(h.entries) > mostEntries {
		h.entries = append([]string(nil), h.entries[len(h.entries)-mostEntries:]...)
	}
	return true
}

// Add implements term.History. Each entry is appended to the file at once, so that several programs with one history lose none.
func (h *History) Add(entry string) {
	if !h.keep(entry) || h.path == "" || h.err != nil {
		return
	}
	h.err = h.append(h.entries[len(h.entries)-1])
}

func (h *History) append(entry string) error {
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(h.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(entry + "\n")
	return errors.Join(err, f.Close())
}

// rewrite makes the file hold what is in memory.
func (h *History) rewrite() error {
	f, err := os.CreateTemp(filepath.Dir(h.path), ".history-")
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	_, err = f.WriteString(strings.Join(h.entries, "\n") + "\n")
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), h.path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("history: %w", err), os.Remove(f.Name()))
	}
	return nil
}

// Err is why entries are not written; nil where they are.
func (h *History) Err() error { return h.err }

// Len implements term.History.
func (h *History) Len() int { return len(h.entries) }

// At implements term.History: 0 is the last entry.
func (h *History) At(i int) string { return h.entries[len(h.entries)-1-i] }
