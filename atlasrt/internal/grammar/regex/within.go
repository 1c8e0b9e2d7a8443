package regex

import "slices"

// Bounds of a proof that texts stay within a repetition: they make it cheap, and only keep some unions larger than they must be.
const (
	proofSteps = 2048
	proofEnds  = 8
	spineParts = 64
)

// proof follows the texts of an expression through the derivatives of another.
type proof struct {
	set   *Set
	steps int
}

// star reports whether r is a repetition without bounds.
func (s *Set) star(r Ref) bool {
	n := s.nodes[r]
	return n.kind == kindRepeat && n.lo == 0 && n.hi == unbounded
}

// isWithin reports whether what a star matches can be told to hold r, so that the star may follow r as if r were not there.
func (s *Set) isWithin(r, star Ref) bool {
	ends := s.prove(star, r)
	return len(ends) == 1 && ends[0] == star
}

// prove gives the derivatives of an expression by all texts of r; it is nil where it cannot tell, or where one is Nothing.
func (s *Set) prove(from, r Ref) []Ref {
	if s.proving {
		return nil
	}
	s.proving = true
	p := proof{set: s, steps: proofSteps}
	ends := p.through([]Ref{from}, r)
	s.proving = false
	s.steps += proofSteps - p.steps
	return ends
}

// through is prove from several expressions. What it gives may be more than there is.
func (p *proof) through(from []Ref, r Ref) []Ref {
	s := p.set
	for len(from) > 0 {
		p.steps--
		if p.steps < 0 || len(from) > proofEnds {
			return nil
		}
		n := s.nodes[r]
		switch n.kind {
		case kindEmpty:
			return from
		case kindConcat:
			from = p.through(from, n.a)
			r = n.b
			continue
		case kindUnion:
			var ends []Ref
			for _, part := range s.parts(r) {
				more := p.through(from, part)
				if more == nil {
					return nil
				}
				ends = join(ends, more)
			}
			return ends
		case kindIntersect:
			for _, part := range s.parts(r) {
				if ends := p.through(from, part); ends != nil {
					return ends
				}
			}
		case kindRepeat:
			return p.repeated(from, n)
		case kindClass, kindWords:
			var ends []Ref
			for _, f := range from {
				more := p.leaf(f, r)
				if more == nil {
					return nil
				}
				ends = join(ends, more)
			}
			return ends
		}
		return nil
	}
	return nil
}

// repeated is through for a repetition: time after time, until nothing new comes.
func (p *proof) repeated(from []Ref, n node) (ends []Ref) {
	if n.lo == 0 {
		ends = slices.Clone(from)
	}
	for i := int32(1); i <= n.hi; i++ {
		next := p.through(from, n.a)
		if next == nil {
			return nil
		}
		still := slices.Equal(from, next)
		from = next
		before := len(ends)
		if i >= n.lo || still {
			ends = join(ends, from)
		}
		if still || i >= n.lo && len(ends) == before {
			break
		}
	}
	return ends
}

// leaf is through for a class or for words. It is remembered.
func (p *proof) leaf(from, r Ref) []Ref {
	s := p.set
	key := [2]Ref{from, r}
	if ends, known := s.proofs[key]; known {
		return ends
	}
	var ends []Ref
	n := s.nodes[r]
	if n.kind == kindClass {
		c := s.sets[n.lo]
		for b := range 256 {
			if !c.has(byte(b)) {
				continue
			}
			d := s.Derive(from, byte(b))
			if d == Nothing || len(ends) > proofEnds {
				ends = nil
				break
			}
			ends = join(ends, []Ref{d})
		}
	} else {
		for _, w := range s.lists[n.a][n.lo:n.hi] {
			p.steps -= len(w) - int(n.b)
			if p.steps < 0 {
				return nil
			}
			d := s.DeriveText(from, w[n.b:])
			if d == Nothing || len(ends) > proofEnds {
				ends = nil
				break
			}
			ends = join(ends, []Ref{d})
		}
	}
	s.proofs[key] = ends
	s.bytes += 48
	return ends
}

// join adds what a sorted list lacks.
func join(list, more []Ref) []Ref {
	for _, r := range more {
		if at, has := slices.BinarySearch(list, r); !has {
			list = slices.Insert(list, at, r)
		}
	}
	return list
}

// dropWithin leaves out terms xSz beside Sz, where S is a star that holds x. So a search that has found its text goes on as any text.
func (s *Set) dropWithin(u *alternatives) bool {
	before := len(u.terms)
	for _, wide := range slices.Clone(u.terms) {
		star, _ := s.split(wide)
		if !s.star(star) {
			continue
		}
		u.terms = slices.DeleteFunc(u.terms, func(r Ref) bool {
			return r != wide && s.leadsTo(r, wide, star)
		})
	}
	return len(u.terms) < before
}

// leadsTo reports whether r is some parts before tail, which stay within the star that tail begins with.
func (s *Set) leadsTo(r, tail, star Ref) bool {
	var heads []Ref
	for r != tail {
		n := s.nodes[r]
		if n.kind != kindConcat || len(heads) == spineParts {
			return false
		}
		heads = append(heads, n.a)
		r = n.b
	}
	if s.proving {
		return false
	}
	s.proving = true
	p := proof{set: s, steps: proofSteps}
	ends := []Ref{star}
	for _, h := range heads {
		ends = p.through(ends, h)
	}
	s.proving = false
	s.steps += proofSteps - p.steps
	return len(ends) == 1 && ends[0] == star
}

// dropWider leaves stars out of an intersection that hold another term.
func (s *Set) dropWider(terms []Ref) []Ref {
	if len(terms) < 2 {
		return terms
	}
	for i := 0; i < len(terms); i++ {
		if !s.star(terms[i]) {
			continue
		}
		for j, r := range terms {
			if i != j && s.holds(terms[i], r) {
				terms = slices.Delete(terms, i, i+1)
				i--
				break
			}
		}
	}
	return terms
}

// holds reports whether every text of r can be told to be one of wide.
func (s *Set) holds(wide, r Ref) bool { return s.allNullable(s.prove(wide, r)) }

func (s *Set) allNullable(ends []Ref) bool {
	for _, e := range ends {
		if !s.Nullable(e) {
			return false
		}
	}
	return len(ends) > 0
}

// isPlainStar reports whether r is a star, and made without intersections, complements and loops. So are its derivatives: no proof about them
// needs another one.
func (s *Set) isPlainStar(r Ref) bool { return s.star(r) && s.plain(r) }

// plainHolds is holds for a plain star, also within another proof.
func (s *Set) plainHolds(star, r Ref) bool {
	p := proof{set: s, steps: proofSteps}
	ends := p.through([]Ref{star}, r)
	s.steps += proofSteps - p.steps
	return s.allNullable(ends)
}

func (s *Set) plain(r Ref) bool {
	n := s.nodes[r]
	switch n.kind {
	case kindNothing, kindEmpty, kindClass, kindWords:
		return true
	case kindIntersect, kindComplement, kindLoop:
		return false
	}
	is, known := s.plains[r]
	if known {
		return is
	}
	s.steps++
	switch n.kind {
	case kindConcat:
		is = s.plain(n.a) && s.plain(n.b)
	case kindRepeat:
		is = s.plain(n.a)
	case kindUnion:
		is = !slices.ContainsFunc(s.parts(r), func(p Ref) bool { return !s.plain(p) })
	}
	if s.plains == nil {
		s.plains = map[Ref]bool{}
	}
	s.plains[r] = is
	s.bytes += 24
	return is
}
