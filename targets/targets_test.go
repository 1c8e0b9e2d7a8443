package targets

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestEmbedded(t *testing.T) {
	all, err := Hardwares(Embedded())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no hardware")
	}
	for _, h := range all {
		if h.Device == "" || h.Toolchain == "" || len(h.Flags) == 0 {
			t.Errorf("%s: incomplete: %+v", h.Name, h)
		}
	}
}

func TestProblems(t *testing.T) {
	const good = "device='cpu'\ntoolchain='gcc'\nactivations='f32'\n"
	cases := []struct{ name, text, want string }{
		{"a", good, ""},
		{"a", good + "flag=[]\n", `targets/hardware/a.toml:4: unknown key "flag" (known: device, `},
		{"a", "device='cpu'\nactivations='f32'\n", `targets/hardware/a.toml:1: key "toolchain" is missing`},
		{"a", "device='cpu'\ntoolchain='gcc'\nactivations='f64'\n", `want f32 or bf16`},
		{"a", "device='cdua'\ntoolchain='gcc'\nactivations='f32'\n", `targets/hardware/a.toml:1: device "cdua" is unknown (known: cpu, cuda)`},
		{"a", good + "stack=16\n", `targets/hardware/a.toml:4: stack is 16: it is for GPUs, and a size`},
		{"a", good + "[features.vnni]\nflags=[]", `targets/hardware/a.toml:4: feature vnni says not what to look for`},
		{"a", good + "[features.Vnni]\ncpu=['x']", `feature name "Vnni" is not made of`},
		{"a", good + "options=['vnni']\n[features.vnni]\ncpu=['x']", `targets/hardware/a.toml:4: option name "vnni" is a feature's too`},
		{"a", good + "needs='avx2'", `targets/hardware/a.toml:4: needs is a string, want a list of strings`},
		{"a", good + "arch='arm64'", `targets/hardware/a.toml:4: keys "arch" and "compiler" go together`},
		{"a", good + "arch='x86-64'\ncompiler='cc'", `arch "x86-64" is not a name of Go's`},
		{"A_b", good, `hardware name "A_b"`},
	}
	for _, c := range cases {
		_, err := Hardwares(fstest.MapFS{"hardware/" + c.name + ".toml": {Data: []byte(c.text)}})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s.toml %q: got error %q, want %q", c.name, c.text, got, c.want)
		}
	}
}
