package main

import (
	"testing"

	"github.com/atlas-inference/atlas/atlasc/internal/emit"
	"github.com/atlas-inference/atlas/atlasc/internal/plan"
	"github.com/atlas-inference/atlas/targets"
)

func TestNative(t *testing.T) {
	hardware := func(name, device string, needs ...string) *emit.Package {
		return &emit.Package{Name: name, Hardware: &plan.Hardware{Hardware: &targets.Hardware{Name: name, Device: device, Needs: needs}}}
	}
	packages := []*emit.Package{hardware("v3", "cpu", "avx2"), hardware("v4", "cpu", "avx2", "avx512f"), hardware("gpu", "cuda")}
	cases := []struct{ name, cpuinfo, want string }{
		{"small", "model name : x\nflags\t\t: sse avx2\n", "v3"},
		{"large", "flags : avx512f avx2\n", "v4"},
		{"other", "flags : sse\n", ""},
		{"none", "", ""},
	}
	for _, c := range cases {
		got, err := native(packages, c.cpuinfo)
		if c.want == "" {
			if err == nil {
				t.Errorf("%s: got %s, want an error", c.name, got[0].Name)
			}
			continue
		}
		if err != nil || len(got) != 1 || got[0].Name != c.want {
			t.Errorf("%s: got %v, %v, want %s", c.name, got, err, c.want)
		}
	}
}
