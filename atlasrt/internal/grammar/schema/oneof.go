package schema

import "slices"

// oneOf is what exactly one of the schemas allows. Alternatives that share values have those of the others taken out.
func (k *keywords) oneOf(nodes []node) *set {
	sets := k.readAll(nodes)
	if v, ok := k.onceListed(sets); ok {
		return v
	}
	others := make([][]node, len(sets))
	for i := range sets {
		for j := range i {
			if !k.spend(1) {
				return &set{}
			}
			if nodes[i] == nodes[j] || !k.disjoint(sets[i], sets[j]) {
				others[i], others[j] = append(others[i], nodes[j]), append(others[j], nodes[i])
			}
		}
	}
	exact := make([]*set, len(sets))
	for i, v := range sets {
		for _, other := range others[i] {
			v = k.subtract(v, k.read(other))
		}
		exact[i] = v
	}
	return k.uniteAll(exact)
}

// onceListed is what exactly one of some lists of scalars has; false: they are not lists.
func (c *compiler) onceListed(sets []*set) (v *set, ok bool) {
	var listed []string
	var decimals []decimal
	var nulls, noes, yeses int
	for _, s := range sets {
		if !s.scalar() || s.text != nil && s.text.kind != words || !s.number.none() && len(s.number.finite) == 0 {
			return nil, false
		}
		if s.text != nil {
			listed = append(listed, s.text.words...)
		}
		decimals = append(decimals, s.number.finite...)
		nulls, noes, yeses = nulls+one(s.null), noes+one(s.no), yeses+one(s.yes)
	}
	c.spend(len(listed) + len(decimals))
	slices.Sort(listed)
	slices.SortFunc(decimals, decimal.compare)
	return &set{null: nulls == 1, no: noes == 1, yes: yeses == 1, text: wordTexts(single(listed)), number: numbers{finite: single(decimals)}}, true
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// single is the elements of a sorted list that come once.
func single[T comparable](sorted []T) (once []T) {
	for i, v := range sorted {
		if (i == 0 || sorted[i-1] != v) && (i+1 == len(sorted) || sorted[i+1] != v) {
			once = append(once, v)
		}
	}
	return once
}

// disjoint says that two sets surely share no value.
func (c *compiler) disjoint(a, b *set) bool {
	if a.null && b.null || a.no && b.no || a.yes && b.yes {
		return false
	}
	if c.someNumber(c.bothNumbers(a.number, b.number)) || c.someText(c.bothTexts(a.text, b.text)) {
		return false
	}
	for _, x := range a.arrays {
		for _, y := range b.arrays {
			if !c.spend(1) {
				return false
			}
			both := c.bothArrays(x, y)
			if both == nil {
				continue
			}
			if alive, sure := c.lookAtArray(both); alive || !sure {
				return false
			}
		}
	}
	for _, x := range a.objects {
		for _, y := range b.objects {
			if !c.spend(1) {
				return false
			}
			if c.apart(x, y) {
				continue
			}
			both := c.bothObjects(x, y)
			if both == nil {
				continue
			}
			if alive, sure := c.lookAtObject(both); alive || !sure {
				return false
			}
		}
	}
	return true
}

// apart says that two sets of objects are told apart by a property that both require: the cheap and frequent case.
func (c *compiler) apart(a, b *object) bool {
	for i := range a.fields {
		f := &a.fields[i]
		if !f.required {
			continue
		}
		if g := b.find(f.name); g != nil && g.required && f.value != g.value {
			if !c.narrow(f.value) || !c.narrow(g.value) || c.busy(f.value) || c.busy(g.value) {
				continue
			}
			x, y := c.read(f.value), c.read(g.value)
			if x.scalar() && y.scalar() && c.disjoint(x, y) {
				return true
			}
		}
	}
	return false
}
