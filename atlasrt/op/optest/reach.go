package optest

import (
	"fmt"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/generated/ops"
)

// Reached counts how often Run would launch each kernel, for some sets of b. q only takes launches and runs none, so that no device is
// needed. A kernel without a count is never compared with the oracle.
func Reached(q op.Stream, b *bundle.Bundle, sets ...bundle.Set) (map[op.Kernel]int, error) {
	list, reached := cases(Options{}, b.IsPersistent()), map[op.Kernel]int{}
	for _, set := range sets {
		s := side{set: set, act: b.Activations}
		for _, c := range list {
			l := &listener{Stream: q}
			if err := s.call(c, l); err != nil {
				return nil, fmt.Errorf("%s %s: %w", c.Op, c.Name, err)
			}
			for _, k := range l.kernels {
				reached[k]++
			}
		}
	}
	return reached, nil
}

// call makes the calls of a case, and those that pack its weights, with addresses that nothing reads. It does nothing where the set has no
// kernels for the case's weights.
func (s *side) call(c *Case, q op.Stream) error {
	const somewhere op.Ptr = 1 << 40
	if slices.ContainsFunc(c.matrices(), func(name string) bool {
		w := c.matrix(name)
		return s.set.PackedBytes(w.Scheme, w.Rows, w.Cols) == 0
	}) {
		return nil
	}
	list, err := s.fields(c)
	if err != nil {
		return err
	}
	places, _ := layout(list)
	ops.Call(s.set, q, s.bind(c, places, somewhere).Interface())
	for _, name := range c.matrices() {
		w := c.matrix(name)
		w.Data, w.Count = somewhere, 1
		bytes := w.Scheme.RawBytes(int64(w.Rows), int64(w.Cols))
		s.set.Pack(q, op.Pack{W: w, Raw: somewhere, Bytes: bytes})
		s.set.Unpack(q, op.Unpack{W: w, Raw: somewhere, Bytes: bytes})
	}
	return nil
}
