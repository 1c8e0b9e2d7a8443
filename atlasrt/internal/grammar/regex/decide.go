package regex

import "errors"

// ErrBudget says that a question took more steps than the set's Budget.
var ErrBudget = errors.New("regular expressions are too large to compare: make them smaller, or their repetitions fewer")

// fate is whether an expression matches any text.
type fate uint8

const (
	unknown fate = iota
	alive
	dead
)

// Alive reports whether r matches some text. It remembers what it finds, also of what it met on the way. Expressions that are asked one behind the
// other mostly end alike, so that texts which were found for others are tried first.
func (s *Set) Alive(r Ref) (bool, error) {
	if f := s.fateOf(r); f != unknown {
		return f == alive, nil
	}
	if s.endings.lead(s, r) {
		return true, nil
	}
	q := search{set: s, met: map[Ref]bool{}}
	q.add(r, -1)
	limit := s.steps + s.Budget
	for q.oldest < len(q.visits) {
		if s.steps > limit {
			return false, ErrBudget
		}
		at := q.oldest
		if q.turn = !q.turn; q.turn && len(q.newest) > 0 {
			at = q.newest[len(q.newest)-1]
		}
		d, more := q.derivative(at)
		if !more {
			continue
		}
		switch s.fateOf(d) {
		case alive:
			for ; at >= 0; at = q.visits[at].from {
				v := &q.visits[at]
				s.found(v.state, s.classesOf(v.state).Members[v.tried-1])
			}
			s.endings.add(s, r)
			return true, nil
		case unknown:
			q.add(d, at)
		}
	}
	for _, v := range q.visits {
		s.fates[v.state] = dead
	}
	return false, nil
}

// search goes through the derivatives of an expression. It goes on with the newest and with the oldest by turns: the newest lead to texts
// that are long, past states that are many, and the oldest to those that are short.
type search struct {
	set    *Set
	visits []visit
	met    map[Ref]bool
	newest []int // visits that may have derivatives left
	oldest int   // no visit before it has
	turn   bool
}

// visit is an expression, the visit that led to it, and how many of its classes of bytes were tried.
type visit struct {
	state Ref
	from  int
	tried int
}

func (q *search) add(state Ref, from int) {
	if !q.met[state] {
		q.met[state] = true
		q.newest = append(q.newest, len(q.visits))
		q.visits = append(q.visits, visit{state: state, from: from})
	}
}

// derivative is the next one of a visit, the newest or the oldest.
func (q *search) derivative(at int) (d Ref, more bool) {
	v := &q.visits[at]
	members := q.set.classesOf(v.state).Members
	if v.tried < len(members) {
		v.tried++
		return q.set.Derive(v.state, members[v.tried-1]), true
	}
	if at == q.oldest {
		q.oldest++
	}
	if n := len(q.newest); n > 0 && q.newest[n-1] == at {
		q.newest = q.newest[:n-1]
	}
	return Nothing, false
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
	if s.holds(large, small) {
		return true, nil
	}
	some, err := s.Alive(s.And(small, s.Not(large)))
	return !some && err == nil, err
}
