package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/atlas-inference/atlas/atlasc/internal/contract"
	"github.com/atlas-inference/atlas/atlasc/internal/diag"
	"github.com/atlas-inference/atlas/atlasc/internal/emit"
	"github.com/atlas-inference/atlas/atlasc/internal/plan"
	"github.com/atlas-inference/atlas/atlasc/internal/source"
	"github.com/atlas-inference/atlas/targets"
)

// project is a source tree and what its contract, hardware and manifests say.
type project struct {
	root string
	only string // pattern of the hardware that was read
	plan *plan.Plan
	out  *emit.Output
}

// everything is the pattern that all hardware matches.
const everything = "*"

// findRoot is the nearest folder around dir that holds the contract.
func findRoot(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if info, err := os.Stat(filepath.Join(at, contractDir)); err == nil && info.IsDir() {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not inside the Atlas source tree (run atlasc there, or pass --root)", dir)
		}
	}
}

const contractDir = "atlasrt/op"

// load reads and plans the tree around root, as far as hardware matches the pattern only: one that is not complete yet
// need not be in the way of others. What is wrong with files comes back as a diag.List.
func load(root, only string) (*project, error) {
	root, err := findRoot(root)
	if err != nil {
		return nil, err
	}
	p := &project{root: root, only: only}
	c, err := contract.Read(root, contractDir)
	if err != nil {
		return nil, err
	}
	tree := os.DirFS(root)
	files, err := fs.Sub(tree, "targets")
	if err != nil {
		return nil, err
	}
	hardware, err := targets.Hardwares(files)
	if err != nil {
		return nil, findings(err)
	}
	if p.plan, err = plan.Make(tree, c, hardware, only); err != nil {
		return nil, err
	}
	p.out, err = emit.Files(p.plan, tree)
	return p, err
}

// findings turns the problems of target files into diagnostics.
func findings(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var list diag.List
	for _, e := range joined.Unwrap() {
		var p targets.Problem
		if !errors.As(e, &p) {
			return err
		}
		hint := ""
		if p.Unknown != "" {
			hint = diag.Suggest(p.Unknown, p.Known)
		}
		list.Add(diag.Pos{File: "targets/" + p.File, Line: p.Line}, hint, "%s", p.Msg)
	}
	return list.Err()
}

// reread gives the files of the tree as they are now.
func (p *project) reread() *source.Tree {
	return source.NewTree(func(name string) ([]byte, error) {
		return os.ReadFile(filepath.Join(p.root, filepath.FromSlash(name)))
	})
}

// state is what an image is, compared with what it should be.
type state string

const (
	built   state = "built"
	stale   state = "stale"
	missing state = "missing"
)

// state reads the first line of a package's image.
func (p *project) state(pkg *emit.Package) state {
	f, err := os.Open(filepath.Join(p.root, pkg.Image()))
	if err != nil {
		return missing
	}
	defer f.Close()
	want := pkg.ImageHeader()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(f, got); err != nil || string(got) != want {
		return stale
	}
	return built
}
