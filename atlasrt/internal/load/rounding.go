package load

import (
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Unrounded is stored without roundings of activations, for users who do not want them whatever the checkpoint says.
func Unrounded(stored func(name string) (Storage, bool)) func(name string) (Storage, bool) {
	return func(name string) (Storage, bool) {
		s, ok := stored(name)
		s.Rounding = op.RoundingNone
		return s, ok
	}
}

// common is the rounding that all parts of a stack allow. It is that of first, the first part's, where it is that of all.
func common(stored func(name string) (Storage, bool), first op.Rounding, count int32, parts func(e int32) []model.Part) op.Rounding {
	if first == op.RoundingNone {
		return first
	}
	for e := range count {
		for _, p := range parts(e) {
			if _, rounding := formOf(stored, p.Name); rounding != first {
				return op.RoundingNone
			}
		}
	}
	return first
}
