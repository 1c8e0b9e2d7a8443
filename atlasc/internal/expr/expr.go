// Package expr reads the Go expressions of manifests: conditions and sizes over an operation's fields.
//
// Integer fields are int64 in every expression, so that a size does not overflow; fields of named types (DType,
// Scheme) keep theirs. An expression that type-checks cannot panic: it has no calls but min, max and ceil, and divides
// only by what cannot be zero. ceil(a, b) is a/b rounded up, of numbers that are not negative.
package expr

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/contract"
	"github.com/atlas-inference/atlas/atlasc/internal/diag"
)

// maxLength bounds the text of an expression, and so the depth of its tree.
const maxLength = 1000

// Scope is what the names in an expression mean.
type Scope struct {
	pkg      *types.Package
	fields   map[string]contract.Field // "Rows", "W.Rows"
	scheme   string                    // the field by which calls are told apart: that of the first Weight
	switches map[string]bool           // features and options
	spelling map[string]string         // of other variables, in Go
}

// OpScope is the scope of an operation's expressions: its fields, package op's constants, and switches (features and
// options) and constants by name.
func OpScope(c *contract.Contract, op *contract.Struct, switches []string, constants map[string]int64) *Scope {
	s := newScope(c)
	for _, f := range op.Fields {
		if f.Kind == contract.WeightField {
			if s.scheme == "" {
				s.scheme = f.Name + ".Scheme"
			}
			var inner []*types.Var
			for _, g := range c.Weight.Fields {
				s.fields[f.Name+"."+g.Name] = g
				inner = append(inner, s.variable(g.Name, s.fieldType(c, g)))
			}
			s.pkg.Scope().Insert(s.variable(f.Name, types.NewStruct(inner, nil)))
			continue
		}
		if f.Kind != contract.Padding {
			s.fields[f.Name] = f
			s.pkg.Scope().Insert(s.variable(f.Name, s.fieldType(c, f)))
		}
	}
	for _, name := range switches {
		s.switches[name] = true
		s.pkg.Scope().Insert(s.variable(name, types.Typ[types.Bool]))
	}
	for name, value := range constants {
		s.pkg.Scope().Insert(types.NewConst(token.NoPos, s.pkg, name, types.Typ[types.UntypedInt], constant.MakeInt64(value)))
	}
	return s
}

// SizeScope is the scope of a layout's size: Rows and Cols, which the generated method has as rows and cols.
func SizeScope() *Scope {
	s := newScope(nil)
	s.spelling = map[string]string{"Rows": "int64(rows)", "Cols": "int64(cols)"}
	for name := range s.spelling {
		s.pkg.Scope().Insert(s.variable(name, types.Typ[types.Int64]))
	}
	return s
}

func newScope(c *contract.Contract) *Scope {
	s := &Scope{pkg: types.NewPackage("manifest", "manifest"), fields: map[string]contract.Field{}, switches: map[string]bool{}}
	if c != nil {
		for _, k := range c.Constants {
			s.pkg.Scope().Insert(c.Package.Scope().Lookup(k.Name))
		}
	}
	return s
}

func (s *Scope) variable(name string, t types.Type) *types.Var {
	return types.NewVar(token.NoPos, s.pkg, name, t)
}

// fieldType is the type that a field has in expressions.
func (s *Scope) fieldType(c *contract.Contract, f contract.Field) types.Type {
	switch {
	case f.Kind == contract.Enum || f.Kind == contract.Pointer:
		return c.Package.Scope().Lookup(f.Type).Type()
	case f.Type == "float32":
		return types.Typ[types.Float32]
	}
	return types.Typ[types.Int64]
}

// universe is what expressions may mention in every scope.
var universe = []string{"min", "max", "ceil", "true", "false"}

// names lists what an expression may mention.
func (s *Scope) names() []string {
	names := append(s.pkg.Scope().Names(), universe...)
	return slices.DeleteFunc(names, func(n string) bool { return n == "W" && s.fields["W.Rows"].Name != "" })
}

// Expr is an expression that has been checked.
type Expr struct {
	Text  string // as the manifest has it
	tree  ast.Expr
	info  types.Info
	scope *Scope

	limits []limit // of parts, in a copy that GoWithin spells
}

// Error says what is wrong with an expression and what to do.
type Error struct{ Msg, Hint string }

// Error says what is wrong with the expression.
func (e *Error) Error() string { return e.Msg }

// Bool reads a condition.
func (s *Scope) Bool(text string) (*Expr, error) {
	return s.read(text, types.Typ[types.Bool], "true or false")
}

// Int reads a size.
func (s *Scope) Int(text string) (*Expr, error) {
	return s.read(text, types.Typ[types.Int64], "an integer")
}

func (s *Scope) read(text string, want types.Type, what string) (*Expr, error) {
	if len(text) > maxLength {
		return nil, &Error{fmt.Sprintf("expression of %d characters", len(text)), fmt.Sprintf("%d at most", maxLength)}
	}
	tree, err := parser.ParseExpr(text)
	if err != nil {
		return nil, &Error{fmt.Sprintf("expression %q does not parse", text), "write a Go expression"}
	}
	if err := s.allowed(tree); err != nil {
		return nil, err
	}
	tree = written(tree)
	e := &Expr{Text: text, tree: tree, scope: s, info: types.Info{Types: map[ast.Expr]types.TypeAndValue{}}}
	if err := types.CheckExpr(token.NewFileSet(), s.pkg, token.NoPos, tree, &e.info); err != nil {
		var t types.Error
		if errors.As(err, &t) {
			err = errors.New(t.Msg)
		}
		return nil, &Error{fmt.Sprintf("expression %q: %v", text, err), ""}
	}
	if t := e.info.Types[tree].Type; !types.AssignableTo(t, want) {
		return nil, &Error{fmt.Sprintf("expression %q is %s, want %s", text, t, what), ""}
	}
	if v := e.info.Types[tree].Value; v != nil && want == types.Typ[types.Int64] {
		if _, ok := constant.Int64Val(constant.ToInt(v)); !ok {
			return nil, &Error{fmt.Sprintf("expression %q is %s, want an integer of 64 bits", text, v), ""}
		}
	}
	return e, e.safe(tree)
}

// allowed refuses what a manifest has no use for, and names that mean nothing.
func (s *Scope) allowed(e ast.Expr) error {
	switch e := e.(type) {
	case *ast.BasicLit:
		return nil
	case *ast.ParenExpr:
		return s.allowed(e.X)
	case *ast.UnaryExpr:
		if e.Op == token.NOT || e.Op == token.SUB {
			return s.allowed(e.X)
		}
	case *ast.BinaryExpr:
		return errors.Join(s.allowed(e.X), s.allowed(e.Y))
	case *ast.Ident:
		if s.pkg.Scope().Lookup(e.Name) == nil && !slices.Contains(universe, e.Name) {
			return &Error{fmt.Sprintf("%q is no field, constant, feature or option", e.Name), diag.Suggest(e.Name, s.names())}
		}
		return nil
	case *ast.SelectorExpr:
		x, ok := e.X.(*ast.Ident)
		if !ok {
			break
		}
		if _, ok := s.fields[x.Name+"."+e.Sel.Name]; ok {
			return nil
		}
		var known []string
		for name := range s.fields {
			if inner, ok := strings.CutPrefix(name, x.Name+"."); ok {
				known = append(known, inner)
			}
		}
		return &Error{fmt.Sprintf("%s has no field %q", x.Name, e.Sel.Name), diag.Suggest(e.Sel.Name, known)}
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.Ident); ok && !e.Ellipsis.IsValid() && (f.Name == "min" || f.Name == "max" || f.Name == "ceil" && len(e.Args) == 2) {
			for _, arg := range e.Args {
				if err := s.allowed(arg); err != nil {
					return err
				}
			}
			if f.Name == "ceil" && calls(e.Args[1], "ceil") {
				return &Error{fmt.Sprintf("%q rounds up by what is rounded up itself", types.ExprString(e)), "divide by something simpler"}
			}
			return nil
		}
	}
	return &Error{fmt.Sprintf("%q is not allowed in an expression", types.ExprString(e)), "use fields, numbers, operators, min, max and ceil(a, b)"}
}

// calls tells whether a part of an expression calls a function.
func calls(e ast.Expr, name string) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name
		return !found
	})
	return found
}

// written is an expression with (a + (b - 1)) / b in the place of ceil(a, b). As b is there twice it has no ceil itself, or
// the tree could double many times.
func written(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.ParenExpr:
		e.X = written(e.X)
	case *ast.UnaryExpr:
		e.X = enclosed(e.X)
	case *ast.BinaryExpr:
		e.X = written(e.X)
		if e.Op.Precedence() < token.QUO.Precedence() {
			e.Y = written(e.Y)
		} else {
			e.Y = enclosed(e.Y)
		}
	case *ast.CallExpr:
		for i := range e.Args {
			e.Args[i] = written(e.Args[i])
		}
		if e.Fun.(*ast.Ident).Name == "ceil" {
			a, b := e.Args[0], e.Args[1]
			less := &ast.ParenExpr{X: &ast.BinaryExpr{X: b, Op: token.SUB, Y: &ast.BasicLit{Kind: token.INT, Value: "1"}}}
			return &ast.BinaryExpr{X: &ast.ParenExpr{X: &ast.BinaryExpr{X: a, Op: token.ADD, Y: less}}, Op: token.QUO, Y: b}
		}
	}
	return e
}

// enclosed is written where a quotient needs parentheses.
func enclosed(e ast.Expr) ast.Expr {
	w := written(e)
	if _, call := e.(*ast.CallExpr); call && w != e {
		return &ast.ParenExpr{X: w}
	}
	return w
}

// safe refuses divisors that may be zero and shifts that may be negative.
func (e *Expr) safe(x ast.Expr) error {
	var bad error
	ast.Inspect(x, func(n ast.Node) bool {
		b, ok := n.(*ast.BinaryExpr)
		if !ok || bad != nil {
			return true
		}
		switch b.Op {
		case token.QUO, token.REM:
			if e.info.Types[b.Y].Value == nil && !e.positive(b.Y) && types.AssignableTo(e.info.Types[b].Type, types.Typ[types.Int64]) {
				bad = &Error{fmt.Sprintf("%q divides by what may be zero", types.ExprString(b)), "divide by max(1, " + types.ExprString(b.Y) + ")"}
			}
		case token.SHL, token.SHR:
			if e.info.Types[b.Y].Value == nil {
				bad = &Error{fmt.Sprintf("%q shifts by what may be negative", types.ExprString(b)), "shift by a constant"}
			}
		}
		return true
	})
	return bad
}

// positive tells whether x is max(..., c, ...) with a constant c above zero.
func (e *Expr) positive(x ast.Expr) bool {
	call, ok := ast.Unparen(x).(*ast.CallExpr)
	if !ok || types.ExprString(call.Fun) != "max" {
		return false
	}
	return slices.ContainsFunc(call.Args, func(arg ast.Expr) bool {
		v := e.info.Types[arg].Value
		return v != nil && constant.Sign(v) > 0
	})
}

// Constant is the value of an expression that mentions no field.
func (e *Expr) Constant() (int64, bool) {
	v := e.info.Types[e.tree].Value
	if v == nil {
		return 0, false
	}
	return constant.Int64Val(constant.ToInt(v))
}

// Most is what a size cannot exceed whatever the fields are: the constant of a min, or such a limit times a constant. Not every size
// has one.
func (e *Expr) Most() (int64, bool) {
	limit := e.most(e.tree)
	if limit == nil {
		return 0, false
	}
	return constant.Int64Val(constant.ToInt(limit))
}

// most is nil where x has no limit.
func (e *Expr) most(x ast.Expr) constant.Value {
	if v := e.info.Types[x].Value; v != nil {
		return v
	}
	switch x := ast.Unparen(x).(type) {
	case *ast.CallExpr:
		if types.ExprString(x.Fun) != "min" {
			return nil
		}
		var least constant.Value
		for _, arg := range x.Args {
			if limit := e.most(arg); limit != nil && (least == nil || constant.Compare(limit, token.LSS, least)) {
				least = limit
			}
		}
		return least
	case *ast.BinaryExpr:
		if times, limit := e.info.Types[x.X].Value, e.most(x.Y); x.Op == token.MUL && times != nil && limit != nil && constant.Sign(times) > 0 {
			return constant.BinaryOp(times, token.MUL, limit)
		}
	}
	return nil
}

// Switches lists the features and options that the expression mentions.
func (e *Expr) Switches() []string {
	var found []string
	ast.Inspect(e.tree, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && e.scope.switches[id.Name] && !slices.Contains(found, id.Name) {
			found = append(found, id.Name)
		}
		return true
	})
	slices.Sort(found)
	return found
}
