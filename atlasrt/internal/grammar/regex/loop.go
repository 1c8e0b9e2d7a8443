package regex

// loop makes an expression that is said later, by loops. What it says must go through a byte before it comes to the loop again.
func (s *Set) loop(nullable bool) Ref {
	flags := uint8(0)
	if nullable {
		flags = flagNullable | flagAlive
	}
	s.loops = append(s.loops, Nothing)
	return s.intern(node{kind: kindLoop, flags: flags, lo: int32(len(s.loops) - 1)})
}

// guard takes a loop out of an expression where no byte comes before it: going around without a byte adds no text.
func (s *Set) guard(r, loop Ref) Ref {
	if r == loop {
		return Nothing
	}
	n := s.nodes[r]
	switch n.kind {
	case kindUnion, kindIntersect:
		parts := make([]Ref, 0, n.hi-n.lo)
		for _, p := range s.parts(r) {
			parts = append(parts, s.guard(p, loop))
		}
		if n.kind == kindUnion {
			return s.or(parts)
		}
		return s.and(parts)
	case kindRepeat:
		if n.lo == 0 && n.hi == 1 {
			return s.or([]Ref{s.guard(n.a, loop), Empty})
		}
	case kindConcat:
		if s.Nullable(n.a) {
			return s.or([]Ref{s.concat(s.NonEmpty(n.a), n.b), s.guard(n.b, loop)})
		}
	case kindLoop:
		said := s.loops[n.lo]
		if guarded := s.guard(said, loop); guarded != said {
			return guarded
		}
	}
	return r
}
