package optest

import (
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// asking counts how often the oracle is asked.
type asking struct {
	*oracle.Set
	calls int
}

func (s *asking) Linear(q op.Stream, x op.Linear) {
	s.calls++
	s.Set.Linear(q, x)
}

// Targets that are judged one after the other by a case share its inputs and the oracle's answer; those of one case at a time are kept.
func TestTargetsShareAnswers(t *testing.T) {
	r, err := newReference(op.F32, 1)
	if err != nil {
		t.Fatal(err)
	}
	asked := &asking{Set: oracle.New(op.F32)}
	r.set = asked
	var judges []*judge
	for range 3 {
		j, err := newJudge(&Target{Device: host.New(0), Set: oracle.New(op.F32), Act: op.F32, Exact: true, Scratch: 1}, Options{Seed: 1}, r)
		if err != nil {
			t.Fatal(err)
		}
		judges = append(judges, j)
	}
	linear := func(name string) *Case {
		return of(name, op.Linear{W: matrix(op.SchemeBF16, 5, 32), Rows: 3, OutPitch: 5})
	}
	first, second := linear("first"), linear("second")
	for _, s := range []struct {
		c     *Case
		calls int // so far
	}{{first, 1}, {second, 2}, {first, 3}} {
		for _, j := range judges {
			if got := j.judge(s.c); got.Status != Pass {
				t.Error(got)
			}
		}
		if asked.calls != s.calls {
			t.Errorf("after %s: the oracle was asked %d times, want %d", s.c.Name, asked.calls, s.calls)
		}
	}
}
