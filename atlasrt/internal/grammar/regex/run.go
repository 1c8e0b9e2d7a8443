package regex

import "math"

// Endless is a run without an end.
const Endless = math.MaxInt

// Run is how many texts of c, one behind the other and whichever they are, a text of r may begin with, as far as the form of r tells: there may be
// more. It is 0 where the form tells nothing, and Endless. It holds for an r that is Alive.
func (s *Set) Run(r, c Ref) int {
	if k := s.nodes[r].kind; k != kindRepeat && k != kindConcat && k != kindUnion && k != kindIntersect {
		return 0
	}
	if run, known := s.runs[[2]Ref{r, c}]; known {
		return run
	}
	run := s.findRun(r, c)
	if s.runs == nil {
		s.runs = map[[2]Ref]int{}
	}
	s.runs[[2]Ref{r, c}] = run
	s.bytes += 40
	return run
}

func (s *Set) findRun(r, c Ref) int {
	s.steps++
	n := s.nodes[r]
	run := 0
	switch n.kind {
	case kindRepeat:
		if covers, err := s.Covers(n.a, c); err != nil || !covers {
			return 0
		}
		if n.hi == unbounded {
			return Endless
		}
		return int(n.hi)
	case kindConcat:
		run = s.Run(n.a, c)
		if run == 0 && s.Nullable(n.a) {
			run = s.Run(n.b, c)
		}
	case kindUnion:
		for _, p := range s.parts(r) {
			if alive, err := s.Alive(p); err == nil && alive {
				run = max(run, s.Run(p, c))
			}
		}
	case kindIntersect:
		run = s.runBut(s.parts(r), c)
	}
	return run
}

// runBut is Run for a text that is none of a few others: where it may go on until it is longer than these, they do not matter.
func (s *Set) runBut(parts []Ref, c Ref) int {
	run, longest := -1, 0
	for _, p := range parts {
		if n := s.nodes[p]; n.kind == kindComplement {
			length := s.longest(n.a)
			if length == Endless {
				return 0
			}
			longest = max(longest, length)
			continue
		}
		if run >= 0 {
			return 0
		}
		run = s.Run(p, c)
	}
	if run <= longest {
		return 0
	}
	return run
}

// longest is a length in bytes that no text of r exceeds, or Endless.
func (s *Set) longest(r Ref) int {
	if length, known := s.lengths[r]; known {
		return length
	}
	s.steps++
	n := s.nodes[r]
	length := 0
	switch n.kind {
	case kindNothing, kindEmpty:
	case kindClass:
		length = 1
	case kindWords:
		for _, word := range s.lists[n.a][n.lo:n.hi] {
			length = max(length, len(word)-int(n.b))
		}
	case kindConcat:
		length = addLengths(s.longest(n.a), s.longest(n.b))
	case kindUnion:
		for _, p := range s.parts(r) {
			length = max(length, s.longest(p))
		}
	case kindRepeat:
		length = s.longest(n.a)
		if n.hi == unbounded || length > math.MaxInt32 {
			length = Endless
		} else {
			length *= int(n.hi)
		}
	default:
		length = Endless
	}
	if s.lengths == nil {
		s.lengths = map[Ref]int{}
	}
	s.lengths[r] = length
	s.bytes += 32
	return length
}

func addLengths(a, b int) int {
	if a > Endless-b {
		return Endless
	}
	return a + b
}

// Shorten is r with its large counts made smaller: a text of up to n bytes is matched by both or by none, and begins a text of both or of
// none. So expressions that differ in what is far away become one.
func (s *Set) Shorten(r Ref, n int) Ref {
	s.steps++
	switch node := s.nodes[r]; node.kind {
	case kindRepeat:
		c := counted{node.a, min(node.lo, int32(n+1)), node.hi}
		if c.hi != unbounded {
			c.hi = min(c.hi, int32(n+1))
		}
		return s.repeat(c)
	case kindConcat:
		if head := s.Shorten(node.a, n); head != node.a || s.Nullable(head) {
			return s.concat(head, s.Shorten(node.b, n))
		}
	case kindUnion:
		parts := make([]Ref, 0, len(s.parts(r)))
		for _, p := range s.parts(r) {
			parts = append(parts, s.Shorten(p, n))
		}
		return s.or(parts)
	}
	return r
}
