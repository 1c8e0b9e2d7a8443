package source

import (
	"crypto/sha256"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

func TestClosure(t *testing.T) {
	files := map[string]string{
		"generated/toy/unit/a.c":       "#include <math.h>\n# include \"atlas_op.h\"\n  #include \"lib/a.h\"\n// #include \"no.h\"\n",
		"generated/include/atlas_op.h": "#pragma once\n",
		"kernels/lib/a.h":              "#include \"b.h\"\n#include \"lib/a.h\"\n",
		"kernels/lib/b.h":              "\n#include \"lib/a.h\"\n#include \"gone.h\"",
	}
	tree := NewTree(func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	})
	got, missing := tree.Closure("generated/toy/unit/a.c")
	want := []string{"generated/include/atlas_op.h", "generated/toy/unit/a.c", "kernels/lib/a.h", "kernels/lib/b.h"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(missing) != 1 || !strings.HasPrefix(missing.Error(), `kernels/lib/b.h:3: include "gone.h": no such file`) {
		t.Errorf("missing: got %v", missing)
	}
	h := sha256.New()
	if err := tree.Hash(h, []string{"kernels/lib/gone.h"}); err == nil {
		t.Error("hash of a missing file: want an error")
	}
}
