package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/atlas-inference/atlas/atlasc/internal/emit"
	"github.com/atlas-inference/atlas/atlasc/internal/plan"
)

// sourceFolders hold all that a build reads; its output lies in emit.Folder.
var sourceFolders = [...]string{plan.Kernels, "targets", contractDir}

// hashes are the contents of files by their paths from the root, which have slashes.
type hashes map[string][sha256.Size]byte

// look is the tree as a build found it: what was asked of which program, what is read and what lies where it writes.
//
// A build that nothing is left to do for has a name, the hash of all that, and a mark of that name in the cache's folder.
type look struct {
	root, marks string
	asked       string
	sources     hashes
	generated   hashes
}

// look reads the tree; it fails while another process changes it.
func (c *buildCommand) look(env *environment) (*look, error) {
	root, err := findRoot(env.root)
	if err != nil {
		return nil, err
	}
	cache, err := env.cacheFolder()
	if err != nil {
		return nil, err
	}
	file, err := os.Executable()
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	l := &look{root: root, marks: filepath.Join(cache, "settled"), asked: fmt.Sprintf("%+v %x", *c, sha256.Sum256(program))}
	if l.sources, err = hashFiles(root, sourceFolders[:]...); err != nil {
		return nil, err
	}
	l.generated, err = hashFiles(root, emit.Folder)
	return l, err
}

// hashFiles hashes all files in folders of root.
func hashFiles(root string, folders ...string) (hashes, error) {
	all := hashes{}
	var (
		mu    sync.Mutex
		group errgroup.Group
	)
	group.SetLimit(runtime.NumCPU())
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, filepath.FromSlash(folder)), func(file string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || d.IsDir() {
				return err
			}
			name := filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator)))
			group.Go(func() error {
				text, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				hash := sha256.Sum256(text)
				mu.Lock()
				defer mu.Unlock()
				all[name] = hash
				return nil
			})
			return nil
		})
		if err != nil {
			return nil, errors.Join(err, group.Wait())
		}
	}
	return all, group.Wait()
}

// mark is the file that says that nothing is left to do.
func (l *look) mark() string {
	name := sha256.New()
	fmt.Fprintln(name, l.asked)
	for _, files := range []hashes{l.sources, l.generated} {
		for _, file := range slices.Sorted(maps.Keys(files)) {
			fmt.Fprintf(name, "%q %x\n", file, files[file])
		}
	}
	return filepath.Join(l.marks, hex.EncodeToString(name.Sum(nil)))
}

// settled tells whether an earlier build left a mark on this very tree.
func (l *look) settled() bool {
	_, err := os.Stat(l.mark())
	return err == nil
}

// leaveMark notes that nothing is left to do after a build of packages of p that began with this look. What was written is
// hashed as the build knows it, not as it lies there, and nothing else may have changed. Without a mark the next build only
// takes longer.
func (l *look) leaveMark(p *project, packages []*emit.Package) {
	sources, err := hashFiles(l.root, sourceFolders[:]...)
	if err != nil || !maps.Equal(sources, l.sources) {
		return
	}
	after := *l
	if after.generated, err = p.written(l, packages); err != nil {
		return
	}
	file := after.mark()
	if os.MkdirAll(filepath.Dir(file), 0o777) == nil {
		_ = os.WriteFile(file, nil, 0o666)
	}
}

// written hashes what lies in the folder of generated code after a build of packages.
func (p *project) written(before *look, packages []*emit.Package) (hashes, error) {
	all := hashes{}
	for name, text := range p.out.Files {
		all[name] = sha256.Sum256(text)
	}
	for _, pkg := range packages {
		image, err := os.ReadFile(filepath.Join(p.root, filepath.FromSlash(pkg.Image())))
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(string(image), pkg.ImageHeader()) {
			return nil, fmt.Errorf("another build wrote %s", pkg.Image())
		}
		all[pkg.Image()] = sha256.Sum256(image)
	}
	err := filepath.WalkDir(filepath.Join(p.root, emit.Folder), func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(file, p.root+string(filepath.Separator)))
		if _, ours := all[name]; ours {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		hash, was := before.generated[name]
		if !was || hash != sha256.Sum256(text) {
			return fmt.Errorf("another build wrote %s", name)
		}
		all[name] = hash
		return nil
	})
	return all, err
}
