package optest_test

import (
	"sync"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// waiting does nothing until it is told to.
type waiting struct {
	bundle.Set
	until <-chan struct{}
}

func (w waiting) SwiGLU(q op.Stream, a op.SwiGLU) {
	<-w.until
	w.Set.SwiGLU(q, a)
}

// A kernel that does not end is named, which is all that can be done about it.
func TestLateCasesAreNamed(t *testing.T) {
	until := make(chan struct{})
	var once sync.Once
	var named string
	late := func(op, name string) {
		once.Do(func() {
			named = op + " " + name
			close(until)
		})
	}
	report := run(t, target(waiting{oracle.New(op.F32), until}, op.F32), optest.Options{Ops: []string{"SwiGLU"}, Seed: 1, Late: late, Patience: 10 * time.Millisecond})
	if len(report.Results) == 0 || report.Count(optest.Pass) != len(report.Results) {
		t.Fatalf("got %d passes of %d, want all", report.Count(optest.Pass), len(report.Results))
	}
	if first := report.Results[0]; named != first.Op+" "+first.Case {
		t.Errorf("late: %q, want %q", named, first.Op+" "+first.Case)
	}
}

// Each case is told before it runs, with how many there are.
func TestProgress(t *testing.T) {
	var told []string
	total := 0
	o := optest.Options{Ops: []string{"Copy", "RMSNorm"}, Seed: 1, Short: true, Progress: func(done, of int, op, name string) {
		if done != len(told) {
			t.Errorf("%s %s: told as number %d, want %d", op, name, done, len(told))
		}
		told, total = append(told, op+" "+name), of
	}}
	report := run(t, target(oracle.New(op.F32), op.F32), o)
	if len(told) == 0 || len(told) != total || len(told) != len(report.Results) {
		t.Fatalf("told %d of %d cases, %d were run", len(told), total, len(report.Results))
	}
	for i, r := range report.Results {
		if want := r.Op + " " + r.Case; told[i] != want {
			t.Errorf("case %d: told %q, want %q", i, told[i], want)
		}
	}
}

func TestCasesInTimeAreNotLate(t *testing.T) {
	run(t, target(oracle.New(op.F32), op.F32), optest.Options{Ops: []string{"SwiGLU"}, Seed: 1, Patience: time.Hour, Late: func(op, name string) {
		t.Errorf("%s %s is said to be late", op, name)
	}})
}
