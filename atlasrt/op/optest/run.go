package optest

import "github.com/atlas-inference/atlas/atlasrt/op"

// Run judges targets by the cases that are chosen. What the buffers of a case hold, and what the oracle makes of them, is computed once for
// all targets with one type of activations. There is a report for each target; failed cases are in it. The error says why the suite could
// not run.
func Run(targets []Target, o Options) ([]Report, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	var judges []*judge
	defer func() {
		for _, j := range judges {
			j.close()
		}
	}()
	reports, references := make([]Report, len(targets)), map[op.DType]*reference{}
	var types []op.DType // in the order of the targets
	for i := range targets {
		t := &targets[i]
		if references[t.Act] == nil {
			r, err := newReference(t.Act, o.Seed)
			if err != nil {
				return nil, err
			}
			references[t.Act], types = r, append(types, t.Act)
		}
		j, err := newJudge(t, o, references[t.Act])
		if err != nil {
			return nil, err
		}
		judges, reports[i].Target = append(judges, j), t.Name
	}
	var all []sitting
	for _, act := range types {
		all = append(all, sittings(judges, act, o)...)
	}
	for i, s := range all {
		o.tell(i, len(all), s.op, s.name)
		for k, j := range judges {
			if j.Act != s.act || !s.wanted(j.Target) {
				continue
			}
			done := o.watch(s.op, s.name)
			reports[k].Results = append(reports[k].Results, s.judge(j))
			done()
		}
	}
	return reports, nil
}

// sitting is one case for the targets with one type of activations.
type sitting struct {
	act      op.DType
	op, name string
	wanted   func(*Target) bool // targets that the case is for
	judge    func(*judge) Result
}

// sittings are the chosen cases that are for any of the targets with activations of a type.
func sittings(judges []*judge, act op.DType, o Options) []sitting {
	var list []sitting
	add := func(op, name string, wanted func(*Target) bool, judge func(*judge) Result) {
		if !o.wants(op, name) {
			return
		}
		for _, j := range judges {
			if j.Act == act && wanted(j.Target) {
				list = append(list, sitting{act, op, name, wanted, judge})
				return
			}
		}
	}
	every := func(*Target) bool { return true }
	alone := func(t *Target) bool { return !t.Together }
	for _, c := range cases(o, false) {
		add(c.Op, c.Name, every, func(j *judge) Result { return j.judge(c) })
	}
	if !o.Short {
		for _, c := range persistentCases() {
			add(c.Op, c.Name, func(t *Target) bool { return t.Persistent }, func(j *judge) Result { return j.judge(c) })
		}
	}
	for _, c := range batches(o) {
		add(c.Op, c.Name, alone, func(j *judge) Result { return j.judgeRows(c) })
	}
	for _, c := range conversations(o) {
		add("PagedAttention", c.name, alone, func(j *judge) Result { return j.judgeSplits(c) })
	}
	for _, h := range histories(o) {
		add(h.whole.Op, h.whole.Name, alone, func(j *judge) Result { return j.judgeHistory(h) })
	}
	return list
}
