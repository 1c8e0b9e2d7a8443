package schema

import "slices"

// mostAbsorbed bounds the alternatives that are compared with each other.
const mostAbsorbed = 512

// absorb leaves out alternatives that are within others.
func (c *compiler) absorb(alternatives []*object) []*object {
	if c.tracked || len(alternatives) > mostAbsorbed {
		return alternatives
	}
	kept := make([]*object, 0, len(alternatives))
next:
	for i, o := range alternatives {
		for j, other := range alternatives {
			if i == j || !within(o, other) || j > i && within(other, o) {
				continue
			}
			continue next
		}
		kept = append(kept, o)
	}
	return kept
}

// within says that a is surely a part of b, as far as their nodes are the same.
func within(a, b *object) bool {
	if b.min > a.min || lower(a.max, b.max) != a.max || len(b.demands) > len(a.demands) || len(b.fields) > len(a.fields) {
		return false
	}
	if len(b.rest) != 1 || b.rest[0].keys != anyText || b.rest[0].value != always {
		if !slices.Equal(a.rest, b.rest) || len(b.fields) != len(a.fields) {
			return false
		}
	}
	for i := range b.fields {
		f := &b.fields[i]
		var g *field
		if i < len(a.fields) && a.fields[i].name == f.name {
			g = &a.fields[i]
		} else {
			g = a.find(f.name)
		}
		if g == nil || f.required && !g.required || f.value != always && f.value != g.value && g.value != never {
			return false
		}
	}
	for _, d := range b.demands {
		if !slices.Contains(a.demands, d) {
			return false
		}
	}
	return true
}
