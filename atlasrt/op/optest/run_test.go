package optest_test

import (
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// Several targets have the same reports together as each has alone, whatever the types of their activations, and a case that some share is
// told once.
func TestTargetsTogether(t *testing.T) {
	fault := broken{Set: oracle.New(op.F32), norm: func(s *oracle.Set, q op.Stream, x op.RMSNorm) {
		x.Eps++
		s.RMSNorm(q, x)
	}}
	targets := []optest.Target{target(oracle.New(op.F32), op.F32), target(oracle.New(op.BF16), op.BF16), target(&fault, op.F32), target(oracle.New(op.F32), op.F32)}
	targets[3].Together = true
	for i, name := range []string{"right", "bf16", "wrong", "together"} {
		targets[i].Name = name
	}
	told := map[string]int{}
	o := optest.Options{Ops: []string{"RMSNorm"}, Seed: 3, Short: true}
	shown := o
	shown.Progress = func(_, total int, op, name string) {
		told[op+" "+name]++
		told["total"] = total
	}
	reports, err := optest.Run(targets, shown)
	if err != nil || len(reports) != len(targets) {
		t.Fatalf("got %d reports, %v, want %d", len(reports), err, len(targets))
	}
	for i, got := range reports {
		want := run(t, targets[i], o)
		if got.String() != want.String() || got.Target != targets[i].Name {
			t.Errorf("%s among others:\n%s\nalone:\n%s", got.Target, got, want)
		}
		if failed := got.Count(optest.Fail); (failed > 0) != (got.Target == "wrong") {
			t.Errorf("%s: %d cases failed", got.Target, failed)
		}
	}
	if all, some := len(reports[0].Results), len(reports[3].Results); some == 0 || some >= all {
		t.Errorf("%d cases for a target whose rows depend on each other, %d for others: want fewer", some, all)
	}
	if want := len(reports[0].Results) + len(reports[1].Results); told["total"] != want || len(told)-1 != len(reports[0].Results) {
		t.Errorf("told of %d cases in all, want %d, once for each type of activations", told["total"], want)
	}
	for name, n := range told {
		if name != "total" && n != 2 {
			t.Errorf("%s was told %d times, want once for each type of activations", name, n)
		}
	}
}
