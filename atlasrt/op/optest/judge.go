package optest

import (
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// judge judges one target.
type judge struct {
	*Target
	Options
	target    side       // the kernels
	reference *reference // that they are compared with; nil for those who only measure
}

// newJudge makes the judge of a target.
func newJudge(t *Target, o Options, r *reference) (*judge, error) {
	scratch := t.Scratch
	if scratch == 0 {
		scratch = 256 << 20
	}
	stream, err := t.Device.Stream(scratch)
	if err != nil {
		return nil, fmt.Errorf("a stream on %s: %w", t.Name, err)
	}
	return &judge{t, o, side{device: t.Device, stream: stream, set: t.Set, act: t.Act}, r}, nil
}

// close ends the target's stream. Its failures have been reported by the cases that met them.
func (j *judge) close() { _ = j.target.stream.Close() }

// prepared is a case with the contents of its buffers on the target's side.
type prepared struct {
	*Case
	fields []field
	target contents
}

// prepare packs the weights of a case.
func (j *judge) prepare(c *Case) (*prepared, error) {
	q, err := j.reference.pose(c)
	if err != nil {
		return nil, err
	}
	p := &prepared{Case: c, target: maps.Clone(q.inputs)}
	for name, raw := range q.raw {
		if p.target[name+".Data"], err = j.target.pack(c.matrix(name), raw); err != nil {
			return nil, err
		}
	}
	p.fields, err = j.target.fields(c)
	return p, err
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
	want, err := j.reference.answer(c, j.rule(c, j.target.launched))
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
