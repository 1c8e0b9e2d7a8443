package emit

import (
	"bytes"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasc/internal/contract"
	"github.com/atlas-inference/atlas/atlasc/internal/plan"
	"github.com/atlas-inference/atlas/targets"
)

var update = flag.Bool("update", false, "rewrite golden files")

// tree is the source tree that the compiler's scripts start from.
const tree = "../../testdata/tree"

func files(t *testing.T) *Output {
	t.Helper()
	c, err := contract.Read(tree, "atlasrt/op")
	if err != nil {
		t.Fatal(err)
	}
	root := os.DirFS(tree)
	folder, err := fs.Sub(root, "targets")
	if err != nil {
		t.Fatal(err)
	}
	hardware, err := targets.Hardwares(folder)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Make(root, c, hardware, "*")
	if err != nil {
		t.Fatal(err)
	}
	out, err := Files(p, root)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestGolden compares everything that the tree generates with testdata/golden, where every name ends in .golden.
func TestGolden(t *testing.T) {
	out := files(t)
	for _, name := range slices.Sorted(maps.Keys(out.Files)) {
		golden := filepath.Join("testdata/golden", name+".golden")
		if *update {
			if err := os.MkdirAll(filepath.Dir(golden), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(golden, out.Files[name], 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Errorf("%v (run with -update)", err)
			continue
		}
		if !bytes.Equal(out.Files[name], want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, out.Files[name], want)
		}
	}
}

func TestDeterministic(t *testing.T) {
	first, second := files(t), files(t)
	for name, text := range first.Files {
		if !bytes.Equal(text, second.Files[name]) {
			t.Errorf("%s differs between two runs", name)
		}
	}
}

func TestCamel(t *testing.T) {
	cases := []struct{ name, want string }{
		{"linear", "Linear"}, {"linear_q8_0", "LinearQ8_0"}, {"linear_q80", "LinearQ80"}, {"a_8", "A_8"}, {"a8", "A8"}, {"qwen3_8b", "Qwen3_8b"},
	}
	for _, c := range cases {
		if got := camel(c.name); got != c.want {
			t.Errorf("camel(%q): got %q, want %q", c.name, got, c.want)
		}
	}
}
