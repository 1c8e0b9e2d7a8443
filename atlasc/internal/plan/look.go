package plan

import (
	"fmt"
	"slices"
)

// CheckModel tells what is wrong with the name of a model's folder, if anything.
func CheckModel(name string) error {
	if !modelName.MatchString(name) {
		return fmt.Errorf("model folder %q is not made of small letters, digits, dashes and dots", name)
	}
	return nil
}

// Layout returns the layout of a scheme by the name that manifests use; nil where the hardware has none.
func (h *Hardware) Layout(scheme string) *Layout {
	i := slices.IndexFunc(h.Layouts, func(l Layout) bool { return SchemeName(l.Scheme) == scheme })
	if i < 0 {
		return nil
	}
	return &h.Layouts[i]
}

// Case lists the entries that serve an operation for a scheme, "" where it has no weight; nil where the set's table has
// none.
func (s *Set) Case(op, scheme string) []*Entry {
	d := s.Dispatch(op)
	if d == nil {
		return nil
	}
	for _, c := range d.Cases {
		for _, k := range c.Schemes {
			if SchemeName(k) == scheme {
				return c.Branches
			}
		}
		if len(c.Schemes) == 0 {
			return c.Branches
		}
	}
	return nil
}
