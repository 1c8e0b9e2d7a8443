package optest

import (
	"maps"
	"reflect"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// reference asks the oracle, for all targets with one type of activations. It keeps the last case that it posed, so that targets that are
// judged one after the other by a case share its inputs and the oracle's answers.
type reference struct {
	side
	seed uint64
	last *posed
}

// posed is a case with the contents of its buffers, packed weights apart, and the oracle's answers so far.
type posed struct {
	*Case
	inputs  contents
	raw     map[string][][]byte // weights' matrices as a checkpoint holds them
	packed  contents            // the same as the oracle packs them, once it was asked
	answers map[string]answer   // by the rule of rounding
}

// answer is the oracle's results of a case.
type answer struct {
	contents
	unrounded map[string]*oracle.Unrounded // of the results that are numbers
	draws     [][]oracle.Choice            // of Sample
}

func newReference(act op.DType, seed uint64) (*reference, error) {
	memory := host.New(0)
	stream, err := memory.Stream(0)
	if err != nil {
		return nil, err
	}
	return &reference{side: side{device: memory, stream: stream, set: oracle.New(act), act: act}, seed: seed}, nil
}

// pose makes the contents of a case's buffers.
func (r *reference) pose(c *Case) (*posed, error) {
	if r.last != nil && r.last.Case == c {
		return r.last, nil
	}
	r.last = nil // gone before the next one is made
	list, err := r.fields(c)
	if err != nil {
		return nil, err
	}
	rng := c.random(r.seed)
	q := &posed{Case: c, raw: map[string][][]byte{}, answers: map[string]answer{}}
	if q.inputs, err = c.fill(list, rng); err != nil {
		return nil, err
	}
	for _, name := range c.matrices() {
		w := c.matrix(name)
		q.raw[name] = checkpoints(w, rng)
		if c.numbers[name] != nil {
			oracle.Encode(q.raw[name][0], op.BF16, c.numbers[name])
		}
		if scale, ok := q.inputs[name+".Scale"]; ok {
			oracle.Encode(scale, op.F32, factors(w, rng))
		}
	}
	r.last = q
	return q, nil
}

// answer runs a case on the oracle's side, or remembers what it gave. Activations are rounded by the rule, if there is one.
func (r *reference) answer(c *Case, rule string) (answer, error) {
	q, err := r.pose(c)
	if err != nil {
		return answer{}, err
	}
	known, ok := q.answers[rule]
	if ok {
		return known, nil
	}
	if q.packed == nil {
		packed := contents{}
		for name, raw := range q.raw {
			if packed[name+".Data"], err = r.pack(q.matrix(name), raw); err != nil {
				return answer{}, err
			}
		}
		q.packed = packed
	}
	given, s := maps.Clone(q.inputs), r.side
	maps.Copy(given, q.packed)
	if rule != "" {
		if s.set, err = oracle.New(r.act).Rounding(rule); err != nil {
			return answer{}, err
		}
	}
	a := answer{unrounded: map[string]*oracle.Unrounded{}}
	s.unrounded = a.unrounded
	a.contents, err = s.run(c, given, func(args reflect.Value) {
		if x, ok := args.Interface().(op.Sample); ok {
			for row := range int(x.Rows) {
				a.draws = append(a.draws, oracle.Choices(x, row))
			}
		}
	})
	if err != nil {
		return answer{}, err
	}
	q.answers[rule] = a
	return a, nil
}
