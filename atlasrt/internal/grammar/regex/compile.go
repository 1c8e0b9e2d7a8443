package regex

import (
	"fmt"
	"slices"
)

// What is before a place in the text, as far as ^ and \b look at it.
const (
	atStart     = iota // nothing
	behindWord         // a character of \w
	behindOther        // another character
	contexts
)

// follow is what may come behind a part, by what is before that place then.
type follow [contexts]Ref

func (f follow) uniform() bool { return f[atStart] == f[behindWord] && f[behindWord] == f[behindOther] }

// compiler makes an expression of a tree. A part is compiled together with all that follows it: so $ holds where what follows may be empty,
// and a look-ahead is an intersection with it.
type compiler struct {
	set      *Set
	syntax   Syntax
	pattern  string
	limit    int // of the set's steps
	unrolled int
	any      Ref // any text of characters
	words    Ref // a character of \w
	others   Ref // another
	spelled  map[string]Ref
	err      *Error
}

func (c *compiler) fail(t *tree, reason string, args ...any) Ref {
	if c.err == nil {
		c.err = &Error{c.pattern, t.at, fmt.Sprintf(reason, args...)}
	}
	return Nothing
}

// whole is the expression of a pattern.
func (c *compiler) whole(t *tree) Ref {
	s := c.set
	c.spelled = map[string]Ref{}
	if !t.asserts && c.syntax.Anchored {
		return c.language(t)
	}
	c.any = s.Repeat(c.character(negate(nil)), 0, -1)
	if !t.asserts {
		r := c.language(t)
		return s.Concat(c.any, r, c.any)
	}
	if t.context {
		c.words, c.others = c.character(word), c.character(negate(word))
	}
	end := c.any
	if c.syntax.Anchored {
		end = Empty
	}
	to := c.each(t, follow{end, end, end})
	if c.syntax.Anchored || c.err != nil {
		return to[atStart]
	}
	if to.uniform() {
		return s.Concat(c.any, to[atStart])
	}
	return s.Or(to[atStart], s.Concat(c.any, c.words, to[behindWord]), s.Concat(c.any, c.others, to[behindOther]))
}

func (c *compiler) character(class []rune) Ref {
	if len(class) == 0 {
		return Nothing
	}
	if c.syntax.Character == nil {
		return c.set.character(class)
	}
	key := classKey(class)
	r, known := c.spelled[key]
	if !known {
		r = c.syntax.Character(c.set, class)
		c.spelled[key] = r
	}
	return r
}

// language is what a tree matches that looks at nothing around it.
func (c *compiler) language(t *tree) Ref {
	if t.language != 0 {
		return t.language - 1
	}
	s := c.set
	if s.steps > c.limit {
		c.fail(t, "the pattern is too large: make it simpler, or its repetitions fewer")
	}
	if c.err != nil {
		return Nothing
	}
	r := Empty
	switch t.op {
	case opClass:
		r = c.character(t.class)
	case opConcat, opUnion:
		parts := make([]Ref, len(t.subs))
		for i, sub := range t.subs {
			parts[i] = c.language(sub)
		}
		if t.op == opConcat {
			r = s.Concat(parts...)
		} else {
			r = s.Or(parts...)
		}
	case opRepeat:
		r = s.Repeat(c.language(t.subs[0]), t.lo, t.hi)
	}
	t.language = r + 1
	return r
}

const tooLarge = "look-ahead, \\b, ^ or $ in repetitions makes the pattern too large: make counts smaller"

// each is a tree and what follows it, in all contexts.
func (c *compiler) each(t *tree, to follow) follow {
	s := c.set
	if c.unrolled++; c.unrolled > maxUnroll || s.steps > c.limit {
		c.fail(t, tooLarge)
	}
	if c.err != nil {
		return follow{}
	}
	if !t.asserts {
		return c.then(c.language(t), to)
	}
	switch t.op {
	case opStart:
		return follow{atStart: to[atStart]}
	case opEnd:
		return c.behind(to, func(_ int, r Ref) Ref {
			if s.Nullable(r) {
				return Empty
			}
			return Nothing
		})
	case opBoundary:
		next := s.Concat(c.words, c.any)
		return c.behind(to, func(context int, r Ref) Ref {
			if (context == behindWord) != t.not {
				return s.And(r, s.Not(next))
			}
			return s.And(r, next)
		})
	case opAhead:
		next := c.each(t.subs[0], follow{c.any, c.any, c.any})
		return c.behind(to, func(context int, r Ref) Ref {
			if t.not {
				return s.And(r, s.Not(next[context]))
			}
			return s.And(r, next[context])
		})
	case opUnion:
		var parts [contexts][]Ref
		for _, sub := range t.subs {
			for context, r := range c.each(sub, to) {
				parts[context] = append(parts[context], r)
			}
		}
		return follow{s.Or(parts[0]...), s.Or(parts[1]...), s.Or(parts[2]...)}
	case opConcat:
		for _, sub := range slices.Backward(t.subs) {
			to = c.each(sub, to)
		}
		return to
	}
	return c.repeat(t, to)
}

// behind is a function of what follows, in all contexts.
func (c *compiler) behind(to follow, of func(context int, r Ref) Ref) follow {
	for context, r := range to {
		to[context] = of(context, r)
	}
	return to
}

// then is an expression and what follows it, where it matters how the expression ends.
func (c *compiler) then(r Ref, to follow) follow {
	s := c.set
	if to.uniform() {
		all := s.Concat(r, to[atStart])
		return follow{all, all, all}
	}
	some := s.NonEmpty(r)
	var behind Ref
	if to[behindWord] == to[behindOther] {
		behind = s.Concat(some, to[behindWord])
	} else {
		behind = s.Or(
			s.Concat(s.And(some, s.Concat(c.any, c.words)), to[behindWord]),
			s.Concat(s.And(some, s.Concat(c.any, c.others)), to[behindOther]))
	}
	if !s.Nullable(r) {
		return follow{behind, behind, behind}
	}
	return c.behind(to, func(_ int, same Ref) Ref { return s.Or(same, behind) })
}

// repeat is a repetition of something that looks around itself, and what follows.
func (c *compiler) repeat(t *tree, to follow) follow {
	s := c.set
	sub := t.subs[0]
	if t.hi < 0 {
		uniform := !sub.context && to.uniform()
		loop := follow{}
		for context := range loop {
			if context > 0 && uniform {
				loop[context] = loop[0]
			} else {
				loop[context] = s.loop(s.Nullable(to[context]))
			}
		}
		around := c.each(sub, loop)
		for context, r := range loop {
			if context == 0 || !uniform {
				s.loops[s.nodes[r].lo] = s.Or(s.guard(around[context], r), to[context])
			}
		}
		to = loop
	}
	if max(t.hi, t.lo) > maxUnroll {
		c.fail(t, tooLarge)
	}
	for n := max(t.hi, t.lo); n > 0 && c.err == nil; n-- {
		once := c.each(sub, to)
		if n > t.lo {
			for i := range once {
				once[i] = s.Or(once[i], to[i])
			}
		}
		to = once
	}
	return to
}
