package main

import (
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasc/internal/inspect"
)

func TestVerify(t *testing.T) {
	p, err := load("testdata/tree", everything)
	if err != nil {
		t.Fatal(err)
	}
	pkg := p.out.Packages[0]
	r := &inspect.Report{}
	for _, name := range []string{"atlas_linear_0", "atlas_linear_1", "atlas_linear_few", "atlas_norm"} {
		r.Functions = append(r.Functions, inspect.Function{Name: name, Code: 9})
	}
	if err := verify(pkg, r); err != nil {
		t.Errorf("complete image: got %v", err)
	}
	r.Functions = r.Functions[:3]
	r.Functions[1].Code = 0
	r.Undefined = []string{"elsewhere"}
	want := []string{
		"kernels/lib/base.toml:1: the image of toy lacks entry point atlas_norm",
		"kernels/toy/base/q8_0/kernels.toml:18: the image of toy lacks entry point atlas_linear_1",
		"targets/hardware/toy.toml:1: the image of toy needs symbol elsewhere from elsewhere",
	}
	got := strings.Split(verify(pkg, r).Error(), "\n")
	for i := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("line %d: got %q, want %q", i, got, want[i])
		}
	}
}
