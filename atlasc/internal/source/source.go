// Package source finds what a C file is made of, without a compiler: the files that it includes by quotes.
package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/diag"
)

// Folders are searched for includes, after the folder of the including file.
var Folders = []string{"generated/include", "kernels"}

var include = regexp.MustCompile(`^[ \t]*#[ \t]*include[ \t]*"([^"\n]*)"`)

// Tree reads files by their path from the repository's root, each once.
type Tree struct {
	read  func(name string) ([]byte, error)
	files map[string]*file
}

// NewTree makes a Tree over read.
func NewTree(read func(name string) ([]byte, error)) *Tree {
	return &Tree{read, map[string]*file{}}
}

type file struct {
	text     []byte
	err      error
	hash     [sha256.Size]byte
	scanned  bool
	includes []string
	missing  diag.List
}

// Closure lists a file and all that it includes, sorted, and reports includes that lead nowhere.
func (t *Tree) Closure(name string) ([]string, diag.List) {
	var all []string
	var missing diag.List
	todo := []string{name}
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		if slices.Contains(all, next) {
			continue
		}
		all = append(all, next)
		f := t.scan(next)
		todo = append(todo, f.includes...)
		missing = append(missing, f.missing...)
	}
	slices.Sort(all)
	return all, missing
}

// Hash writes names and contents to w, in the order given.
func (t *Tree) Hash(w io.Writer, names []string) error {
	for _, name := range names {
		f := t.file(name)
		if f.err != nil {
			return fmt.Errorf("read source: %w", f.err)
		}
		fmt.Fprintf(w, "%s %x\n", name, f.hash)
	}
	return nil
}

func (t *Tree) file(name string) *file {
	if f, ok := t.files[name]; ok {
		return f
	}
	f := &file{}
	f.text, f.err = t.read(name)
	f.hash = sha256.Sum256(f.text)
	t.files[name] = f
	return f
}

// scan finds the includes of a file.
func (t *Tree) scan(name string) *file {
	f := t.file(name)
	if f.scanned {
		return f
	}
	f.scanned = true
	line := 0
	for s := range strings.Lines(string(f.text)) {
		line++
		m := include.FindStringSubmatch(s)
		if m == nil {
			continue
		}
		folders := append([]string{path.Dir(name)}, Folders...)
		i := slices.IndexFunc(folders, func(folder string) bool { return t.file(path.Join(folder, m[1])).err == nil })
		if i < 0 {
			f.missing.Add(diag.Pos{File: name, Line: line}, "it is looked for beside the file, in "+strings.Join(Folders, " and in "), "include %q: no such file", m[1])
			continue
		}
		f.includes = append(f.includes, path.Join(folders[i], m[1]))
	}
	return f
}

// Sum is a hash as text, short enough to read and long enough to be unique.
func Sum(h interface{ Sum([]byte) []byte }) string { return hex.EncodeToString(h.Sum(nil)[:16]) }
