package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/atlas-inference/atlas/atlasc/internal/contract"
	"github.com/atlas-inference/atlas/targets"
)

// toy is a hardware with two weight schemes whose kernels serve every operation that the contract of the tests demands. A case replaces
// some of its files.
var toy = map[string]string{
	"targets/hardware/toy.toml": "device='cpu'\ntoolchain='gcc'\nactivations='f32'\noptions=['exact']\n[features.wide]\ncpu=['avx2']\n",
	"kernels/body.h":            "",
	"kernels/norm.toml":         kernel("Norm", "norm"),
	"kernels/shared.toml":       "",
	"kernels/toy/base/bf16/kernels.toml": "scheme='bf16'\ninclude=['../../../shared.toml', '../../../norm.toml']\n[[layout]]\nname='rows'\nbytes='Rows*Cols*2'\n" +
		kernel("Linear", "bf16"),
	"kernels/toy/base/q8_0/kernels.toml": q8 + kernel("Linear", "q8"),
}

// q8 is the head of the base set's manifest of q8_0.
const q8 = "scheme='q8_0'\ninclude=['../../../shared.toml', '../../../norm.toml']\n[[layout]]\nname='rows'\nbytes='Rows*(Cols/32)*34'\n"

// kernel is an entry of a manifest, with further lines.
func kernel(op, name string, lines ...string) string {
	return fmt.Sprintf("[[kernel]]\nop='%s'\nname='%s'\nbody='body.h'\n", op, name) + strings.Join(append(lines, "inst='f'\ngrid=['Rows']\n"), "\n")
}

// planned lists the kernels of the toy hardware that are to be compiled, or says what is wrong.
func planned(t *testing.T, files map[string]string) string {
	t.Helper()
	c, err := contract.Read("../../testdata/tree", "atlasrt/op")
	if err != nil {
		t.Fatal(err)
	}
	tree, descriptions := fstest.MapFS{}, fstest.MapFS{}
	for _, all := range []map[string]string{toy, files} {
		for name, text := range all {
			tree[name] = &fstest.MapFile{Data: []byte(text)}
			descriptions[strings.TrimPrefix(name, "targets/")] = tree[name]
		}
	}
	hardware, err := targets.Hardwares(descriptions)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Make(tree, c, hardware, "*")
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, e := range p.Hardware[0].Entries {
		names = append(names, e.ID)
	}
	return strings.Join(slices.Sorted(slices.Values(names)), " ")
}

// An entry that no table of a hardware has is an error, whatever keeps calls from it: nothing is left out of an image in silence.
func TestKernelsThatNoCallReaches(t *testing.T) {
	const (
		base  = "kernels/toy/base/q8_0/kernels.toml"
		model = "kernels/toy/tiny/q8_0/kernels.toml"
		early = "kernels/toy/a-model/q8_0/kernels.toml" // read before the base set
	)
	never := func(place, name, by string) string {
		return fmt.Sprintf("%s: kernel %s is never reached: %s all that it would (remove it or move it up)", place, name, by)
	}
	cases := []struct {
		what  string
		files map[string]string
		want  string
	}{
		{"all are reached", nil, "bf16 norm q8"},
		{"features, options and ranges", map[string]string{base: q8 +
			kernel("Linear", "a", "needs=['wide']", "when='!exact && Rows<=4'") + kernel("Linear", "b", "needs=['wide']") + kernel("Linear", "c", "when='Rows<=4'") +
			kernel("Linear", "q8")}, "a b bf16 c norm q8"},
		{"behind one without a condition", map[string]string{base: q8 + kernel("Linear", "q8") + kernel("Linear", "late", "when='Rows<=4'")},
			never(base+":12", "late", "q8 at "+base+":6 serves")},
		{"behind one whose condition always holds for the scheme", map[string]string{base: q8 + kernel("Linear", "q8", "when='W.Scheme == SchemeQ8_0'") + kernel("Linear", "late")},
			never(base+":13", "late", "entries before it serve")},
		{"behind another one for each scheme", map[string]string{base: strings.Replace(strings.Replace(q8, "scheme='q8_0'\n", "", 1), "name='rows'", "name='rows'\nscheme='q8_0'", 1) +
			kernel("Linear", "q8", "when='W.Scheme == SchemeQ8_0'") + kernel("Linear", "late")},
			never(base+":13", "late", "entries before it serve")},
		{"reached with one of its schemes", map[string]string{base: q8, "kernels/shared.toml": kernel("Linear", "shared")}, "bf16 norm shared"},
		{"several launches", map[string]string{base: q8 + kernel("Linear", "q8") + "[[kernel]]\nop='Linear'\nname='late'\nbody='body.h'\nlaunch=[{inst='f', grid=['Rows']}, {inst='g', grid=['1']}]\n"},
			never(base+":12", "late", "q8 at "+base+":6 serves")},
		{"another operation of the same entry", map[string]string{base: q8 + kernel("NormLinear", "first") + kernel("Linear", "q8", "also={norm='NormLinear'}")},
			never(base+":12", "q8_norm", "first at "+base+":6 serves")},
		{"behind one with fewer features", map[string]string{base: q8 + kernel("Linear", "a", "needs=['wide']") + kernel("Linear", "late", "needs=['wide']", "when='exact'") + kernel("Linear", "q8")},
			never(base+":13", "late", "a at "+base+":6 serves")},
		{"a feature that the condition excludes", map[string]string{base: q8 + kernel("Linear", "none", "needs=['wide']", "when='!wide'") + kernel("Linear", "q8")},
			base + ":11: the condition of kernel none never holds (remove the entry or correct its condition)"},
		{"an option on and off", map[string]string{base: q8 + kernel("Linear", "none", "when='exact && Rows > 1 && !exact'") + kernel("Linear", "q8")},
			base + ":10: the condition of kernel none never holds (remove the entry or correct its condition)"},
		{"a constant that excludes all", map[string]string{base: q8 + kernel("Linear", "none", "when='kTile > 8'", "const={kTile=8}") + kernel("Linear", "q8")},
			base + ":10: the condition of kernel none never holds (remove the entry or correct its condition)"},
		{"a model's own, behind its own", map[string]string{model: "scheme='q8_0'\n" + kernel("Norm", "fast") + kernel("Norm", "late", "when='Rows<=4'")},
			never(model+":8", "late", "fast at "+model+":2 serves")},
		{"a model's in the place of another, behind its own", map[string]string{model: "scheme='q8_0'\n" + kernel("Norm", "fast") + kernel("Norm", "norm", "replace=true")},
			never(model+":8", "norm", "fast at "+model+":2 serves")},
		{"reached by a model alone", map[string]string{
			base:  q8 + kernel("Linear", "q8") + kernel("Linear", "second"),
			model: "scheme='q8_0'\n" + kernel("Linear", "q8", "replace=true", "when='Rows<=4'")}, "bf16 norm q8 second tiny_q8"},
		{"reached by the base set alone", map[string]string{early: "scheme='q8_0'\ninclude=['../../../norm.toml']\n" + kernel("Norm", "fast")}, "bf16 fast norm q8"},
	}
	for _, c := range cases {
		if got := planned(t, c.files); got != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", c.what, slices.Sorted(maps.Keys(c.files)), got, c.want)
		}
	}
}
