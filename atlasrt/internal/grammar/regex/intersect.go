package regex

import "slices"

// And is all of some expressions at once. And of none is any text.
func (s *Set) And(parts ...Ref) Ref { return s.intersect(parts, true) }

// and is And for derivatives, of which there are many: what it does not see at once it sees in their own derivatives.
func (s *Set) and(parts []Ref) Ref { return s.intersect(parts, false) }

// intersect is And. Thorough, it proves of any complement that it leaves nothing of another term, and otherwise of those of plain stars.
func (s *Set) intersect(parts []Ref, thorough bool) Ref {
	terms := make([]Ref, 0, len(parts)+2)
	var class, excluded []Ref
	for _, r := range parts {
		s.steps++
		n := s.nodes[r]
		switch {
		case r == Nothing:
			return Nothing
		case r == anything:
		case n.kind == kindIntersect:
			terms = append(terms, s.parts(r)...)
		default:
			terms = append(terms, r)
		}
	}
	slices.Sort(terms)
	terms = slices.Compact(terms)
	if len(terms) > 0 && terms[0] == Empty {
		for _, r := range terms {
			if !s.Nullable(r) {
				return Nothing
			}
		}
		return Empty
	}
	kept := terms[:0]
	for _, r := range terms {
		switch n := s.nodes[r]; n.kind {
		case kindClass:
			class = append(class, r)
		case kindComplement:
			excluded = append(excluded, n.a)
		default:
			kept = append(kept, r)
		}
	}
	terms = kept
	if len(class) > 0 {
		return s.andClass(class, terms, excluded)
	}
	if len(excluded) > 0 {
		out := s.or(excluded)
		plain := s.isPlainStar(out)
		if slices.ContainsFunc(terms, func(r Ref) bool { return r == out || plain && s.plainHolds(out, r) || thorough && s.holds(out, r) }) {
			return Nothing
		}
		r := s.Not(out)
		if r == Nothing {
			return Nothing
		}
		terms = append(terms, r)
		if s.nodes[r].kind != kindComplement {
			return s.intersect(terms, thorough)
		}
	}
	return s.andTerms(terms)
}

// andClass is an intersection with classes: it is a class.
func (s *Set) andClass(classes, terms, excluded []Ref) Ref {
	c := s.set(classes[0])
	for _, r := range classes[1:] {
		c = c.and(s.set(r))
	}
	var kept byteSet
	for b := range 256 {
		if c.has(byte(b)) && s.matchesByte(byte(b), terms, excluded) {
			kept.add(byte(b))
		}
	}
	return s.class(kept)
}

func (s *Set) matchesByte(b byte, terms, excluded []Ref) bool {
	for _, r := range terms {
		if !s.Nullable(s.Derive(r, b)) {
			return false
		}
	}
	for _, r := range excluded {
		if s.Nullable(s.Derive(r, b)) {
			return false
		}
	}
	return true
}

// andTerms interns an intersection of terms, of which one at most is a complement and none a class.
func (s *Set) andTerms(terms []Ref) Ref {
	slices.Sort(terms)
	terms = slices.Compact(terms)
	terms = s.dropUnions(terms)
	terms = s.dropWider(terms)
	switch len(terms) {
	case 0:
		return anything
	case 1:
		return terms[0]
	}
	flags := flagNullable
	for _, r := range terms {
		flags &= s.nodes[r].flags
	}
	return s.internOperands(kindIntersect, terms, flags)
}

// dropUnions leaves out unions with another term.
func (s *Set) dropUnions(terms []Ref) []Ref {
	all := slices.Clone(terms)
	return slices.DeleteFunc(terms, func(r Ref) bool {
		if s.nodes[r].kind != kindUnion {
			return false
		}
		for _, p := range s.parts(r) {
			if _, also := slices.BinarySearch(all, p); also {
				return true
			}
		}
		return false
	})
}

// Not is every text of bytes that r does not match. Together with Text, every text of characters.
func (s *Set) Not(r Ref) Ref {
	switch n := s.nodes[r]; {
	case r == Nothing:
		return anything
	case r == anything:
		return Nothing
	case n.kind == kindComplement:
		return n.a
	}
	return s.intern(node{kind: kindComplement, flags: ^s.nodes[r].flags & flagNullable, a: r})
}

// Without is every text of bytes in which none of some words occurs.
func (s *Set) Without(words ...string) Ref {
	return s.Not(s.Concat(anything, s.Words(words...), anything))
}
