package emit

import (
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasc/internal/manifest"
	"github.com/atlas-inference/atlas/atlasc/internal/plan"
	"github.com/atlas-inference/atlas/atlasc/internal/toolchain"
)

func TestSampleHasEachBodyWithEachScheme(t *testing.T) {
	p := Package{Hardware: &plan.Hardware{}}
	for _, k := range []struct {
		name, body string
		schemes    []int64
	}{
		{"few_a", "few.cuh", []int64{1}},
		{"many_a", "few.cuh", []int64{1}},
		{"few_b", "few.cuh", []int64{2}},
		{"norm", "norm.cuh", nil},
		{"norm_long", "norm.cuh", nil},
	} {
		e := &plan.Entry{Kernel: &manifest.Kernel{Name: k.name, Body: k.body}, Schemes: k.schemes}
		p.Hardware.Entries = append(p.Hardware.Entries, e)
		p.Units = append(p.Units, toolchain.Unit{Name: k.name})
		p.Entries = append(p.Entries, EntryPoint{Name: k.name, Entry: e})
	}
	p.Units = append(p.Units, toolchain.Unit{Name: "runtime"})

	some := p.Sample()
	var units, entries []string
	for _, u := range some.Units {
		units = append(units, u.Name)
	}
	for _, e := range some.Entries {
		entries = append(entries, e.Name)
	}
	if want := []string{"few_a", "few_b", "norm", "runtime"}; !slices.Equal(units, want) {
		t.Errorf("units are %q, want %q", units, want)
	}
	if want := []string{"few_a", "few_b", "norm"}; !slices.Equal(entries, want) {
		t.Errorf("entry points are %q, want %q", entries, want)
	}
}
