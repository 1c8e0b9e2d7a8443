package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/emit"
	"github.com/atlas-inference/atlas/atlasc/internal/plan"
)

// sourceFolders hold all that a build reads; its output lies in emit.Folder.
var sourceFolders = [...]string{plan.Kernels, "targets", contractDir}

// settled names a build that has nothing left to do: what was asked, this program, every file that it reads and every file that
// it writes, all by content. Whoever finds a mark of that name need not build; any change at all makes another name.
func settled(root, program, asked string) (string, error) {
	all := sha256.New()
	fmt.Fprintln(all, asked)
	add := func(name, file string) error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(all, "%q %x\n", name, sha256.Sum256(text))
		return nil
	}
	if err := add("program", program); err != nil {
		return "", err
	}
	for _, folder := range append(sourceFolders[:], emit.Folder) {
		err := filepath.WalkDir(filepath.Join(root, folder), func(file string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || d.IsDir() {
				return err
			}
			return add(strings.TrimPrefix(file, root), file)
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}

// mark is where the mark of what is settled now would lie; "" where that cannot be told, as while another process writes.
func (c *buildCommand) mark(env *environment) string {
	if c.Smoke || c.PTX != "" || c.Out != "" {
		return "" // these do something each time
	}
	root, err := findRoot(env.root)
	if err != nil {
		return ""
	}
	program, err := os.Executable()
	if err != nil {
		return ""
	}
	cache, err := env.cacheFolder()
	if err != nil {
		return ""
	}
	name, err := settled(root, program, fmt.Sprintf("%+v", *c))
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "settled", name)
}

// leaveMark notes that nothing is left to do. Without a mark the next build only takes longer.
func leaveMark(file string) {
	if os.MkdirAll(filepath.Dir(file), 0o777) == nil {
		_ = os.WriteFile(file, nil, 0o666)
	}
}
