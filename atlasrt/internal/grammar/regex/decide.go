package regex

import "errors"

// ErrBudget says that a question took more derivatives than the set's Budget.
var ErrBudget = errors.New("regular expressions are too large to compare: make them smaller, or their repetitions fewer")

// fate is whether an expression matches any text.
type fate uint8

const (
	unknown fate = iota
	alive
	dead
)

// Alive reports whether r matches some text. It remembers what it finds, also of what it met on the way.
func (s *Set) Alive(r Ref) (bool, error) {
	if f := s.fateOf(r); f != unknown {
		return f == alive, nil
	}
	// Breadth first: the shortest text is found, and counts are not gone through where they need not be.
	type visit struct {
		state Ref
		from  int
	}
	queue := []visit{{r, -1}}
	met := map[Ref]bool{r: true}
	budget := s.Budget
	for at := 0; at < len(queue); at++ {
		state := queue[at].state
		if s.fateOf(state) == alive {
			for ; at >= 0; at = queue[at].from {
				s.fates[queue[at].state] = alive
			}
			return true, nil
		}
		for _, b := range s.classesOf(state).Members {
			budget--
			if budget < 0 {
				return false, ErrBudget
			}
			d := s.Derive(state, b)
			if !met[d] && s.fateOf(d) != dead {
				met[d] = true
				queue = append(queue, visit{d, at})
			}
		}
	}
	for _, v := range queue {
		s.fates[v.state] = dead
	}
	return false, nil
}

// fateOf is what is known at once.
func (s *Set) fateOf(r Ref) fate {
	if f := s.fates[r]; f != unknown {
		return f
	}
	f := unknown
	switch {
	case r == Nothing:
		f = dead
	case s.Nullable(r) || s.sure(r) != 0:
		f = alive
	}
	s.fates[r] = f
	return f
}

// Covers reports whether every text of small is one of large.
func (s *Set) Covers(large, small Ref) (bool, error) {
	some, err := s.Alive(s.And(small, s.Not(large)))
	return !some, err
}

// Disjoint reports whether no text is one of both.
func (s *Set) Disjoint(a, b Ref) (bool, error) {
	some, err := s.Alive(s.And(a, b))
	return !some, err
}
