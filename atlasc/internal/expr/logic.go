package expr

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"math"
)

// Truth is what is known of a condition.
type Truth int

// Truths.
const (
	Unknown Truth = iota
	False
	True
)

// Truth says what is known of the condition where the weight's scheme is this.
func (e *Expr) Truth(scheme int64) Truth {
	switch holds, known := e.BoolAt(map[string]int64{e.scope.scheme: scheme}); {
	case !known:
		return Unknown
	case holds:
		return True
	}
	return False
}

// schemeComparison is the number of the scheme that a comparison compares the weight's with.
func (e *Expr) schemeComparison(x *ast.BinaryExpr) (int64, bool) {
	field, other := x.X, x.Y
	if e.info.Types[field].Value != nil {
		field, other = other, field
	}
	v := e.info.Types[other].Value
	if v == nil || types.ExprString(ast.Unparen(field)) != e.scope.scheme {
		return 0, false
	}
	return constant.Int64Val(v)
}

// Schemes lists the schemes that the condition compares the weight's with.
func (e *Expr) Schemes() []int64 {
	var found []int64
	ast.Inspect(e.tree, func(n ast.Node) bool {
		if x, ok := n.(*ast.BinaryExpr); ok && (x.Op == token.EQL || x.Op == token.NEQ) {
			if scheme, ok := e.schemeComparison(x); ok {
				found = append(found, scheme)
			}
		}
		return true
	})
	return found
}

// Cover is a conjunction in a form that can be compared with others: ranges of integer expressions, and terms that are
// only known to be equal or not. Both are as Go has them: what a constant is called does not count, its value does.
type Cover struct {
	ranges map[string]span
	terms  map[string]bool
}

type span struct{ low, high int64 }

// NewCover is the conjunction of conditions (nil ones hold always) and of switches that must be on.
func NewCover(switches []string, conditions ...*Expr) Cover {
	c := Cover{map[string]span{}, map[string]bool{}}
	for _, name := range switches {
		c.terms["s.has."+name] = true
	}
	for _, e := range conditions {
		if e != nil {
			c.add(e, e.tree)
		}
	}
	return c
}

func (c Cover) add(e *Expr, x ast.Expr) {
	x = ast.Unparen(x)
	if v := e.info.Types[x].Value; v != nil && v.Kind() == constant.Bool && constant.BoolVal(v) {
		return
	}
	b, ok := x.(*ast.BinaryExpr)
	if ok && b.Op == token.LAND {
		c.add(e, b.X)
		c.add(e, b.Y)
		return
	}
	if ok {
		if of, s, ok := e.span(b); ok {
			if known, again := c.ranges[of]; again {
				s = span{max(s.low, known.low), min(s.high, known.high)}
			}
			c.ranges[of] = s
			return
		}
	}
	c.terms[e.golang(x)] = true
}

// span reads a comparison of an integer expression with a constant.
func (e *Expr) span(b *ast.BinaryExpr) (of string, s span, ok bool) {
	x, op, y := b.X, b.Op, b.Y
	if e.info.Types[x].Value != nil {
		x, op, y = y, mirrored(op), x
	}
	v := e.info.Types[y].Value
	if v == nil || v.Kind() != constant.Int || e.info.Types[x].Value != nil {
		return "", span{}, false
	}
	n, exact := constant.Int64Val(v)
	if !exact || n == math.MinInt64 || n == math.MaxInt64 {
		return "", span{}, false
	}
	s = span{math.MinInt64, math.MaxInt64}
	switch op {
	case token.LSS:
		s.high = n - 1
	case token.LEQ:
		s.high = n
	case token.GTR:
		s.low = n + 1
	case token.GEQ:
		s.low = n
	case token.EQL:
		s = span{n, n}
	default:
		return "", span{}, false
	}
	return e.golang(ast.Unparen(x)), s, true
}

// mirrored is the comparison with its sides exchanged.
func mirrored(op token.Token) token.Token {
	switch op {
	case token.LSS:
		return token.GTR
	case token.LEQ:
		return token.GEQ
	case token.GTR:
		return token.LSS
	case token.GEQ:
		return token.LEQ
	}
	return op
}

// Covers tells whether c holds wherever d does, as far as the two can be compared.
func (c Cover) Covers(d Cover) bool {
	for term := range c.terms {
		if !d.terms[term] {
			return false
		}
	}
	for of, s := range c.ranges {
		inner, ok := d.ranges[of]
		if !ok || inner.low < s.low || inner.high > s.high {
			return false
		}
	}
	return true
}

// Empty tells whether the conjunction never holds: no value is in one of its ranges, or it demands a term and its opposite.
func (c Cover) Empty() bool {
	for term := range c.terms {
		if c.terms["!"+term] {
			return true
		}
	}
	for _, s := range c.ranges {
		if s.low > s.high {
			return true
		}
	}
	return false
}

// Always tells whether the conjunction demands nothing.
func (c Cover) Always() bool { return len(c.terms) == 0 && len(c.ranges) == 0 }
