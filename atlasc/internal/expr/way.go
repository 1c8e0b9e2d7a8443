package expr

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// Way is one way for a condition to hold: every part of it does.
type Way struct {
	// Fixed are the parts that no step changes, as Go conditions, sorted.
	Fixed  []string
	step   map[string]bool // the other parts, and whether they hold
	limits []limit
}

// limit says that a part of a size is not more than another, which grows.
type limit struct {
	of   string // as expressions have it
	most string // as Go has it
}

// mostWays bounds the ways of one condition. What has more of them counts as one part, which limits nothing: the bound is larger then.
const mostWays = 16

// Ways lists the ways for a condition (nil: none) and the switches beside it to hold. Ways that contradict themselves are left out.
func Ways(switches []string, when *Expr) []Way {
	var on []string
	for _, name := range switches {
		on = append(on, "s.has."+name)
	}
	if when == nil {
		return []Way{{Fixed: on}}
	}
	var ways []Way
	for _, parts := range when.alternatives(when.tree) {
		w := Way{Fixed: slices.Clone(on), step: map[string]bool{}}
		if when.fill(&w, parts) {
			slices.Sort(w.Fixed)
			w.Fixed = slices.Compact(w.Fixed)
			ways = append(ways, w)
		}
	}
	return ways
}

// alternatives is a condition as a list of lists of parts: it holds where all parts of one list do.
func (e *Expr) alternatives(x ast.Expr) [][]ast.Expr {
	x = ast.Unparen(x)
	b, ok := x.(*ast.BinaryExpr)
	if !ok || b.Op != token.LAND && b.Op != token.LOR {
		return [][]ast.Expr{{x}}
	}
	if !e.mentionsStep(x) {
		if b.Op == token.LAND {
			return [][]ast.Expr{slices.Concat(e.alternatives(b.X)[0], e.alternatives(b.Y)[0])}
		}
		return [][]ast.Expr{{x}}
	}
	left, right := e.alternatives(b.X), e.alternatives(b.Y)
	all := slices.Concat(left, right)
	if b.Op == token.LAND {
		all = nil
		for _, l := range left {
			for _, r := range right {
				all = append(all, slices.Concat(l, r))
			}
		}
	}
	if len(all) > mostWays {
		return [][]ast.Expr{{x}}
	}
	return all
}

// fill adds parts to a way; false where they contradict each other.
func (e *Expr) fill(w *Way, parts []ast.Expr) bool {
	for _, part := range parts {
		if !e.mentionsStep(part) {
			text := e.golang(part)
			if strings.Contains(text, "||") {
				text = "(" + text + ")"
			}
			w.Fixed = append(w.Fixed, text)
			continue
		}
		name, holds := e.golang(part), true
		if b, ok := part.(*ast.BinaryExpr); ok && comparison(b.Op) {
			name, holds = e.compared(w, b)
		}
		if before, known := w.step[name]; known && before != holds {
			return false
		}
		w.step[name] = holds
	}
	return true
}

// compared names a comparison so that its opposite has the same name, and notes what it limits.
func (e *Expr) compared(w *Way, b *ast.BinaryExpr) (name string, holds bool) {
	x, op, y := ast.Unparen(b.X), b.Op, ast.Unparen(b.Y)
	switch op {
	case token.LSS, token.LEQ, token.EQL:
		w.limit(e, x, y)
	}
	switch op {
	case token.GTR, token.GEQ, token.EQL:
		w.limit(e, y, x)
	}
	holds = true
	switch op {
	case token.GTR:
		op, holds = token.LEQ, false
	case token.GEQ:
		op, holds = token.LSS, false
	case token.NEQ:
		op, holds = token.EQL, false
	}
	return e.golang(x) + op.String() + e.golang(y), holds
}

// limit notes that x is at most y.
func (w *Way) limit(e *Expr, x, y ast.Expr) {
	if e.info.Types[x].Value == nil && e.mentionsStep(x) && e.growth(y).grows {
		w.limits = append(w.limits, limit{types.ExprString(x), e.golang(y)})
	}
}

// GoWithin is the size as Go spells it, with parts no larger than w lets them be. Where the fields are the most of a step, it is no less
// than any step's in which w holds.
func (e *Expr) GoWithin(w Way) string {
	within := *e
	within.limits = w.limits
	return within.golang(within.tree)
}

// limited spells a part that a limit names; false where none does.
func (e *Expr) limited(x ast.Expr) (string, bool) {
	x = ast.Unparen(x)
	i := slices.IndexFunc(e.limits, func(l limit) bool { return l.of == types.ExprString(x) })
	if i < 0 || e.info.Types[x].Value != nil {
		return "", false
	}
	rest := *e
	rest.limits = slices.Concat(e.limits[:i], e.limits[i+1:])
	return "min(" + rest.golang(x) + ", " + e.limits[i].most + ")", true
}

// After is what is left of w for calls that no way before it has taken; false where none is left. Ways before it that ask for one fixed
// part more than w does take calls only where that holds: then its opposite becomes a part of w. That is done for the switches and for
// sizes that are less or more than others.
func (w Way) After(before []Way, switches []string) (Way, bool) {
	given := []string{""}
	for _, name := range switches {
		given = append(given, "s.has."+name, "!s.has."+name)
	}
	for _, b := range before {
		for _, part := range b.Fixed {
			if strings.ContainsAny(part, "<>") && !slices.Contains(given, part) {
				given = append(given, part)
			}
		}
	}
	for _, part := range given {
		var ways []map[string]bool
		for _, b := range before {
			if !slices.ContainsFunc(b.Fixed, func(asked string) bool { return asked != part && !slices.Contains(w.Fixed, asked) }) {
				ways = append(ways, b.step)
			}
		}
		switch {
		case slices.Contains(w.Fixed, opposite(part)) || !covered(w.step, ways, mostGuesses):
		case part == "" || slices.Contains(w.Fixed, part):
			return Way{}, false
		default:
			w.Fixed = append(slices.Clone(w.Fixed), opposite(part))
		}
	}
	slices.Sort(w.Fixed)
	return w, true
}

// opposite is the Go condition that holds where another does not.
func opposite(condition string) string {
	if rest, negated := strings.CutPrefix(condition, "!"); negated {
		return rest
	}
	if strings.Contains(condition, " ") {
		condition = "(" + condition + ")"
	}
	return "!" + condition
}

// mostGuesses bounds how many parts covered considers on both sides. Entries that it does not find covered make the bound larger.
const mostGuesses = 4

// covered tells whether some way holds wherever the known parts do, as far as guesses at others show.
func covered(known map[string]bool, ways []map[string]bool, guesses int) bool {
	open := map[string]int{} // parts that are not known, and how many ways ask for each
	for _, w := range ways {
		var unknown []string
		possible := true
		for part, holds := range w {
			got, is := known[part]
			if !is {
				unknown = append(unknown, part)
			}
			possible = possible && (!is || got == holds)
		}
		if possible && len(unknown) == 0 {
			return true
		}
		for _, part := range unknown {
			if possible {
				open[part]++
			}
		}
	}
	if len(open) == 0 || guesses == 0 {
		return false
	}
	parts := slices.SortedFunc(maps.Keys(open), func(a, b string) int { return cmp.Or(cmp.Compare(open[b], open[a]), cmp.Compare(a, b)) })
	for _, holds := range []bool{false, true} {
		more := map[string]bool{parts[0]: holds}
		maps.Copy(more, known)
		if !covered(more, ways, guesses-1) {
			return false
		}
	}
	return true
}
