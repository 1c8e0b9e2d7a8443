package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atlas-inference/atlas/atlasc/internal/emit"
)

// write brings generated/ up to date: what changed is written, what is no longer generated goes.
func (p *project) write() error {
	for _, name := range slices.Sorted(maps.Keys(p.out.Files)) {
		file := filepath.Join(p.root, filepath.FromSlash(name))
		if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, p.out.Files[name]) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return fmt.Errorf("write generated code: %w", err)
		}
		if err := replace(file, p.out.Files[name]); err != nil {
			return fmt.Errorf("write generated code: %w", err)
		}
	}
	strays, err := p.strays()
	if err != nil {
		return err
	}
	for _, name := range strays {
		file := filepath.Join(p.root, filepath.FromSlash(name))
		left := strings.HasSuffix(name, newSuffix) // by a build that was killed
		if text, err := os.ReadFile(file); left || err == nil && strings.HasPrefix(string(text), emit.Mark) {
			if err := os.Remove(file); err != nil {
				return fmt.Errorf("remove generated code: %w", err)
			}
		}
	}
	return nil
}

// newSuffix ends the names of files that are being written.
const newSuffix = ".new"

// replace writes a file so that nobody sees half of it, on whatever it fails.
func replace(file string, text []byte) error {
	temporary := file + newSuffix
	err := os.WriteFile(temporary, text, 0o666)
	if err == nil {
		err = os.Rename(temporary, file)
	}
	if err != nil {
		_ = os.Remove(temporary) // it may not be there
	}
	return err
}

// lock waits until no other process writes generated code, and keeps them from it until unlock is called.
func lock(root string) (unlock func(), err error) {
	folder := filepath.Join(root, emit.Folder)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, fmt.Errorf("make the folder of generated code: %w", err)
	}
	f, err := os.Open(folder)
	if err != nil {
		return nil, fmt.Errorf("open the folder of generated code: %w", err)
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the folder of generated code: %w", err), f.Close())
	}
	return func() { _ = f.Close() }, nil // which gives up the lock
}

// strays lists the files of generated/ that a build neither writes nor compiles.
func (p *project) strays() ([]string, error) {
	var found []string
	folder := filepath.Join(p.root, emit.Folder)
	err := filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(p.root, file)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(relative)
		if p.only != everything && !p.owns(name) {
			return nil
		}
		if _, ours := p.out.Files[name]; !ours && !strings.HasSuffix(name, "/blob/image.zst") {
			found = append(found, name)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return found, err
}

// owns tells whether a file lies in the folder of a package of the project.
func (p *project) owns(name string) bool {
	return slices.ContainsFunc(p.out.Packages, func(pkg *emit.Package) bool { return strings.HasPrefix(name, pkg.Folder()+"/") })
}
