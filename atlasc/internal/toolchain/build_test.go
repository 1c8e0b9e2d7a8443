package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/atlas-inference/atlas/atlasc/internal/diag"
	"github.com/atlas-inference/atlas/atlasc/internal/source"
	"github.com/atlas-inference/atlas/targets"
)

// fake compiles a unit to its own name, unless the name is to fail.
type fake struct {
	version string
	fails   []string
	during  func()              // called in Compile, where it is not nil
	says    func(u Unit) string // about a unit that fails
	mu      sync.Mutex
	done    []string
}

func (f *fake) Flags() []string                         { return []string{"-O3"} }
func (f *fake) Version(context.Context) (string, error) { return f.version, nil }
func (f *fake) Compile(_ context.Context, u Unit, object string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = append(f.done, u.Name)
	if f.during != nil {
		f.during()
	}
	if slices.Contains(f.fails, u.Name) {
		if f.says != nil {
			return &Failure{u, f.says(u)}
		}
		return &Failure{u, "in " + u.Source + ": bad body"}
	}
	return os.WriteFile(object, []byte(u.Name+";"), 0o666)
}

func (f *fake) Link(_ context.Context, _ []Unit, objects []string, image string) error {
	var all []byte
	for _, o := range objects {
		text, err := os.ReadFile(o)
		if err != nil {
			return err
		}
		all = append(all, text...)
	}
	f.done = append(f.done, "link")
	return os.WriteFile(image, all, 0o666)
}

// builder builds from files, which may change.
func builder(cache string, files map[string]string) *Builder {
	read := func() *source.Tree {
		return source.NewTree(func(name string) ([]byte, error) {
			if text, ok := files[name]; ok {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		})
	}
	return &Builder{CacheDir: cache, Parallel: 2, Sources: read(), Reread: read}
}

func TestImage(t *testing.T) {
	files := map[string]string{"a.c": `#include "a.h"`, "b.c": "b", "a.h": "1"}
	dir := t.TempDir()
	compiler := &fake{version: "1"}
	units := []Unit{{Name: "a", Source: "a.c"}, {Name: "b", Source: "b.c"}}
	var told Progress
	build := func() (string, []string, error) {
		b := builder(dir, files)
		b.Progress = func(p Progress) { told = p }
		compiler.done = nil
		image, err := b.Image(t.Context(), compiler, units)
		slices.Sort(compiler.done)
		return string(image), compiler.done, err
	}
	cases := []struct {
		what   string
		change func()
		want   string // what ran
	}{
		{"first build", func() {}, "a b link"},
		{"nothing changed", func() {}, ""},
		{"a header changed", func() { files["a.h"] = "2" }, "a link"},
		{"and back", func() { files["a.h"] = "1" }, ""},
		{"a flag", func() { units[1].Flags = []string{"-mavx2"} }, "b link"},
		{"the compiler", func() { compiler.version = "2" }, "a b link"},
	}
	for _, c := range cases {
		c.change()
		told = Progress{Done: 2, Total: 2, Kept: 2} // an image that is there tells nothing
		image, ran, err := build()
		if want := (Progress{Done: 2, Total: 2, Kept: 2 - strings.Count(c.want, "a") - strings.Count(c.want, "b")}); told != want {
			t.Errorf("%s: told %+v, want %+v", c.what, told, want)
		}
		if got := strings.Join(ran, " "); err != nil || got != c.want || image != "a;b;" {
			t.Errorf("%s: got %q, image %q, error %v; want %q", c.what, got, image, err, c.want)
		}
	}

	files["b.c"] = `#include "gone.h"`
	var missing diag.List
	if _, _, err := build(); !errors.As(err, &missing) {
		t.Errorf("missing header: got error %v, want a finding", err)
	}
}

func TestFailures(t *testing.T) {
	files := map[string]string{}
	for i := range 4 {
		files[fmt.Sprintf("%d.c", i)] = "text"
	}
	b := builder(t.TempDir(), files)
	compiler := &fake{fails: []string{"unit 1", "unit 2"}}
	var units []Unit
	for i := range 4 {
		units = append(units, Unit{Name: fmt.Sprintf("unit %d", i), Source: fmt.Sprintf("%d.c", i), At: diag.Pos{File: "kernels.toml", Line: i}})
	}
	_, err := b.Image(t.Context(), compiler, units)
	want := "kernels.toml:1: unit 1 does not compile:\nin 1.c: bad body"
	if err == nil || err.Error() != want {
		t.Errorf("two units with one bad body: got error %v, want %s", err, want)
	}
	if len(compiler.done) != 4 {
		t.Errorf("got %v compiled, want all four tried", compiler.done)
	}
}

func TestFind(t *testing.T) {
	if _, err := Find(&targets.Hardware{Toolchain: "nvc"}, "", Commands{}); err == nil {
		t.Error("unknown toolchain: want an error")
	}
	foreign := &targets.Hardware{Toolchain: "gcc", Arch: "pdp11", Compiler: "no_such-unix-gcc"}
	cases := []struct {
		hardware      *targets.Hardware
		name, install string
	}{
		{&targets.Hardware{Toolchain: "gcc"}, "gcc", "apt-get install gcc"},
		{&targets.Hardware{Toolchain: "gcc", Arch: runtime.GOARCH, Compiler: "other-gcc"}, "gcc", "apt-get install gcc"},
		{foreign, "no_such-unix-gcc", "apt-get install gcc-no-such-unix libc6-dev-pdp11-cross"},
	}
	for _, c := range cases {
		compiler, err := Find(c.hardware, t.TempDir(), Commands{GCC: "no-such-gcc"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = compiler.Version(t.Context())
		var missing *MissingError
		if !errors.As(err, &missing) || missing.Install != c.install || Name(c.hardware) != c.name {
			t.Errorf("%s: got name %s, error %v, want %s, missing (%s)", c.hardware.Compiler, Name(c.hardware), err, c.name, c.install)
		}
	}
}
