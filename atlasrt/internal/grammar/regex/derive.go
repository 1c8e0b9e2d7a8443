package regex

// Derive matches what may follow a byte in the texts of r that begin with it. Once made, it is two look-ups.
func (s *Set) Derive(r Ref, b byte) Ref {
	row := &s.rows[r]
	if row.next == nil {
		s.open(r)
		row = &s.rows[r]
	}
	c := row.classes.Of[b]
	if d := row.next[c]; d != 0 {
		return d - 1
	}
	d := s.step(r, b)
	s.rows[r].next[c] = d + 1
	return d
}

// DeriveText is the derivative by one byte after the other.
func (s *Set) DeriveText(r Ref, text string) Ref {
	for i := 0; i < len(text) && r != Nothing; i++ {
		r = s.Derive(r, text[i])
	}
	return r
}

// Matches reports whether r matches a text.
func (s *Set) Matches(r Ref, text string) bool { return s.Nullable(s.DeriveText(r, text)) }

// open makes the table of derivatives.
func (s *Set) open(r Ref) {
	n := s.classesOf(r).Count()
	if n > len(s.free) {
		s.free = make([]Ref, max(n, 1024))
	}
	s.rows[r].next = s.free[:n:n]
	s.free = s.free[n:]
	s.bytes += 4 * n
}

// peek is Derive, without a table for expressions whose derivatives are at hand.
func (s *Set) peek(r Ref, b byte) Ref {
	s.steps++
	switch n := s.nodes[r]; n.kind {
	case kindNothing, kindEmpty:
		return Nothing
	case kindClass:
		if s.sets[n.lo].has(b) {
			return Empty
		}
		return Nothing
	case kindWords:
		if n.hi == n.lo+1 {
			if w := s.lists[n.a][n.lo]; len(w) == int(n.b) || w[n.b] != b {
				return Nothing
			}
		}
	case kindConcat:
		if !s.Nullable(n.a) {
			head := s.peek(n.a, b)
			if head == Nothing {
				return Nothing
			}
			if head == Empty {
				return n.b
			}
		}
	}
	return s.Derive(r, b)
}

// step makes a derivative.
func (s *Set) step(r Ref, b byte) Ref {
	s.steps++
	n := s.nodes[r]
	switch n.kind {
	case kindClass:
		return s.peek(r, b)
	case kindWords:
		return s.stepWords(n, b)
	case kindConcat:
		return s.stepConcat(n, b)
	case kindUnion:
		var parts []Ref
		for _, p := range s.parts(r) {
			if d := s.peek(p, b); d != Nothing {
				parts = append(parts, d)
			}
		}
		return s.or(parts)
	case kindIntersect:
		parts := make([]Ref, 0, n.hi-n.lo)
		for _, p := range s.parts(r) {
			d := s.peek(p, b)
			if d == Nothing {
				return Nothing
			}
			parts = append(parts, d)
		}
		return s.and(parts)
	case kindComplement:
		return s.Not(s.peek(n.a, b))
	case kindRepeat:
		rest := counted{n.a, max(n.lo-1, 0), n.hi}
		if n.hi != unbounded {
			rest.hi--
		}
		d := s.peek(n.a, b)
		if d == Nothing {
			return Nothing
		}
		return s.concat(d, s.repeat(rest))
	case kindLoop:
		return s.peek(s.loops[n.lo], b)
	}
	return Nothing
}

// stepConcat is the derivative of a concatenation: of its head, and of what is behind it where the head may be empty, and so on.
func (s *Set) stepConcat(n node, b byte) Ref {
	var parts []Ref
	for {
		if d := s.concat(s.peek(n.a, b), n.b); d != Nothing {
			parts = append(parts, d)
		}
		if !s.Nullable(n.a) {
			break
		}
		tail := s.nodes[n.b]
		if tail.kind != kindConcat {
			if d := s.peek(n.b, b); d != Nothing {
				parts = append(parts, d)
			}
			break
		}
		n = tail
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return s.or(parts)
}
