package regex

// Concat is one expression behind the other.
func (s *Set) Concat(parts ...Ref) Ref {
	result := Empty
	for i := len(parts) - 1; i >= 0; i-- {
		text, literal := s.single(parts[i])
		if !literal {
			result = s.concat(parts[i], result)
			continue
		}
		first := i
		size := len(text)
		for first > 0 {
			before, ok := s.single(parts[first-1])
			if !ok {
				break
			}
			first, size = first-1, size+len(before)
		}
		if first == i {
			result = s.concat(parts[i], result)
			continue
		}
		joined := make([]byte, 0, size)
		for _, p := range parts[first : i+1] {
			text, _ := s.single(p)
			joined = append(joined, text...)
		}
		result = s.concat(s.Literal(string(joined)), result)
		i = first
	}
	return result
}

// concat is a, then b. The parts of a come one by one, so that heads are never concatenations.
func (s *Set) concat(a, b Ref) Ref {
	if a == Nothing || b == Nothing {
		return Nothing
	}
	if s.nodes[a].kind != kindConcat {
		return s.prepend(a, b)
	}
	var heads []Ref
	for s.nodes[a].kind == kindConcat {
		heads = append(heads, s.nodes[a].a)
		a = s.nodes[a].b
	}
	b = s.prepend(a, b)
	for i := len(heads) - 1; i >= 0; i-- {
		b = s.prepend(heads[i], b)
	}
	return b
}

// prepend is concat for a head that is no concatenation.
func (s *Set) prepend(head, tail Ref) Ref {
	switch {
	case head == Nothing || tail == Nothing:
		return Nothing
	case head == Empty:
		return tail
	case tail == Empty:
		return head
	}
	next, rest := s.split(tail)
	h, n := s.count(head), s.count(next)
	if h.body == n.body && (h.hi != 1 || n.hi != 1 || h.lo != 1 || n.lo != 1 || head == next) {
		if sum, ok := h.plus(n); ok {
			return s.prepend(s.repeat(sum), rest)
		}
	}
	if s.Nullable(head) && n.lo == 0 && n.hi == unbounded && s.isWithin(head, next) {
		return tail
	}
	flags := s.sure(head) & s.sure(tail)
	if s.Nullable(head) && s.Nullable(tail) {
		flags |= flagNullable
	}
	return s.intern(node{kind: kindConcat, flags: flags, a: head, b: tail})
}

// split is the first part of an expression and what is behind it.
func (s *Set) split(r Ref) (head, tail Ref) {
	if n := s.nodes[r]; n.kind == kindConcat {
		return n.a, n.b
	}
	return r, Empty
}

// counted is an expression from lo to hi times.
type counted struct {
	body   Ref
	lo, hi int32
}

// count is an expression as a repetition, if only of once.
func (s *Set) count(r Ref) counted {
	if n := s.nodes[r]; n.kind == kindRepeat {
		return counted{n.a, n.lo, n.hi}
	}
	return counted{r, 1, 1}
}

// plus counts both, one behind the other. It is false where the sum is too large to count.
func (c counted) plus(d counted) (counted, bool) {
	sum := counted{c.body, c.lo + d.lo, unbounded}
	if c.hi != unbounded && d.hi != unbounded {
		sum.hi = c.hi + d.hi
	}
	return sum, sum.lo <= maxCount && (sum.hi == unbounded || sum.hi <= maxCount)
}

// Repeat is r from least to most times; most is -1 where there is no bound. Counts above 2^30 are held as 2^30, or as no bound.
func (s *Set) Repeat(r Ref, least, most int) Ref {
	c := counted{r, int32(min(max(least, 0), maxCount)), unbounded}
	if most >= 0 && most < max(least, 0) {
		return Nothing
	}
	if most >= 0 && most <= maxCount {
		c.hi = int32(most)
	}
	return s.repeat(c)
}

func (s *Set) repeat(c counted) Ref {
	switch {
	case c.hi == 0 || c.body == Empty || c.body == Nothing && c.lo == 0:
		return Empty
	case c.body == Nothing:
		return Nothing
	case c.lo == 1 && c.hi == 1:
		return c.body
	}
	if s.Nullable(c.body) {
		c.body, c.lo = s.NonEmpty(c.body), 0
	}
	if inner := s.nodes[c.body]; inner.kind == kindRepeat {
		if flat, ok := (counted{inner.a, inner.lo, inner.hi}).times(c.lo, c.hi); ok {
			return s.repeat(flat)
		}
	}
	if c.hi == unbounded {
		c.body = s.loosen(c.body)
	}
	if c.lo == 0 && c.hi == 1 {
		return s.or([]Ref{c.body, Empty})
	}
	return s.repeatNode(c)
}

func (s *Set) repeatNode(c counted) Ref {
	flags := s.sure(c.body)
	if c.lo == 0 {
		flags |= flagNullable | flagAlive
	}
	return s.intern(node{kind: kindRepeat, flags: flags, a: c.body, lo: c.lo, hi: c.hi})
}

// times is a repetition from lo to hi times, as one repetition: it is false where the counts have gaps.
func (c counted) times(lo, hi int32) (counted, bool) {
	// lo times give lo*c.lo to lo*c.hi; one time more must begin before there is a gap. More times only overlap more.
	next := int64(lo+1) * int64(c.lo)
	if lo < hi && c.hi != unbounded && int64(lo)*int64(c.hi)+1 < next || lo < hi && c.hi == unbounded && lo == 0 && c.lo > 1 {
		return counted{}, false
	}
	least, most := int64(lo)*int64(c.lo), int64(unbounded)
	if hi != unbounded && c.hi != unbounded {
		most = int64(hi) * int64(c.hi)
	}
	if least > maxCount || most != unbounded && most > maxCount {
		return counted{}, false
	}
	return counted{c.body, int32(least), int32(most)}, true
}

// loosen takes the repetitions out of a body that is itself repeated without bound: (a|b+)* is (a|b)*.
func (s *Set) loosen(body Ref) Ref {
	if s.nodes[body].kind != kindUnion {
		return body
	}
	changed := false
	var parts []Ref
	for _, p := range s.parts(body) {
		if n := s.nodes[p]; n.kind == kindRepeat && n.lo == 1 && n.hi == unbounded {
			p, changed = n.a, true
		}
		parts = append(parts, p)
	}
	if !changed {
		return body
	}
	return s.or(parts)
}

// NonEmpty is r without the empty text.
func (s *Set) NonEmpty(r Ref) Ref {
	if !s.Nullable(r) {
		return r
	}
	n := s.nodes[r]
	switch n.kind {
	case kindEmpty:
		return Nothing
	case kindWords:
		return s.wordsRange(n.a, n.lo+1, n.hi, n.b)
	case kindUnion:
		var parts []Ref
		for _, p := range s.parts(r) {
			parts = append(parts, s.NonEmpty(p))
		}
		return s.or(parts)
	case kindConcat:
		var parts []Ref
		for n.kind == kindConcat {
			parts = append(parts, s.concat(s.NonEmpty(n.a), n.b))
			r = n.b
			n = s.nodes[r]
		}
		return s.or(append(parts, s.NonEmpty(r)))
	case kindRepeat:
		return s.repeat(counted{n.a, 1, n.hi})
	}
	return s.and([]Ref{r, s.Repeat(anyByte, 1, -1)})
}
