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
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/emit"
	"github.com/atlas-inference/atlas/atlasc/internal/plan"
	"github.com/atlas-inference/atlas/atlasc/internal/toolchain"
	"github.com/atlas-inference/atlas/targets"
)

// sourceFolders hold all that a build reads; its output lies in emit.Folder.
var sourceFolders = [...]string{plan.Kernels, "targets", contractDir}

// hashes are the contents of files by their paths from the root, which have slashes.
type hashes map[string][sha256.Size]byte

// look is the tree as it lies there: what was asked of which program, what a build reads and what lies where it writes.
//
// A build that leaves nothing to do leaves a mark in the cache's folder. The mark's name is the hash of the tree that it left, and its
// content the hardware whose compiler was missing. A build that finds its mark has nothing to do, unless such a compiler is there.
type look struct {
	root, marks string
	asked       string
	sources     hashes
	generated   hashes
}

// look reads the tree.
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
	if c.Native {
		l.asked += fmt.Sprint(processorFeatures(readCPUInfo()))
	}
	if l.sources, err = hashFiles(root, sourceFolders[:]...); err != nil {
		return nil, err
	}
	l.generated, err = hashFiles(root, emit.Folder)
	return l, err
}

// hashFiles hashes all files in folders of root.
func hashFiles(root string, folders ...string) (hashes, error) {
	all, tree := hashes{}, os.DirFS(root)
	for _, folder := range folders {
		err := fs.WalkDir(tree, folder, func(name string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || d.IsDir() {
				return err
			}
			text, err := fs.ReadFile(tree, name)
			all[name] = sha256.Sum256(text)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// mark is the file that says that nothing is left to do for the tree.
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

// settled tells whether an earlier build left nothing to do for this very tree. It says again what could not be built.
func (c *buildCommand) settled(env *environment, l *look) bool {
	text, err := os.ReadFile(l.mark())
	if err != nil {
		return false
	}
	names := strings.Fields(string(text))
	if len(names) == 0 {
		return true
	}
	files, err := fs.Sub(os.DirFS(l.root), "targets")
	if err != nil {
		return false
	}
	all, err := targets.Hardwares(files)
	if err != nil {
		return false
	}
	var absent []error
	for _, h := range all {
		if !slices.Contains(names, h.Name) {
			continue
		}
		compiler, err := toolchain.Find(h, l.root, env.compilers)
		if err == nil {
			_, err = compiler.Version(env.ctx)
		}
		if !toolchain.IsMissing(err) {
			return false
		}
		absent = append(absent, notBuilt(h, err))
	}
	for _, err := range absent {
		fmt.Fprintln(env.stdout, err)
	}
	return true
}

// notBuilt says that a hardware's compiler is missing.
func notBuilt(h *targets.Hardware, err error) error {
	return fmt.Errorf("%s: not built: %w", h.Name, err)
}

// leaveMark notes that a build which began with a look at the tree leaves nothing to do. It leaves no mark where somebody else changed what
// the build read or wrote meanwhile: then the next build only takes longer.
func (c *buildCommand) leaveMark(env *environment, before *look, r *result) {
	after, err := c.look(env)
	if err != nil || !maps.Equal(before.sources, after.sources) {
		return
	}
	for name, text := range r.project.out.Files {
		if after.generated[name] != sha256.Sum256(text) {
			return
		}
	}
	for _, pkg := range r.packages {
		if !c.NoCompile && !slices.Contains(r.absent, pkg.Hardware.Name) && r.project.state(pkg) != built {
			return
		}
	}
	if strays, err := r.project.strays(); err != nil || len(strays) > 0 {
		return
	}
	file := after.mark()
	if os.MkdirAll(filepath.Dir(file), 0o777) == nil {
		_ = os.WriteFile(file, []byte(strings.Join(r.absent, "\n")), 0o666)
	}
}
