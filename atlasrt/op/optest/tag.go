package optest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strconv"
	"strings"
)

// role is what an op does with a buffer.
type role int

const (
	in role = iota
	out
	inout
)

// tag is what a struct tag of package op says about a field. The syntax stands in the comment of package op.
type tag struct {
	role     role
	optional bool
	element  string     // name of the element type, empty for a Weight
	dims     []ast.Expr // nil for a Weight
	first    string     // the first dimension as it is written, without its pitch
	pitch    ast.Expr   // elements between items of the first dimension; nil where they are adjacent
}

func parseTag(text string) (tag, error) {
	var t tag
	words := strings.SplitN(text, " ", 3)
	name, optional := strings.CutSuffix(words[0], "?")
	t.optional = optional
	switch name {
	case "in":
		t.role = in
	case "out":
		t.role = out
	case "inout":
		t.role = inout
	default:
		return t, fmt.Errorf("tag %q: role %q is none of in, out, inout", text, name)
	}
	if len(words) == 1 {
		return t, nil
	}
	if len(words) < 3 || !strings.HasPrefix(words[2], "[") || !strings.HasSuffix(words[2], "]") {
		return t, fmt.Errorf("tag %q: want ROLE TYPE [DIM,...]", text)
	}
	t.element = words[1]
	for i, dim := range strings.Split(strings.Trim(words[2], "[]"), ",") {
		size, pitch, pitched := strings.Cut(dim, ":")
		if pitched && i > 0 {
			return t, fmt.Errorf("tag %q: only the first dimension may have a pitch here", text)
		}
		expr, err := parser.ParseExpr(size)
		if err != nil {
			return t, fmt.Errorf("tag %q: dimension %q: %w", text, size, err)
		}
		t.dims = append(t.dims, expr)
		if i == 0 {
			t.first = size
		}
		if pitched {
			if t.pitch, err = parser.ParseExpr(pitch); err != nil {
				return t, fmt.Errorf("tag %q: pitch %q: %w", text, pitch, err)
			}
		}
	}
	return t, nil
}

// evaluate computes a dimension from the integer fields of args, a struct.
func evaluate(expr ast.Expr, args reflect.Value) (int64, error) {
	switch e := expr.(type) {
	case *ast.ParenExpr:
		return evaluate(e.X, args)
	case *ast.BasicLit:
		return strconv.ParseInt(e.Value, 0, 64)
	case *ast.Ident:
		return integer(e.Name, args.FieldByName(e.Name))
	case *ast.SelectorExpr:
		if outer, ok := e.X.(*ast.Ident); ok && args.FieldByName(outer.Name).Kind() == reflect.Struct {
			return integer(e.Sel.Name, args.FieldByName(outer.Name).FieldByName(e.Sel.Name))
		}
	case *ast.BinaryExpr:
		x, err := evaluate(e.X, args)
		if err != nil {
			return 0, err
		}
		y, err := evaluate(e.Y, args)
		if err != nil {
			return 0, err
		}
		switch {
		case e.Op == token.ADD:
			return x + y, nil
		case e.Op == token.SUB:
			return x - y, nil
		case e.Op == token.MUL:
			return x * y, nil
		case e.Op == token.QUO && y != 0:
			return x / y, nil
		}
	}
	return 0, fmt.Errorf("a dimension of %s uses more than integer fields, + - * / and parentheses", args.Type())
}

func integer(name string, v reflect.Value) (int64, error) {
	if !v.IsValid() || !v.CanInt() {
		return 0, fmt.Errorf("%s is no integer field", name)
	}
	return v.Int(), nil
}
