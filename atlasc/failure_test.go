package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/internal/cputime"
)

// gpuTree is a tree with hardware toygpu, and the command line of a build of it whose compiler needs no memory or time.
func gpuTree(t *testing.T) (root string, build []string) {
	t.Helper()
	root = t.TempDir()
	for _, tree := range []string{"testdata/tree", "testdata/gpu"} {
		if err := copyTree(tree, root); err != nil {
			t.Fatal(err)
		}
	}
	fixture, err := filepath.Abs("internal/inspect/testdata/fixture.cubin")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("FIXTURE", fixture)
	t.Setenv("UNITS", filepath.Join(root, "units"))
	t.Setenv("TMPDIR", t.TempDir())
	return root, []string{"build", "--hw", "toygpu", "--root", root, "--nvcc", filepath.Join(root, "bin/nvcc"), "--cache", t.TempDir()}
}

// A limit on the size of files stands in for a full disk: writing fails half way.
func TestDiskFull(t *testing.T) {
	root, build := gpuTree(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(root, "generated/toygpu/blob/image.zst")
	failed := 0
	// The lowest limits are felt where code is written, the next ones in the compiler, the cache and the image.
	for limit := 1000; ; limit += 2000 {
		c := exec.Command(program, build...)
		c.Args[0] = "atlasc"
		c.Env = append(os.Environ(), fmt.Sprintf("%s=%d", fileLimit, limit))
		out, err := c.CombinedOutput()
		if err == nil {
			break
		}
		failed++
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitFindings || len(out) == 0 || bytes.Contains(out, []byte("panic")) {
			t.Errorf("files of at most %d bytes: got %v and %q", limit, err, out)
		}
		left, err := fs.Glob(os.DirFS(filepath.Dir(image)), "[^.]*")
		if err != nil {
			t.Fatal(err)
		}
		if len(left) != 0 {
			t.Errorf("files of at most %d bytes: %v are left beside .keep", limit, left)
		}
	}
	if failed < 4 {
		t.Errorf("%d builds failed, want more: the limit was not felt", failed)
	}
	var out strings.Builder
	if code := run(context.Background(), []string{"inspect", "--root", root, "toygpu"}, &out, &out); code != exitOK || !strings.Contains(out.String(), "toygpu: built") {
		t.Errorf("after space was made: got exit code %d and %s", code, out.String())
	}
}

// Five thousand kernels take no more than a few seconds, and so does saying what is wrong with all of them.
func TestManyKernels(t *testing.T) {
	root, build := gpuTree(t)
	name := filepath.Join(root, "kernels/toygpu/base/q8_0/kernels.toml")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var many strings.Builder
	head, tail, _ := strings.Cut(string(text), "[[kernel]]")
	many.WriteString(head)
	for i := range 5000 {
		fmt.Fprintf(&many, "[[kernel]]\nop = \"Norm\"\nname = \"norm_%d\"\nwhen = \"Cols == %d && Rows < %d\"\nbody = \"lib/norm.cuh\"\ninst = \"norm\"\ngrid = [\"Rows\"]\nblock = [\"32\"]\n", i, i, i%7+1)
	}
	many.WriteString("[[kernel]]" + tail)
	cases := []struct {
		what, text string
		code       int
		lines      int
	}{
		{"sound", many.String(), exitOK, 0},
		{"unknown key", strings.ReplaceAll(many.String(), "inst = ", "instance = "), exitFindings, 5000},
		{"unknown field", strings.ReplaceAll(many.String(), "Cols ==", "Columns =="), exitFindings, 5000},
		{"never reached", strings.ReplaceAll(many.String(), "when = ", "order = \"x\"\n#"), exitFindings, 5000},
	}
	for _, c := range cases {
		if err := os.WriteFile(name, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		var out, problem strings.Builder
		var code int
		took := cputime.Of(func() { code = run(context.Background(), append(build, "--no-compile"), &out, &problem) })
		if lines := strings.Count(problem.String(), "\n"); code != c.code || lines < c.lines || took > time.Minute {
			t.Errorf("%s: got exit code %d after %v with %d lines, want %d and %d; %.500s", c.what, code, took, lines, c.code, c.lines, problem.String())
		}
		t.Logf("%s: %v", c.what, took)
	}
}

// BenchmarkWarmBuild is a build with nothing to do, of the whole tree: 150 ms are meant.
func BenchmarkWarmBuild(b *testing.B) {
	build := []string{"build", "--no-compile", "--root", "..", "--cache", b.TempDir()}
	warm := func() {
		if code := run(context.Background(), build, os.Stdout, os.Stderr); code != exitOK {
			b.Fatalf("exit code %d", code)
		}
	}
	warm() // says so for those that follow
	for b.Loop() {
		warm()
	}
}
