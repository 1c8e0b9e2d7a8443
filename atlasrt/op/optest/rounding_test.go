package optest_test

import (
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// launching is host memory whose streams take launches and run nothing.
type launching struct{ device.Device }

type quiet struct{ device.Stream }

func (quiet) Launch(op.Kernel, op.Grid) {}

func (d launching) Stream(scratch int64) (device.Stream, error) {
	s, err := d.Device.Stream(scratch)
	return quiet{s}, err
}

// rounder multiplies rounded activations by kernel 7 where there are several rows.
type rounder struct {
	*oracle.Set
	rounded *oracle.Set
	always  bool // also activations that are to be kept
}

func (r rounder) Linear(q op.Stream, x op.Linear) {
	if x.Rows == 1 || x.W.Rounding == op.RoundingNone && !r.always {
		r.Set.Linear(q, x)
		return
	}
	q.Launch(7, op.Grid{X: 1, Y: 1, Z: 1})
	r.rounded.Linear(q, x)
}

// A kernel that rounds activations is judged by what the oracle makes of rounded ones, and only if it says that it does.
func TestRoundingKernelsAreJudgedByTheirRule(t *testing.T) {
	exact := oracle.New(op.F32)
	rounded, err := exact.Rounding("e4m3x128")
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		rounds map[op.Kernel]string
		always bool
		passes bool
	}{
		{map[op.Kernel]string{7: "e4m3x128"}, false, true},
		{map[op.Kernel]string{8: "e4m3x128"}, false, false},
		{map[op.Kernel]string{7: "int8"}, false, false},
		{map[op.Kernel]string{7: "e4m3x128"}, true, false},
	}
	for _, c := range cases {
		of := target(rounder{exact, rounded, c.always}, op.F32)
		of.Device, of.Rounds, of.Together = launching{of.Device}, c.rounds, true
		report := run(t, of, optest.Options{Ops: []string{"Linear"}, Match: "f8block", Seed: 1, Short: true})
		if report.Count(optest.Pass) == 0 || c.passes != (report.Count(optest.Fail) == 0) {
			t.Errorf("kernels that round %v, always: %t: %d cases passed and %d failed, want failures: %t", c.rounds, c.always, report.Count(optest.Pass), report.Count(optest.Fail), !c.passes)
		}
	}
}
