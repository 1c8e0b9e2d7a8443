package plan

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/atlas-inference/atlas/atlasc/internal/manifest"
)

// visited lists the manifests that kernels/a.toml consists of, and what is wrong with them.
func visited(files map[string]string) ([]string, string) {
	tree := fstest.MapFS{}
	for name, text := range files {
		tree["kernels/"+name+".toml"] = &fstest.MapFile{Data: []byte(text)}
	}
	m := maker{tree: tree, manifests: map[string][]*manifest.Manifest{}, malformed: map[*manifest.Manifest]bool{}}
	var paths []string
	for _, v := range m.visits(Target{Quant: "q8_0", Manifest: m.read("kernels/a.toml", manifest.Parameters{})}) {
		paths = append(paths, strings.TrimSuffix(strings.TrimPrefix(v.manifest.Path, "kernels/"), ".toml"))
	}
	return paths, m.diags.Sorted().Error()
}

func TestManifestsAreReadOncePerSet(t *testing.T) {
	const entry = "[[kernel]]\nop='Norm'\nname='{x}'\nbody='b'\ninst='i'\ngrid=['1']\n"
	cases := []struct {
		what, want, problem string
		files               map[string]string
	}{
		{"no set", "a b c", "", map[string]string{"a": "include=['b.toml', 'c.toml']", "b": "include=['c.toml']", "c": ""}},
		{"two sets", "a b d c d", "", map[string]string{
			"a": "include=['b.toml', 'c.toml']", "b": "include=['d.toml']\nset={x='one'}", "c": "include=['d.toml']\nset={x='two'}", "d": entry}},
		{"equal sets", "a b d c", "", map[string]string{
			"a": "include=['b.toml', 'c.toml']", "b": "include=['d.toml']\nset={x='one'}", "c": "include=['d.toml']\nset={x='one'}", "d": entry}},
		{"a file that uses none", "a b d e c", "", map[string]string{
			"a": "include=['b.toml', 'c.toml', 'e.toml']", "b": "include=['d.toml', 'e.toml']\nset={x='one'}", "c": "include=['e.toml']", "d": entry, "e": ""}},
		{"passed on by name", "a b c", "", map[string]string{
			"a": "include=['b.toml']\nset={name='one'}", "b": "include=['c.toml']\nset={x='{name}'}", "c": entry}},
		{"not passed on", "a b c", "kernels/c.toml:3: parameter {x} is not set here or by the manifest that includes this one [parameters of kernels/b.toml]", map[string]string{
			"a": "include=['b.toml']\nset={x='one'}", "b": "include=['c.toml']\nscheme='{x}'", "c": entry}},
		{"used before, unused", "b a", "kernels/a.toml:1: parameter y is used neither here nor by a manifest that this one includes (remove it)", map[string]string{
			"a": "set={x='one', y=1}\nbefore=['b.toml']", "b": entry}},
		{"used here", "b a", "", map[string]string{"a": "set={x='one', y='q8_0'}\nscheme='{y}'\nbefore=['b.toml']", "b": entry}},
		{"hidden by what the file sets itself", "a b", "kernels/a.toml:2: parameter x is used neither here nor by a manifest that this one includes (remove it)",
			map[string]string{"a": "include=['b.toml']\nset={x='one'}", "b": "set={x='two'}\n" + entry}},
		{"nothing included", "a", "kernels/a.toml:2: parameter x is used neither here nor by a manifest that this one includes (remove it)", map[string]string{"a": "[set]\nx=1"}},
		{"itself with another set", "a b", "kernels/b.toml:1: manifests include each other: kernels/a.toml → kernels/b.toml → kernels/b.toml (remove one include) [parameters of kernels/a.toml:2]",
			map[string]string{"a": "include=['b.toml']\nset={x=1}", "b": "include=['b.toml']\nset={x='{x}1'}"}},
		{"file by name", "a b c", "", map[string]string{"a": "include=['b.toml']\nset={x='c'}", "b": "include=['{x}.toml']", "c": ""}},
	}
	for _, c := range cases {
		paths, problem := visited(c.files)
		if got := strings.Join(paths, " "); got != c.want || problem != c.problem {
			t.Errorf("%s:\n got %s %s\nwant %s %s", c.what, got, problem, c.want, c.problem)
		}
	}
}

// Every file of a chain sets two values for the next one, which so would be read twice as often.
func TestSetsOfAChainAreLimited(t *testing.T) {
	files := map[string]string{"a": "include=['l0.toml', 'r0.toml']\nset={x='x'}"}
	for i := range 30 {
		for _, side := range []string{"l", "r"} {
			files[fmt.Sprint(side, i)] = fmt.Sprintf("include=['l%d.toml', 'r%d.toml']\nset={x='{x}%s'}", i+1, i+1, side)
		}
	}
	files["l30"], files["r30"] = "scheme='{x}'", "scheme='{x}'"
	paths, problem := visited(files)
	if len(paths) > 31*2*maxSets || !strings.Contains(problem, "more than 64 sets of parameters") {
		t.Errorf("got %d manifests and %.300s", len(paths), problem)
	}
}
