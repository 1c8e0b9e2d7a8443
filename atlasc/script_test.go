package main

import (
	"context"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite what scripts and golden files expect")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"atlasc": main})
}

// TestScript runs testdata/script, each script in a copy of testdata/tree with the script's own files on top.
func TestScript(t *testing.T) {
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GOCACHE", strings.TrimSpace(string(goCache)))
			env.Setenv("GOFLAGS", "-mod=mod")
			env.Setenv("ATLASC_CACHE", filepath.Join(env.WorkDir, ".cache"))
			return copyTree("testdata/tree", env.WorkDir)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"replace": replaceText, "await": await,
		},
		Condition: func(condition string) (bool, error) {
			_, err := exec.LookPath(condition)
			return err == nil, nil
		},
	})
}

// copyTree copies the files that are not there yet.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if d.IsDir() {
			return os.MkdirAll(target, 0o777)
		}
		if _, err := os.Stat(target); err == nil {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o666)
	})
}

// replaceText is "replace FILE OLD NEW": it edits a file as an author would.
func replaceText(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: replace FILE OLD NEW")
	}
	unescape := strings.NewReplacer(`\n`, "\n").Replace
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, unescape(args[1])) {
		ts.Fatalf("%s does not contain %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, unescape(args[1]), unescape(args[2]), 1)), 0o666))
}

// await is "await FILE": it waits until a background command has written a file.
func await(ts *testscript.TestScript, _ bool, args []string) {
	for range 600 {
		if info, err := os.Stat(ts.MkAbs(args[0])); err == nil && info.Size() > 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("%s does not appear", args[0])
}

func TestExitCode(t *testing.T) {
	tree := t.TempDir()
	if err := copyTree("testdata/tree", tree); err != nil {
		t.Fatal(err)
	}
	broken := t.TempDir()
	if err := copyTree("testdata/tree", broken); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, "kernels/lib/base.toml"), []byte("x ="), 0o666); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		args string
		want int
	}{
		{"", exitOK},
		{"--help", exitOK},
		{"list --root " + tree, exitOK},
		{"check --root " + tree, exitFindings},
		{"check --root " + broken, exitFindings},
		{"test --root " + tree, exitFindings},
		{"nonsense", exitUsage},
		{"build --no-such-flag", exitUsage},
		{"build --hw nothing --root " + tree, exitUsage},
		{"build --hw [ --root " + tree, exitUsage},
		{"explain --root " + tree + " toy Nothing", exitUsage},
		{"explain --root " + tree + " other Linear", exitUsage},
		{"build --gcc no-such-compiler --cache " + t.TempDir() + " --root " + tree, exitNoCompile},
		{"doctor --gcc no-such-compiler --root " + tree, exitNoCompile},
	}
	for _, c := range cases {
		var out, err strings.Builder
		if got := run(context.Background(), strings.Fields(c.args), &out, &err); got != c.want {
			t.Errorf("atlasc %s: got exit code %d, want %d\n%s%s", c.args, got, c.want, out.String(), err.String())
		}
	}
}
