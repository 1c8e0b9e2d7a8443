package main

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/atlas-inference/atlas/internal/await"
)

var update = flag.Bool("update", false, "rewrite what scripts and golden files expect")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"atlasc": func() {
		limitFiles()
		main()
	}})
}

// fileLimit names a variable that says how large a file atlasc can write.
const fileLimit = "ATLASC_TEST_FILE_LIMIT"

// limitFiles makes larger files fail as on a full disk.
func limitFiles() {
	bytes, err := strconv.ParseUint(os.Getenv(fileLimit), 10, 64)
	if err != nil {
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: bytes}); err != nil {
		panic(err)
	}
}

// TestScript runs testdata/script, each script in a copy of testdata/tree with the script's own files on top.
func TestScript(t *testing.T) {
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	fixture, err := filepath.Abs("internal/inspect/testdata/fixture.cubin")
	if err != nil {
		t.Fatal(err)
	}
	realNVCC := findNVCC(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GOCACHE", strings.TrimSpace(string(goCache)))
			env.Setenv("GOFLAGS", "-mod=mod")
			env.Setenv("ATLASC_CACHE", filepath.Join(env.WorkDir, ".cache"))
			env.Setenv("FIXTURE", fixture)
			env.Setenv("UNITS", filepath.Join(env.WorkDir, "units"))
			env.Setenv("NVCC", realNVCC)
			env.Setenv("CUDA_HOME", "")
			return copyTree("testdata/tree", env.WorkDir)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"replace": replaceText, "await": awaitFile, "gpu": addGPU, "date": setDate,
		},
		Condition: func(condition string) (bool, error) {
			if condition == "nvcc" {
				if realNVCC == "" && os.Getenv("CI") == "true" {
					return false, errors.New("there is no nvcc: run make cuda-toolchain")
				}
				return realNVCC != "", nil
			}
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
		info, err := d.Info()
		if err != nil {
			return err
		}
		syscall.ForkLock.RLock() // a child of another script that began meanwhile would hold the file open for a moment, and a program could not be run
		defer syscall.ForkLock.RUnlock()
		return os.WriteFile(target, text, info.Mode().Perm())
	})
}

// findNVCC is the CUDA compiler of this machine, or of make cuda-toolchain; "" where there is none.
func findNVCC(t *testing.T) string {
	t.Helper()
	for _, command := range []string{"nvcc", "../.toolchain/cuda/nvidia/cu13/bin/nvcc"} {
		if file, err := exec.LookPath(command); err == nil {
			if file, err = filepath.Abs(file); err != nil {
				t.Fatal(err)
			}
			return file
		}
	}
	return ""
}

// addGPU is "gpu": it adds hardware toygpu to the tree, and bin/nvcc, which compiles nothing, to PATH.
func addGPU(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 0 {
		ts.Fatalf("usage: gpu")
	}
	ts.Check(copyTree("testdata/gpu", ts.MkAbs(".")))
	ts.Setenv("PATH", ts.MkAbs("bin")+string(os.PathListSeparator)+ts.Getenv("PATH"))
}

// setDate is "date YEAR FILE...": files change as if the clock stood there.
func setDate(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: date YEAR FILE...")
	}
	when, err := time.Parse("2006", args[0])
	ts.Check(err)
	for _, file := range args[1:] {
		ts.Check(os.Chtimes(ts.MkAbs(file), when, when))
	}
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

// awaitFile is "await FILE": it waits until a background command has written a file.
func awaitFile(ts *testscript.TestScript, _ bool, args []string) {
	for deadline := time.Now().Add(await.Patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if info, err := os.Stat(ts.MkAbs(args[0])); err == nil && info.Size() > 0 {
			return
		}
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
