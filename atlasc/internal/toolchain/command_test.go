package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/atlas-inference/atlas/atlasc/internal/diag"
	"github.com/atlas-inference/atlas/internal/await"
)

// script writes an executable shell script.
func script(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	syscall.ForkLock.RLock() // a child that began meanwhile would hold the file open for a moment, and it could not be run
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o777); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCompile(t *testing.T) {
	cases := []struct {
		what, script string
		failure      bool // the source is to blame
		want         []string
	}{
		{"succeeds", "exit 0", false, nil},
		{"complains", "echo 'a.cu(3): error: no' >&2; exit 2", true, []string{"k.toml:7: kernel a does not compile:\na.cu(3): error: no"}},
		{"says nothing", "exit 2", true, []string{"the compiler says nothing but exit status 2"}},
		{"is killed", "echo half; kill -9 $$", false, []string{"k.toml:7: the compiler did not finish kernel a: signal: killed (is there enough memory?)\nhalf"}},
		{"says too much", "i=0; while [ $i -lt 10000 ]; do echo \"a.cu($i): error: template instantiation of something long\"; i=$((i+1)); done; echo 10000 errors; exit 2", true,
			[]string{"\na.cu(0): error", "\na.cu(99): error", " lines are left out ...\na.cu(", "\na.cu(9999): error", "\n10000 errors"}},
	}
	u := Unit{Name: "kernel a", At: diag.Pos{File: "k.toml", Line: 7}}
	for _, c := range cases {
		err := compile(t.Context(), t.TempDir(), script(t, filepath.Join(t.TempDir(), "cc"), c.script), u)
		var f *Failure
		if (err == nil) != (c.want == nil) || errors.As(err, &f) != c.failure {
			t.Errorf("%s: got error %v (%T)", c.what, err, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) || len(err.Error()) > headBytes+3*tailBytes {
				t.Errorf("%s: got %d bytes of error, want %q in %.3000v", c.what, len(err.Error()), want, err)
			}
		}
	}
	if err := compile(t.Context(), t.TempDir(), "no-such-compiler", u); err == nil || errors.As(err, new(*Failure)) {
		t.Errorf("no compiler: got error %v", err)
	}
}

// The end of a build ends the programs that a compiler has started, too.
func TestCompileEndsWithItsBuild(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(dir+"/gate", 0o600); err != nil {
		t.Fatal(err)
	}
	command := script(t, filepath.Join(dir, "cc"), "(read word; echo late >"+dir+"/late) <"+dir+"/gate & wait")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- compile(ctx, dir, command, Unit{}) }()
	var gate *os.File
	await.Until(t, "what the compiler starts waits at the gate", func() (ok bool) {
		var err error
		gate, err = os.OpenFile(dir+"/gate", os.O_WRONLY|syscall.O_NONBLOCK, 0) // while nobody waits it cannot be opened
		return err == nil
	})
	defer gate.Close()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
	await.Until(t, "nobody waits at the gate", func() bool {
		_, err := gate.WriteString("go on\n")
		return errors.Is(err, syscall.EPIPE)
	})
	if _, err := os.Stat(dir + "/late"); err == nil {
		t.Error("what the compiler started goes on")
	}
}

func TestTranscript(t *testing.T) {
	line := func(i int) string { return fmt.Sprintf("%06d\n", i) }
	for _, lines := range []int{0, 1, 1000, 2000, 2900, 3000, 10000} {
		for _, pieces := range []int{1, 3, 1 << 20} { // bytes of a write
			var whole strings.Builder
			for i := range lines {
				whole.WriteString(line(i))
			}
			var got transcript
			for text := whole.String(); text != ""; {
				n := min(pieces, len(text))
				if wrote, err := got.Write([]byte(text[:n])); wrote != n || err != nil {
					t.Fatalf("%d lines: wrote %d of %d, error %v", lines, wrote, n, err)
				}
				text = text[n:]
			}
			out := got.String()
			if len(whole.String()) <= headBytes+tailBytes && out != whole.String() {
				t.Errorf("%d lines: got %q, want all of them", lines, out)
			}
			if out == whole.String() {
				continue
			}
			head, rest, _ := strings.Cut(out, "... ")
			missing, tail, _ := strings.Cut(rest, " lines are left out ...\n")
			var left int
			if _, err := fmt.Sscan(missing, &left); err != nil || left < 1 {
				t.Errorf("%d lines: %q lines are left out", lines, missing)
			}
			if n := strings.Count(head, "\n") + strings.Count(tail, "\n") + left; n != lines || !strings.HasPrefix(whole.String(), head) ||
				!strings.HasSuffix(whole.String(), "\n"+tail) || len(out) > headBytes+3*tailBytes {
				t.Errorf("%d lines in pieces of %d: got %d with those left out: %.300q", lines, pieces, n, out)
			}
		}
	}
}

func TestFindNVCC(t *testing.T) {
	version := "echo 'Cuda compilation tools, release 13.0, V13.0.%s'"
	root, home, path := t.TempDir(), t.TempDir(), t.TempDir()
	own := script(t, filepath.Join(root, ToolkitFolder, "nvidia/cu13/bin/nvcc"), fmt.Sprintf(version, "4"))
	inPath := script(t, filepath.Join(path, "nvcc"), fmt.Sprintf(version, "3"))
	inHome := script(t, filepath.Join(home, "bin/nvcc"), fmt.Sprintf(version, "2"))
	asked := script(t, filepath.Join(t.TempDir(), "my-nvcc"), fmt.Sprintf(version, "1"))
	t.Setenv("PATH", path+":"+os.Getenv("PATH"))
	t.Setenv("CUDA_HOME", home)
	n := &nvcc{root: root, command: asked}
	check := func(what, want, path string) {
		t.Helper()
		if got, err := n.Version(t.Context()); err != nil || got != want || n.Path() != path {
			t.Errorf("%s: got %q from %s, error %v, want %q from %s", what, got, n.Path(), err, want, path)
		}
	}
	check("--nvcc", "nvcc 13.0.1", asked)
	n.command = ""
	check("CUDA_HOME", "nvcc 13.0.2", inHome)
	t.Setenv("CUDA_HOME", t.TempDir()) // without a compiler
	check("PATH", "nvcc 13.0.3", inPath)
	if err := os.Remove(inPath); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", path)
	t.Setenv("CUDA_HOME", "")
	check("toolkit of the repository", "nvcc 13.0.4", own)
	n.root = t.TempDir()
	if _, err := n.Version(t.Context()); !IsMissing(err) || !strings.Contains(err.Error(), "make cuda-toolchain") {
		t.Errorf("nowhere: got error %v", err)
	}
	n.command = "no-such-nvcc"
	if _, err := n.Version(t.Context()); !IsMissing(err) || !strings.Contains(err.Error(), "no-such-nvcc") {
		t.Errorf("asked for, not there: got error %v", err)
	}
	n.command = script(t, filepath.Join(t.TempDir(), "nvcc"), "echo hello")
	if _, err := n.Version(t.Context()); err == nil || IsMissing(err) || !strings.Contains(err.Error(), "says no version") {
		t.Errorf("no version: got error %v", err)
	}
}
