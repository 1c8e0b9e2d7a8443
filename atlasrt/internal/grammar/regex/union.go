package regex

import "slices"

// Or is one of some expressions.
func (s *Set) Or(parts ...Ref) Ref { return s.or(parts) }

// alternatives is a union in the making. No term is a union or matches only the empty text.
type alternatives struct {
	terms    []Ref
	optional bool // the empty text as well
	all      bool // any text
}

func (s *Set) or(parts []Ref) Ref {
	u := alternatives{terms: make([]Ref, 0, len(parts)+4)}
	for _, r := range parts {
		s.alternative(&u, r)
	}
	for !u.all {
		slices.Sort(u.terms)
		u.terms = slices.Compact(u.terms)
		s.steps += len(u.terms)
		if !s.mergeOnce(&u) {
			break
		}
	}
	if u.all {
		return anything
	}
	result := Nothing
	switch len(u.terms) {
	case 0:
	case 1:
		result = u.terms[0]
	default:
		flags := uint8(0)
		for _, r := range u.terms {
			flags |= s.nodes[r].flags
		}
		result = s.internOperands(kindUnion, u.terms, flags)
	}
	if !u.optional || result != Nothing && s.Nullable(result) {
		return result
	}
	if result == Nothing {
		return Empty
	}
	return s.repeatNode(counted{result, 0, 1})
}

// alternative adds a term.
func (s *Set) alternative(u *alternatives, r Ref) {
	s.steps++
	n := s.nodes[r]
	switch {
	case r == Nothing:
	case r == Empty:
		u.optional = true
	case r == anything:
		u.all = true
	case n.kind == kindUnion:
		u.terms = append(u.terms, s.parts(r)...)
	case n.kind == kindRepeat && n.lo == 0 && n.hi == 1:
		u.optional = true
		s.alternative(u, n.a)
	default:
		u.terms = append(u.terms, r)
	}
}

// mergeOnce makes terms fewer by one law, and reports whether it could.
func (s *Set) mergeOnce(u *alternatives) bool {
	var kinds [kindLoop + 1]int
	for _, r := range u.terms {
		kinds[s.nodes[r].kind]++
	}
	switch {
	case kinds[kindRepeat] > 0 && s.mergeCounts(u):
	case kinds[kindClass] > 1:
		var c byteSet
		for _, r := range s.take(u, kindClass) {
			c = c.or(s.set(r))
		}
		s.alternative(u, s.class(c))
	case kinds[kindWords] > 1:
		s.alternative(u, s.mergeWords(s.take(u, kindWords)))
	case kinds[kindComplement] > 0 && s.mergeComplements(u):
	case kinds[kindIntersect] > 0 && s.dropIntersections(u):
	case kinds[kindRepeat]+kinds[kindConcat] > 0 && s.dropWithin(u):
	case kinds[kindConcat] > 0 && s.mergeTails(u):
	default:
		return false
	}
	return true
}

// take removes the terms of a kind.
func (s *Set) take(u *alternatives, k kind) (taken []Ref) {
	kept := u.terms[:0]
	for _, r := range u.terms {
		if s.nodes[r].kind == k {
			taken = append(taken, r)
		} else {
			kept = append(kept, r)
		}
	}
	u.terms = kept
	return taken
}

// mergeCounts joins repetitions of one body whose counts touch: x{2,3}|x{4} is x{2,4}.
func (s *Set) mergeCounts(u *alternatives) bool {
	counts := make([]counted, 0, len(u.terms))
	for _, r := range u.terms {
		counts = append(counts, s.count(r))
	}
	slices.SortFunc(counts, func(a, b counted) int {
		if a.body != b.body {
			return int(a.body) - int(b.body)
		}
		return int(a.lo) - int(b.lo)
	})
	changed := false
	merged := counts[:0]
	for _, c := range counts {
		if u.optional && c.lo == 1 && c.hi != 1 {
			c.lo, changed = 0, true
		}
		if len(merged) > 0 {
			last := &merged[len(merged)-1]
			if last.body == c.body && (last.hi == unbounded || c.lo <= last.hi+1) {
				last.hi, changed = max(last.hi, c.hi), true
				continue
			}
		}
		merged = append(merged, c)
	}
	merged, fewer := s.dropCounts(merged)
	if !changed && !fewer {
		return false
	}
	terms := make([]Ref, 0, len(merged))
	for _, c := range merged {
		if c.lo == 0 {
			u.optional = false
		}
	}
	u.terms = terms
	for _, c := range merged {
		s.alternative(u, s.repeat(c))
	}
	return true
}

// dropCounts leaves out repetitions of a class that are part of others: a{2} of [ab]*.
func (s *Set) dropCounts(counts []counted) ([]counted, bool) {
	const most = 8
	var classes [most]int
	n := 0
	for i, c := range counts {
		if s.nodes[c.body].kind == kindClass && n < most {
			classes[n] = i
			n++
		}
	}
	if n < 2 {
		return counts, false
	}
	dropped := false
	for _, i := range classes[:n] {
		for _, j := range classes[:n] {
			small, large := counts[i], counts[j]
			if i != j && large.body != Nothing && large.hi > 1 && large.lo <= small.lo && small.hi <= large.hi && small.body != large.body &&
				s.set(small.body).within(s.set(large.body)) {
				counts[i].body, dropped = Nothing, true
				break
			}
		}
	}
	if !dropped {
		return counts, false
	}
	return slices.DeleteFunc(counts, func(c counted) bool { return c.body == Nothing }), true
}

// mergeComplements joins complements: one with what it is the complement of is any text, and two are that of an intersection.
func (s *Set) mergeComplements(u *alternatives) bool {
	var inner []Ref
	for _, r := range u.terms {
		if n := s.nodes[r]; n.kind == kindComplement {
			inner = append(inner, n.a)
			if _, both := slices.BinarySearch(u.terms, n.a); both {
				u.all = true
				return true
			}
		}
	}
	if len(inner) < 2 {
		return false
	}
	s.take(u, kindComplement)
	s.alternative(u, s.Not(s.and(inner)))
	return true
}

// dropIntersections leaves out intersections with another term.
func (s *Set) dropIntersections(u *alternatives) bool {
	before := len(u.terms)
	terms := slices.Clone(u.terms)
	u.terms = slices.DeleteFunc(u.terms, func(r Ref) bool {
		if s.nodes[r].kind != kindIntersect {
			return false
		}
		for _, p := range s.parts(r) {
			if _, also := slices.BinarySearch(terms, p); also {
				return true
			}
		}
		return false
	})
	return len(u.terms) < before
}

// mergeTails joins terms that end alike: xz|yz is (x|y)z, and xz|z is x?z.
func (s *Set) mergeTails(u *alternatives) bool {
	ends := make([]Ref, 0, len(u.terms))
	for _, r := range u.terms {
		if s.nodes[r].kind == kindConcat {
			ends = append(ends, r)
		}
	}
	slices.SortFunc(ends, func(a, b Ref) int {
		if d := int(s.nodes[a].b) - int(s.nodes[b].b); d != 0 {
			return d
		}
		return int(a) - int(b)
	})
	var gone, joined []Ref
	for i := 0; i < len(ends); {
		tail := s.nodes[ends[i]].b
		var heads []Ref
		from := i
		for ; i < len(ends) && s.nodes[ends[i]].b == tail; i++ {
			heads = append(heads, s.nodes[ends[i]].a)
		}
		if len(heads) > 1 {
			gone = append(gone, ends[from:i]...)
			joined = append(joined, s.concat(s.or(heads), tail))
		}
	}
	if len(gone) == 0 {
		for _, r := range ends {
			head, tail := s.split(r)
			if _, alone := slices.BinarySearch(u.terms, tail); alone && !slices.Contains(gone, r) && !slices.Contains(gone, tail) {
				gone = append(gone, r, tail)
				joined = append(joined, s.concat(s.or([]Ref{head, Empty}), tail))
			}
		}
	}
	if len(gone) == 0 {
		return false
	}
	slices.Sort(gone)
	u.terms = slices.DeleteFunc(u.terms, func(r Ref) bool {
		_, found := slices.BinarySearch(gone, r)
		return found
	})
	for _, r := range joined {
		s.alternative(u, r)
	}
	return true
}
