// Package testdata finds the files that tests read but the repository does not hold.
//
// A test that misses them skips and says how to get them; where CI=true it fails, because a skipped test proves nothing.
package testdata

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Shared returns the path of name in the folder that ATLAS_TESTDATA names: golden checkpoints and chat templates.
func Shared(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv("ATLAS_TESTDATA")
	if root == "" {
		missing(t, "set ATLAS_TESTDATA to the folder that holds "+name)
	}
	if !filepath.IsAbs(root) {
		root = filepath.Join(repository(), root)
	}
	return existing(t, filepath.Join(root, name), "ATLAS_TESTDATA does not hold "+name)
}

// Cache returns the path of name in the repository's .cache folder, which `make testdata` fills from package registries.
func Cache(t testing.TB, name string) string {
	t.Helper()
	folder := os.Getenv("ATLAS_CACHE") // where tests run outside of the tree
	if folder == "" {
		folder = filepath.Join(repository(), ".cache")
	}
	return existing(t, filepath.Join(folder, name), "run `make testdata`, which fetches "+name)
}

func existing(t testing.TB, path, what string) string {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		missing(t, what)
	}
	return path
}

func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// repository is the module's root, which relative paths start from.
func repository() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}
