package expr

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
)

// IntAt is the value of a size where fields have these values, by the names that expressions use ("Rows", "W.Cols");
// false where it depends on one that is not given.
func (e *Expr) IntAt(values map[string]int64) (int64, bool) {
	v := e.at(e.tree, values)
	if v.Kind() != constant.Int {
		return 0, false
	}
	return constant.Int64Val(v)
}

// BoolAt is the value of a condition where fields have these values, and features and options are 1 or 0; known is
// false where it depends on one that is not given.
func (e *Expr) BoolAt(values map[string]int64) (value, known bool) {
	v := e.at(e.tree, values)
	if v.Kind() != constant.Bool {
		return false, false
	}
	return constant.BoolVal(v), true
}

// Given is what is left of a condition where fields have these values: the parts that they do not decide. It is nil where it always holds;
// possible is false where it never does.
func (e *Expr) Given(values map[string]int64) (left *Expr, possible bool) {
	var parts []ast.Expr
	var split func(x ast.Expr)
	split = func(x ast.Expr) {
		if b, ok := ast.Unparen(x).(*ast.BinaryExpr); ok && b.Op == token.LAND {
			split(b.X)
			split(b.Y)
			return
		}
		parts = append(parts, x)
	}
	split(e.tree)
	for _, x := range parts {
		v := e.at(x, values)
		switch {
		case v.Kind() != constant.Bool && left == nil:
			rest := *e
			rest.tree, left = x, &rest
		case v.Kind() != constant.Bool:
			left.tree = &ast.BinaryExpr{X: left.tree, Op: token.LAND, Y: x}
		case !constant.BoolVal(v):
			return nil, false
		}
	}
	if left != nil {
		left.Text = types.ExprString(left.tree)
	}
	return left, true
}

// at evaluates a part of the expression; what is not known is constant.Unknown.
func (e *Expr) at(x ast.Expr, values map[string]int64) constant.Value {
	unknown := constant.MakeUnknown()
	if v := e.info.Types[x].Value; v != nil {
		return v
	}
	switch x := x.(type) {
	case *ast.ParenExpr:
		return e.at(x.X, values)
	case *ast.Ident, *ast.SelectorExpr:
		name := types.ExprString(x)
		v, given := values[name]
		switch {
		case !given:
			return unknown
		case e.scope.switches[name]:
			return constant.MakeBool(v != 0)
		}
		return constant.MakeInt64(v)
	case *ast.UnaryExpr:
		return constant.UnaryOp(x.Op, e.at(x.X, values), 0)
	case *ast.CallExpr:
		least := constant.Value(nil)
		for _, arg := range x.Args {
			v := e.at(arg, values)
			op := token.LSS
			if types.ExprString(x.Fun) == "max" {
				op = token.GTR
			}
			if v.Kind() == constant.Unknown {
				return unknown
			}
			if least == nil || constant.Compare(v, op, least) {
				least = v
			}
		}
		return least
	case *ast.BinaryExpr:
		return binary(x.Op, e.at(x.X, values), e.at(x.Y, values))
	}
	return unknown
}

// binary is x op y. A side of && or || that decides alone does so whatever the other is.
func binary(op token.Token, x, y constant.Value) constant.Value {
	unknown := x.Kind() == constant.Unknown || y.Kind() == constant.Unknown
	switch {
	case op == token.LAND || op == token.LOR:
		decides := op == token.LOR
		for _, v := range []constant.Value{x, y} {
			if v.Kind() == constant.Bool && constant.BoolVal(v) == decides {
				return constant.MakeBool(decides)
			}
		}
		if !unknown {
			return constant.MakeBool(!decides)
		}
		return constant.MakeUnknown()
	case unknown:
		return constant.MakeUnknown()
	case comparison(op):
		return constant.MakeBool(constant.Compare(x, op, y))
	case op == token.SHL || op == token.SHR:
		bits, ok := constant.Uint64Val(y)
		if !ok || bits > 63 {
			return constant.MakeUnknown()
		}
		return constant.Shift(x, op, uint(bits))
	case op == token.QUO || op == token.REM:
		if constant.Sign(y) == 0 {
			return constant.MakeUnknown() // only floats get here: a size never divides by zero
		}
		if op == token.QUO && x.Kind() == constant.Int && y.Kind() == constant.Int {
			op = token.QUO_ASSIGN // as go/constant calls the division of integers
		}
	}
	return constant.BinaryOp(x, op, y)
}
