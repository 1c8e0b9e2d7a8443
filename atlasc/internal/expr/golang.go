package expr

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/contract"
)

// Go is the expression as a generated method spells it: fields of the argument a, constants of package op, switches of
// the receiver s. A size is an int64.
func (e *Expr) Go() string { return e.golang(e.tree) }

// GridGo is a size as a uint32, the type of a grid's dimensions.
func (e *Expr) GridGo() string {
	if v := e.info.Types[e.tree].Value; v != nil {
		return e.golang(e.tree)
	}
	if f, native, ok := e.field(e.tree); ok && f.Kind == contract.Number {
		return "uint32(" + native + ")"
	}
	return "uint32(" + e.golang(e.tree) + ")"
}

// field finds what field x is, and how Go spells it at its own type.
func (e *Expr) field(x ast.Expr) (contract.Field, string, bool) {
	name := types.ExprString(ast.Unparen(x))
	f, ok := e.scope.fields[name]
	return f, "a." + name, ok
}

func (e *Expr) golang(x ast.Expr) string {
	if text, ok := e.limited(x); ok {
		return text
	}
	if f, native, ok := e.field(x); ok {
		if f.Kind == contract.Number && f.Type != "int64" && f.Type != "float32" {
			return "int64(" + native + ")"
		}
		return native
	}
	if number, ok := e.number(x); ok {
		return number
	}
	switch x := x.(type) {
	case *ast.ParenExpr:
		return "(" + e.golang(x.X) + ")"
	case *ast.UnaryExpr:
		inner := e.golang(x.X)
		if strings.HasPrefix(inner, "-") { // two would be a decrement
			inner = "(" + inner + ")"
		}
		return x.Op.String() + inner
	case *ast.BinaryExpr:
		left, right := e.golang(x.X), e.golang(x.Y)
		if comparison(x.Op) {
			if l, r, ok := e.nativeComparison(x.X, x.Y); ok {
				left, right = l, r
			}
		}
		return left + " " + x.Op.String() + " " + right
	case *ast.CallExpr:
		args := make([]string, len(x.Args))
		for i, arg := range x.Args {
			args[i] = e.golang(arg)
		}
		return types.ExprString(x.Fun) + "(" + strings.Join(args, ", ") + ")"
	case *ast.Ident:
		return e.identifier(x)
	}
	return types.ExprString(x)
}

func (e *Expr) identifier(x *ast.Ident) string {
	if e.scope.switches[x.Name] {
		return "s.has." + x.Name
	}
	if spelled, ok := e.scope.spelling[x.Name]; ok {
		return spelled
	}
	if _, ok := e.scope.pkg.Scope().Lookup(x.Name).(*types.Const); !ok {
		return x.Name // true, false
	}
	return "op." + x.Name
}

// number spells an integer that the manifest's constants and literals alone make.
func (e *Expr) number(x ast.Expr) (string, bool) {
	v := e.info.Types[x].Value
	if _, plain := e.info.Types[x].Type.(*types.Basic); !plain || v == nil || v.Kind() != constant.Int {
		return "", false
	}
	if constant.Sign(v) < 0 {
		return "(" + v.ExactString() + ")", true
	}
	return v.ExactString(), true
}

func comparison(op token.Token) bool {
	switch op {
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		return true
	}
	return false
}

// nativeComparison spells a comparison of a field with a constant, or of two fields of one type, without conversion.
func (e *Expr) nativeComparison(x, y ast.Expr) (left, right string, ok bool) {
	fx, left, xField := e.field(x)
	fy, right, yField := e.field(y)
	switch {
	case xField && yField:
		return left, right, fx.Type == fy.Type
	case xField && e.fits(y, fx.Type):
		return left, e.golang(y), true
	case yField && e.fits(x, fy.Type):
		return e.golang(x), right, true
	}
	return "", "", false
}

// fits tells whether x is a constant that a value of a number's type can hold.
func (e *Expr) fits(x ast.Expr, numberType string) bool {
	v := e.info.Types[x].Value
	if v == nil || v.Kind() != constant.Int {
		return false
	}
	n, exact := constant.Int64Val(v)
	switch numberType {
	case "int32":
		return exact && n == int64(int32(n))
	case "uint32":
		return exact && n == int64(uint32(n))
	}
	return false
}
