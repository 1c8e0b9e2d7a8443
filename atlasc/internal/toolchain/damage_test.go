package toolchain

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// damage changes every file of a cache that holds what was compiled.
func damage(t *testing.T, dir string, change func(data []byte) []byte) {
	t.Helper()
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "-d") {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return os.WriteFile(file, change(slices.Clone(data)), 0o666)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDamagedCache(t *testing.T) {
	cases := []struct {
		what   string
		change func(data []byte) []byte
	}{
		{"a bit", func(data []byte) []byte { data[0] ^= 1; return data }},
		{"cut short", func(data []byte) []byte { return data[:len(data)-1] }},
		{"empty", func([]byte) []byte { return nil }},
		{"longer", func(data []byte) []byte { return append(data, 0) }},
	}
	units := []Unit{{Name: "a", Source: "a.c"}, {Name: "b", Source: "b.c"}}
	for _, c := range cases {
		dir, files, compiler := t.TempDir(), map[string]string{"a.c": "a", "b.c": "b"}, &fake{}
		for range 2 { // what was damaged is compiled again, and kept again
			image, err := builder(dir, files).Image(t.Context(), compiler, units)
			if err != nil || string(image) != "a;b;" {
				t.Errorf("%s: got image %q, error %v", c.what, image, err)
			}
			damage(t, dir, c.change)
		}
		if len(compiler.done) != 6 {
			t.Errorf("%s: got %v, want everything twice", c.what, compiler.done)
		}
		// The image is damaged, and one object besides.
		files["b.c"] = "c"
		if image, err := builder(dir, files).Image(t.Context(), compiler, units); err != nil || string(image) != "a;b;" {
			t.Errorf("%s: got image %q, error %v", c.what, image, err)
		}
	}
}

// A source that changes while it is compiled must not become an object under the name of what it was.
func TestSourceChangesDuringCompile(t *testing.T) {
	dir, files := t.TempDir(), map[string]string{"a.c": `#include "a.h"`, "a.h": "1"}
	units := []Unit{{Name: "a", Source: "a.c"}}
	compiler := &fake{during: func() { files["a.h"] = "2" }}
	if _, err := builder(dir, files).Image(t.Context(), compiler, units); err == nil || !strings.Contains(err.Error(), "changed while it was compiled") {
		t.Errorf("a header changes: got error %v", err)
	}
	compiler.during = func() { delete(files, "a.h") }
	files["a.h"] = "3"
	if _, err := builder(dir, files).Image(t.Context(), compiler, units); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a header goes: got error %v", err)
	}
	compiler.during, compiler.done, files["a.h"] = nil, nil, "1"
	if _, err := builder(dir, files).Image(t.Context(), compiler, units); err != nil || len(compiler.done) != 2 {
		t.Errorf("as it was at first: got %v, error %v, want it compiled", compiler.done, err)
	}
}

func TestInterruptedBuild(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir, files := t.TempDir(), map[string]string{"a.c": "a", "b.c": "b", "c.c": "c"}
	units := []Unit{{Name: "a", Source: "a.c"}, {Name: "b", Source: "b.c"}, {Name: "c", Source: "c.c"}}
	b := builder(dir, files)
	b.Parallel = 1
	compiler := &fake{during: cancel}
	if _, err := b.Image(ctx, compiler, units); !errors.Is(err, context.Canceled) || strings.Count(err.Error(), "\n") > 0 {
		t.Errorf("got error %v, want one line", err)
	}
	if len(compiler.done) != 1 {
		t.Errorf("got %v compiled, want one unit", compiler.done)
	}
}

func TestTooManyFailures(t *testing.T) {
	files, compiler := map[string]string{}, &fake{}
	var units []Unit
	for i := range 5000 {
		name := "unit" + strings.Repeat("i", i%70) + string(rune('a'+i/70%26)) + string(rune('a'+i/1820))
		files[name] = name
		units = append(units, Unit{Name: name, Source: name})
		compiler.fails = append(compiler.fails, name)
	}
	b := builder(t.TempDir(), files)
	compiler.says = func(u Unit) string { return "bad " + strings.ToUpper(u.Name) }
	_, err := b.Image(t.Context(), compiler, units)
	if err == nil || !strings.HasSuffix(err.Error(), "4980 more kernels do not compile") || len(err.Error()) > 1<<14 {
		t.Errorf("got %d bytes of error %.2000v", len(err.Error()), err)
	}
}
