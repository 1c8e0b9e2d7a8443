package expr

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"

	"github.com/atlas-inference/atlas/atlasc/internal/contract"
)

// growth is what is known of a part of a size. Fields are sizes, and never negative.
type growth struct {
	fixed       bool // it is the same in every step of a model
	grows       bool // it never shrinks where sizes of a step grow
	nonNegative bool // it is never negative
}

// CheckGrowth reports a size that may shrink where a size of a step grows: then the largest step need not ask for the most.
func (e *Expr) CheckGrowth() error {
	if e.growth(e.tree).grows {
		return nil
	}
	return &Error{fmt.Sprintf("%q may be less in a larger step", e.Text),
		"use +, *, min, max and division by what no step changes; keep factors from being negative with max(0, ...)"}
}

func (e *Expr) growth(x ast.Expr) growth {
	if v := e.info.Types[x].Value; v != nil {
		return growth{true, true, constant.Sign(v) >= 0}
	}
	switch x := x.(type) {
	case *ast.ParenExpr:
		return e.growth(x.X)
	case *ast.Ident, *ast.SelectorExpr:
		return growth{!e.mentionsStep(x), true, true}
	case *ast.UnaryExpr:
		fixed := e.growth(x.X).fixed
		return growth{fixed, fixed, false}
	case *ast.CallExpr:
		least := types.ExprString(x.Fun) == "min" // else the most
		all := growth{true, true, least}
		for _, arg := range x.Args {
			g := e.growth(arg)
			all.fixed, all.grows = all.fixed && g.fixed, all.grows && g.grows
			all.nonNegative = least && all.nonNegative && g.nonNegative || !least && (all.nonNegative || g.nonNegative)
		}
		return all
	case *ast.BinaryExpr:
		return combined(x.Op, e.growth(x.X), e.growth(x.Y))
	}
	return growth{}
}

// combined is the growth of x op y.
func combined(op token.Token, x, y growth) growth {
	out := growth{fixed: x.fixed && y.fixed}
	switch op {
	case token.ADD:
		out.grows, out.nonNegative = x.grows && y.grows, x.nonNegative && y.nonNegative
	case token.SUB:
		out.grows = x.grows && y.fixed
	case token.MUL:
		factor := func(a, b growth) bool { return a.fixed && a.nonNegative && b.grows }
		out.nonNegative = x.nonNegative && y.nonNegative
		out.grows = out.nonNegative && x.grows && y.grows || factor(x, y) || factor(y, x)
	case token.QUO:
		out.grows, out.nonNegative = x.grows && y.fixed && y.nonNegative, x.nonNegative && y.nonNegative
	case token.SHL, token.SHR:
		out.grows, out.nonNegative = x.grows && y.fixed, x.nonNegative
	case token.REM:
		out.nonNegative = x.nonNegative
	}
	out.grows = out.grows || out.fixed
	return out
}

// mentionsStep tells whether x depends on a size of a step, or on a pointer: which of them are given is not known before the step.
func (e *Expr) mentionsStep(x ast.Expr) bool {
	found := false
	ast.Inspect(x, func(n ast.Node) bool {
		inner, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		f, _, known := e.field(inner)
		found = found || known && (f.Step || f.Kind == contract.Pointer)
		return !known // W.Rows is not Rows
	})
	return found
}
