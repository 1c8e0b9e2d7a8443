package regex

import (
	"math"
	"slices"
)

// Endless is a run without an end.
const Endless = math.MaxInt

// Run is how many texts of c, one behind the other and whichever they are, a text of r may begin with, as far as the form of r tells: there may be
// more. It is 0 where the form tells nothing, and Endless. It holds for an r that is Alive.
func (s *Set) Run(r, c Ref) int {
	if !s.HasRun(r) {
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

// HasRun reports whether r is of a form that may tell a run.
func (s *Set) HasRun(r Ref) bool {
	n := s.nodes[r]
	if n.kind == kindConcat && !s.Nullable(n.a) {
		n = s.nodes[n.a]
	}
	return n.kind == kindRepeat || n.kind == kindConcat || n.kind == kindUnion || n.kind == kindIntersect
}

func (s *Set) findRun(r, c Ref) int {
	s.steps++
	n := s.nodes[r]
	run := 0
	switch n.kind {
	case kindRepeat:
		run = max(s.times(n, c), s.Run(n.a, c))
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
		run = s.runOfAll(r, c)
	}
	return run
}

// times is how often a repetition may be of texts of c.
func (s *Set) times(n node, c Ref) int {
	covers, known := s.covered[[2]Ref{n.a, c}]
	if !known {
		all, err := s.Covers(n.a, c)
		covers = all && err == nil
		if s.covered == nil {
			s.covered = map[[2]Ref]bool{}
		}
		s.covered[[2]Ref{n.a, c}] = covers
		s.bytes += 24
	}
	switch {
	case !covers:
		return 0
	case n.hi == unbounded:
		return Endless
	}
	return int(n.hi)
}

// runOfAll is Run for an intersection: as many texts as each part allows, less where nothing is then left that all of them match.
func (s *Set) runOfAll(r, c Ref) int {
	run, longest := Endless, 0
	excluded := []Ref{Nothing} // what may be left of what a text must not be
	for _, p := range s.parts(r) {
		n := s.nodes[p]
		if n.kind != kindComplement {
			run = min(run, s.Run(p, c))
			continue
		}
		// Where it has a longest text it does not matter once the text is longer.
		if length := s.longest(n.a); length < Endless {
			longest = max(longest, length)
		} else if excluded = s.derivatives(n.a, c); excluded == nil {
			return 0
		}
	}
	for less := 1; run > longest; less *= 2 {
		behind := s.behind(r, c, run)
		if !slices.ContainsFunc(excluded, func(e Ref) bool {
			alive, err := s.Alive(s.and([]Ref{behind, s.Not(e)}))
			return err != nil || !alive
		}) {
			return run
		}
		if run == Endless {
			return 0
		}
		run -= less
	}
	return 0
}

// fewDerivatives is how many expressions are looked at for what an excluded one may become.
const fewDerivatives = 16

// derivatives are all that r becomes by texts of c, one behind the other, and what it is on the way; nil where they are many.
func (s *Set) derivatives(r, c Ref) []Ref {
	type visit struct{ r, c Ref }
	var found []Ref
	todo := []visit{{r, c}}
	for at := 0; at < len(todo); at++ {
		v := todo[at]
		if s.Nullable(v.c) && !slices.Contains(todo, visit{v.r, c}) {
			todo = append(todo, visit{v.r, c})
		}
		if !slices.Contains(found, v.r) {
			found = append(found, v.r)
		}
		if len(found) > fewDerivatives || len(todo) > 8*fewDerivatives {
			return nil
		}
		for _, b := range s.Classes(v.r, v.c).Members {
			next := visit{s.Derive(v.r, b), s.Derive(v.c, b)}
			if next.c != Nothing && !slices.Contains(todo, next) {
				todo = append(todo, next)
			}
		}
	}
	return found
}

// behind matches texts that may follow any n texts of c at the start of r, for n up to Run. Endless is any number.
func (s *Set) behind(r, c Ref, n int) Ref {
	s.steps++
	node := s.nodes[r]
	switch node.kind {
	case kindRepeat:
		inside := s.times(node, c) < n // all of them are in the first part
		used := int32(min(n, maxCount))
		if inside {
			used = 1
		}
		rest := counted{node.a, max(node.lo-used, 0), node.hi}
		if rest.hi != unbounded {
			rest.hi -= used
		}
		if inside {
			return s.concat(s.behind(node.a, c, n), s.repeat(rest))
		}
		return s.repeat(rest)
	case kindConcat:
		if s.Run(node.a, c) > 0 {
			return s.concat(s.behind(node.a, c, n), node.b)
		}
		return s.behind(node.b, c, n)
	case kindUnion:
		var parts []Ref
		for _, p := range s.parts(r) {
			if s.Run(p, c) >= n {
				parts = append(parts, s.behind(p, c, n))
			}
		}
		return s.or(parts)
	case kindIntersect:
		var parts []Ref
		for _, p := range s.parts(r) {
			if s.nodes[p].kind != kindComplement {
				parts = append(parts, s.behind(p, c, n))
			}
		}
		return s.and(parts)
	}
	return Nothing
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
