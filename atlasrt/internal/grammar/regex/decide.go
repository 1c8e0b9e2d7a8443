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
	search := search{met: map[Ref]bool{}}
	search.add(r, -1)
	budget := s.Budget
	for at, more := search.next(); more; at, more = search.next() {
		state := search.visits[at].state
		for _, b := range s.classesOf(state).Members {
			budget--
			if budget < 0 {
				return false, ErrBudget
			}
			d := s.Derive(state, b)
			switch s.fateOf(d) {
			case alive:
				for ; at >= 0; at = search.visits[at].from {
					s.fates[search.visits[at].state] = alive
				}
				return true, nil
			case unknown:
				search.add(d, at)
			}
		}
	}
	for _, v := range search.visits {
		s.fates[v.state] = dead
	}
	return false, nil
}

// search goes through the derivatives of an expression. It takes the newest and the oldest by turns: the newest lead to texts that are long,
// past states that are many, and the oldest to those that are short.
type search struct {
	visits []visit
	met    map[Ref]bool
	newest []int // visits that may be open
	oldest int   // no visit before it is open
	turn   bool
}

// visit is an expression, and the visit that led to it.
type visit struct {
	state Ref
	from  int
	done  bool
}

func (q *search) add(state Ref, from int) {
	if !q.met[state] {
		q.met[state] = true
		q.newest = append(q.newest, len(q.visits))
		q.visits = append(q.visits, visit{state: state, from: from})
	}
}

// next is a visit that was not given yet.
func (q *search) next() (at int, more bool) {
	q.turn = !q.turn
	for q.turn && len(q.newest) > 0 {
		at = q.newest[len(q.newest)-1]
		q.newest = q.newest[:len(q.newest)-1]
		if !q.visits[at].done {
			q.visits[at].done = true
			return at, true
		}
	}
	for ; q.oldest < len(q.visits); q.oldest++ {
		if !q.visits[q.oldest].done {
			q.visits[q.oldest].done = true
			return q.oldest, true
		}
	}
	return 0, false
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
