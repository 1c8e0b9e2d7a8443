package optest

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Reached are the kernels that Run launches of some sets of a bundle, for each how often. Nothing runs, and so no device is needed: a
// kernel that is not among them is never compared with the oracle.
func Reached(act op.DType, sets ...bundle.Set) (map[op.Kernel]int, error) {
	list, dry := cases(Options{}), &dryStream{reached: map[op.Kernel]int{}}
	for _, set := range sets {
		if err := dry.reach(&side{set: set, act: act}, list); err != nil {
			return nil, err
		}
	}
	return dry.reached, nil
}

// dryBase is where all memory of a dry stream lies.
const dryBase op.Ptr = 1 << 40

// dryStream counts launches, and runs none.
type dryStream struct {
	room    []byte
	reached map[op.Kernel]int
	err     error
}

// reach makes the calls of all cases whose weights a set has kernels for.
func (dry *dryStream) reach(s *side, list []*Case) error {
	unknown := func(name string, c *Case) bool {
		w := c.matrix(name)
		return s.set.PackedBytes(w.Scheme, w.Rows, w.Cols) == 0
	}
	for _, c := range list {
		if slices.ContainsFunc(c.matrices(), func(name string) bool { return unknown(name, c) }) {
			continue
		}
		fields, err := s.fields(c)
		if err != nil {
			return err
		}
		places, _ := layout(fields)
		invoke(s.set, dry, s.bind(c, places, dryBase).Interface())
		for _, name := range c.matrices() {
			w := c.matrix(name)
			w.Data, w.Count = dryBase, 1
			bytes := w.Scheme.RawBytes(int64(w.Rows), int64(w.Cols))
			s.set.Pack(dry, op.Pack{W: w, Raw: dryBase, Bytes: bytes})
			s.set.Unpack(dry, op.Unpack{W: w, Raw: dryBase, Bytes: bytes})
		}
		if dry.err != nil {
			return fmt.Errorf("%s %s: %w", c.Op, c.Name, dry.err)
		}
	}
	return nil
}

func (s *dryStream) Args(bytes uintptr) unsafe.Pointer {
	s.room = make([]byte, bytes)
	return unsafe.Pointer(unsafe.SliceData(s.room))
}
func (s *dryStream) Launch(k op.Kernel, _ op.Grid)  { s.reached[k]++ }
func (s *dryStream) Scratch(int64) op.Ptr           { return dryBase }
func (s *dryStream) TensorMap(op.Tile) op.TensorMap { return op.TensorMap{} }
func (s *dryStream) Fail(err error) {
	if s.err == nil {
		s.err = err
	}
}
