package main

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
)

// Kernels that give the set's bits are timed, and others are not.
func TestTune(t *testing.T) {
	var name string
	for _, b := range bundles() {
		if name == "" && strings.HasPrefix(b.Hardware, "cpu-x86-64-v3") && (instance.Hardware{Bundles: bundles(), Name: b.Hardware}).Runs() && b.Built() {
			name = b.Hardware
		}
	}
	if name == "" && os.Getenv("CI") == "true" && runtime.GOARCH == "amd64" {
		t.Fatal("the kernels of cpu-x86-64-v3 must be built where CI=true")
	}
	if name == "" {
		t.Skip("the kernels of cpu-x86-64-v3 are not built, or do not run here")
	}
	h, err := instance.Hardware{Bundles: bundles(), Name: name, Threads: 1}.Open()
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("%v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer h.Device.Close()
	launch := func(kernel, entry string, x, y uint32) optest.Candidate {
		return optest.Candidate{Kernel: kernel, Scratch: -1, Launches: []optest.TrialLaunch{{Entry: entry, Grid: [3]uint32{x, y, 1}}}}
	}
	trial := optest.Trial{
		Shape: optest.ShapeOf(op.Linear{W: op.Weight{Scheme: op.SchemeBF16, Rows: 100, Cols: 70, Count: 1}, Rows: 9, OutPitch: 100}),
		Candidates: []optest.Candidate{
			launch("own", "atlas_linear_f32_bf16", 2, 1),
			launch("other", "atlas_linear_f32_bf16_few", 4, 2),
			launch("half of it", "atlas_linear_f32_bf16_few", 4, 1),
			launch("nothing", "atlas_linear_f32_bf16", 0, 1),
		},
	}
	target := optest.Target{Name: name, Device: h.Device, Set: h.Set, Act: h.Bundle.Activations, HostMemory: true}
	unknown := optest.Trial{Shape: trial.Shape, Candidates: []optest.Candidate{launch("gone", "atlas_gone", 1, 1)}}
	got, err := optest.Tune(target, []optest.Trial{trial, unknown, {Shape: optest.Shape{Op: "Sample"}}}, h.Points(), 1)
	if err != nil || len(got) != 3 {
		t.Fatalf("got %d results, %v, want 3", len(got), err)
	}
	want := map[string]bool{"own": true, "other": true, "half of it": false, "nothing": false}
	if len(got[0].Results) != len(want) || got[0].Message != "" {
		t.Fatalf("got %+v, want four kernels", got[0])
	}
	for _, m := range got[0].Results {
		if m.Same != want[m.Kernel] || (m.Time > 0) != want[m.Kernel] {
			t.Errorf("%s: got same %v, time %v, want %v", m.Kernel, m.Same, m.Time, want[m.Kernel])
		}
	}
	if !strings.Contains(got[1].Message, "no entry point atlas_gone") || got[2].Message == "" {
		t.Errorf("got messages %q and %q, want an entry point that is missing, and an op that cannot be tuned", got[1].Message, got[2].Message)
	}
}
