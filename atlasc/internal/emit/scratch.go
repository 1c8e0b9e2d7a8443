package emit

import (
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/expr"
	"github.com/atlas-inference/atlas/atlasc/internal/plan"
)

// boundData is a method that bounds the scratch memory of one operation.
type boundData struct {
	Type, Op string
	Weight   string // name of its field; empty where the operation has none, and a single case
	Cases    []boundCase
}

// boundCase is what calls with some weight schemes may ask for.
type boundCase struct {
	Schemes string
	Most    []mostData
}

// mostData is what calls may ask for under a condition; under any where it is empty.
type mostData struct{ Condition, Bytes string }

// bounds are those of a set's operations. A model's set has some also where nothing is asked for, in the place of the base set's.
func bounds(h *plan.Hardware, s *plan.Set, setType string) []boundData {
	var all []boundData
	for _, d := range s.Ops {
		b := boundData{Type: setType, Op: d.Op.Name}
		if weight := d.Op.Weight(); weight != nil {
			b.Weight = weight.Name
		}
		for _, c := range d.Cases {
			most := most(c.Branches, h.Options)
			i := slices.IndexFunc(b.Cases, func(known boundCase) bool { return slices.Equal(known.Most, most) })
			switch {
			case len(most) == 0:
			case i < 0:
				b.Cases = append(b.Cases, boundCase{schemes(c), most})
			default:
				b.Cases[i].Schemes += ", " + schemes(c)
			}
		}
		if len(b.Cases) > 0 || s.Model != plan.Base {
			all = append(all, b)
		}
	}
	return all
}

// asked is what an entry asks for in one of the ways in which calls come to it.
type asked struct {
	way          expr.Way
	bytes, whole string // within the limits of the way, and without
}

// most lists what the entries of a case may ask for.
func most(branches []*plan.Entry, options []string) []mostData {
	var all []asked
	var before []expr.Way
	for _, choice := range plan.Choices(branches) {
		var ways []expr.Way // of which each entry of the choice may have any
		for _, e := range choice {
			own := expr.Ways(e.Needs, e.When)
			for _, w := range own {
				if left, reached := w.After(before, options); reached && e.Scratch != nil {
					all = append(all, asked{left, e.Scratch.GoWithin(left), e.Scratch.Go()})
				}
			}
			ways = append(ways, own...)
		}
		before = append(before, ways...)
	}
	var out []mostData
	for i, a := range all {
		others := slices.Concat(all[:i], slices.DeleteFunc(slices.Clone(all[i+1:]), func(b asked) bool { return a.covers(b) }))
		if slices.ContainsFunc(others, func(b asked) bool { return b.covers(a) }) {
			continue
		}
		condition := strings.Join(a.way.Fixed, " && ")
		if k := slices.IndexFunc(out, func(m mostData) bool { return m.Condition == condition }); k >= 0 {
			out[k].Bytes += ",\n" + a.bytes
			continue
		}
		out = append(out, mostData{condition, a.bytes})
	}
	return out
}

// covers tells whether a asks for as much as b does wherever b does.
func (a asked) covers(b asked) bool {
	narrower := slices.ContainsFunc(a.way.Fixed, func(part string) bool { return !slices.Contains(b.way.Fixed, part) })
	return !narrower && (a.bytes == b.bytes || a.bytes == b.whole)
}
