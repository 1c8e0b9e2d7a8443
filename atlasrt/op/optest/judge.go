package optest

import (
	"errors"
	"maps"
	"math"
	"reflect"

	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// prepared is a case with the contents of its buffers on the target's side.
type prepared struct {
	*Case
	fields []field
	target contents
	raw    map[string][][]byte // weights' matrices as a checkpoint holds them
}

// prepare fills the buffers of a case and packs its weights.
func (j *judge) prepare(c *Case) (*prepared, error) {
	rng := c.random(j.Seed)
	list, err := j.oracle.fields(c)
	if err != nil {
		return nil, err
	}
	p := &prepared{Case: c, raw: map[string][][]byte{}}
	if p.target, err = c.fill(list, rng); err != nil {
		return nil, err
	}
	for _, name := range c.matrices() {
		w := c.matrix(name)
		raw := checkpoints(w, rng)
		if c.numbers[name] != nil {
			oracle.Encode(raw[0], op.BF16, c.numbers[name])
		}
		if scale, ok := p.target[name+".Scale"]; ok {
			oracle.Encode(scale, op.F32, factors(w, rng))
		}
		if p.target[name+".Data"], err = j.target.pack(w, raw); err != nil {
			return nil, err
		}
		p.raw[name] = raw
	}
	p.fields, err = j.target.fields(c)
	return p, err
}

// wanted is the oracle's results of a case.
type wanted struct {
	contents
	unrounded map[string]*oracle.Unrounded // of the results that are numbers
	draws     [][]oracle.Choice            // of Sample
}

// reference runs a case on the oracle's side. The contents of its buffers are the target's, except packed weights. Activations are rounded
// by the rule, if there is one.
func (j *judge) reference(p *prepared, rule string) (want wanted, err error) {
	before, side := maps.Clone(p.target), j.oracle
	side.unrounded = map[string]*oracle.Unrounded{}
	if rule != "" {
		if side.set, err = oracle.New(j.Act).Rounding(rule); err != nil {
			return want, err
		}
	}
	for name, raw := range p.raw {
		if before[name+".Data"], err = side.pack(p.matrix(name), raw); err != nil {
			return want, err
		}
	}
	want.contents, err = side.run(p.Case, before, func(args reflect.Value) {
		if x, ok := args.Interface().(op.Sample); ok {
			for r := range int(x.Rows) {
				want.draws = append(want.draws, oracle.Choices(x, r))
			}
		}
	})
	want.unrounded = side.unrounded
	return want, err
}

// judge runs a case on both sides.
func (j *judge) judge(c *Case) Result {
	result := Result{Op: c.Op, Case: c.Name}
	if c.Op == "Pack" || c.Op == "Unpack" {
		return j.judgePacking(c)
	}
	p, err := j.prepare(c)
	if err != nil {
		return result.failed(err)
	}
	got, err := j.target.run(c, p.target, nil)
	if err != nil {
		return result.failed(err)
	}
	want, err := j.reference(p, j.rule(c, j.target.launched))
	if err != nil {
		return result.failed(err)
	}
	if c.Op == "Sample" {
		forgive(want.draws, p.target, want.contents["Out"], got["Out"])
	}
	for _, f := range p.fields {
		if f.role != in {
			limit := j.limit(c, f)
			e, message := compare(f, p.target[f.name], want.contents[f.name], got[f.name], want.unrounded[f.name], c.scatter(), limit == 0)
			result.add(e, limit, message)
		}
	}
	return result
}

// rule is how the kernels of a call round activations. It is "" where the weight does not allow that: a kernel that rounds all the same
// then fails.
func (j *judge) rule(c *Case, launched []op.Kernel) string {
	if w, ok := c.weight(); ok && w.Rounding == op.RoundingNone {
		return ""
	}
	for _, k := range launched {
		if rule := j.Rounds[k]; rule != "" {
			return rule
		}
	}
	return ""
}

// judgePacking judges Pack and Unpack: side.pack calls both.
func (j *judge) judgePacking(c *Case) Result {
	result := Result{Op: c.Op, Case: c.Name, Status: Pass}
	w, _ := c.weight()
	if _, err := j.target.pack(w, checkpoints(w, c.random(j.Seed))); err != nil {
		return result.failed(err)
	}
	return result
}

// limit is the tolerance of one result; 0 means that bits are compared, as for integers and for numbers that are only moved.
func (j *judge) limit(c *Case, f field) float64 {
	moved := c.Op == "Convert" || c.Op == "CausalConv" && f.name == "State" || c.Op == "DeltaNet" && f.name == "Window"
	if moved || f.dtype != op.F32 && f.dtype != op.BF16 && f.dtype != op.F16 {
		return 0
	}
	return j.tolerance(c, f)
}

// failed ends a result with an error.
func (r Result) failed(err error) Result {
	r.Status, r.Error, r.Message = Fail, math.Inf(1), err.Error()
	if errors.Is(err, errNoScheme) || errors.Is(err, errNotServed) {
		r.Status, r.Error = Skip, 0
	}
	return r
}

// add adds one comparison to a result, which keeps the error that is largest in units of its tolerance.
func (r *Result) add(e, tolerance float64, message string) {
	if r.Status == "" || excess(e, tolerance) > excess(r.Error, r.Tolerance) {
		r.Error, r.Tolerance, r.Message = e, tolerance, message
	}
	r.Status = Pass
	if excess(r.Error, r.Tolerance) > 1 {
		r.Status = Fail
	}
}

// excess is an error in units of its tolerance.
func excess(e, tolerance float64) float64 {
	switch {
	case e == 0:
		return 0
	case tolerance == 0:
		return math.Inf(1)
	}
	return e / tolerance
}
