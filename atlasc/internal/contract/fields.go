package contract

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/diag"
)

// Elements are the element types of the tag grammar, besides the name of a DType field.
var Elements = []string{"f32", "bf16", "i32", "i64", "u32", "u8", "act"}

// structure lays a struct out and reads its tags. A nil weight means that s is the weight itself, whose pointers need
// no tag: its scheme says what they point to.
func (r *reader) structure(object *types.TypeName, s *types.Struct, weight *Struct) *Struct {
	out := &Struct{Name: object.Name()}
	end := int64(0)
	for i := range s.NumFields() {
		v := s.Field(i)
		f := Field{Name: v.Name(), Type: types.TypeString(v.Type(), local), Size: sizes.Sizeof(v.Type())}
		f.Offset = roundUp(end, sizes.Alignof(v.Type()))
		what := object.Name() + "." + v.Name()
		if f.Offset != end {
			r.diags.Add(r.at(v.Pos()), "put larger fields first, or a field named _ before it",
				"%d bytes of hidden padding before %s", f.Offset-end, what)
		}
		end = f.Offset + f.Size
		if !r.classify(&f, v, what, weight == nil) {
			continue
		}
		out.Fields = append(out.Fields, f)
	}
	out.Size = roundUp(end, sizes.Alignof(s))
	if out.Size != end {
		r.diags.Add(r.at(object.Pos()), "end it with a field named _", "%d bytes of hidden padding at the end of %s", out.Size-end, object.Name())
	}
	for i := range out.Fields {
		f := &out.Fields[i]
		v, tag := s.Field(i), s.Tag(i)
		if len(out.Fields) == s.NumFields() {
			r.tag(out, f, tag, r.at(v.Pos()), object.Name()+"."+v.Name(), weight)
		}
	}
	return out
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

// classify sets the field's kind, or reports a type that may not cross to a device.
func (r *reader) classify(f *Field, v *types.Var, what string, inWeight bool) bool {
	switch basic, _ := v.Type().Underlying().(*types.Basic); {
	case f.Type == "Ptr":
		f.Kind = Pointer
	case f.Type == "Weight" && !inWeight:
		f.Kind = WeightField
	case basic == nil || basic.Kind() == types.UnsafePointer || basic.Kind() == types.Uintptr || basic.Kind() == types.String:
		r.diags.Add(r.at(v.Pos()), "use Ptr for memory of the device", "%s is a %s, which means nothing to a kernel", what, f.Type)
		return false
	case v.Type() != v.Type().Underlying():
		if basic.Kind() != types.Int32 {
			r.diags.Add(r.at(v.Pos()), "declare it as int32", "%s: type %s is a %s; the C header has enumerations of int32 only", what, f.Type, basic)
			return false
		}
		f.Kind = Enum
	case slices.Contains([]string{"int32", "uint32", "int64", "float32"}, f.Type):
		f.Kind = Number
	default:
		r.diags.Add(r.at(v.Pos()), "use int32, uint32, int64 or float32", "%s is a %s, which has no counterpart in the C header", what, f.Type)
		return false
	}
	if f.Name == "_" {
		f.Kind = Padding
	}
	return true
}

// stepTag is the tag of integers that one step has more of than another.
const stepTag = "step"

// tag reads `atlas:"ROLE TYPE [DIM,...]"` or `atlas:"step"`; package op describes the grammar.
func (r *reader) tag(s *Struct, f *Field, tag string, at diag.Pos, what string, weight *Struct) {
	text, ok := reflect.StructTag(tag).Lookup("atlas")
	switch {
	case tag != "" && (!ok || tag != fmt.Sprintf("atlas:%q", text)):
		r.diags.Add(at, `write atlas:"..." and nothing else`, "%s: unknown struct tag `%s`", what, tag)
		return
	case ok && text == stepTag && weight != nil && f.Kind == Number && f.Type != "float32":
		f.Step = true
		return
	case weight == nil || f.Kind == Number || f.Kind == Enum || f.Kind == Padding:
		if ok {
			r.diags.Add(at, "remove the tag", "%s is no pointer, so it has no role", what)
		}
		return
	case !ok:
		r.diags.Add(at, "add a tag `atlas:\"in f32 [Rows]\"`", "%s has no atlas tag", what)
		return
	}
	words := strings.Fields(text)
	role, optional := strings.CutSuffix(words0(words), "?")
	f.Role, f.Optional = Role(role), optional
	if f.Role != In && f.Role != Out && f.Role != InOut {
		r.diags.Add(at, "use in, out or inout", "%s: unknown role %q", what, role)
		return
	}
	if f.Kind == WeightField {
		if len(words) != 1 {
			r.diags.Add(at, `write atlas:"`+role+`"`, "%s: a Weight has a role only, its Scheme tells the rest", what)
		}
		return
	}
	if len(words) < 3 {
		r.diags.Add(at, `write atlas:"ROLE TYPE [DIM,...]"`, "%s: tag %q lacks a type or dimensions", what, text)
		return
	}
	f.Elem = words[1]
	if named := s.Field(f.Elem); !slices.Contains(Elements, f.Elem) && (named == nil || named.Type != "DType") {
		known := slices.Clone(Elements)
		for _, g := range s.Fields {
			if g.Type == "DType" {
				known = append(known, g.Name)
			}
		}
		r.diags.Add(at, diag.Suggest(f.Elem, known), "%s: %q is neither an element type nor a DType field of %s", what, f.Elem, s.Name)
	}
	f.Dims = r.dims(s, strings.Join(words[2:], " "), at, what, weight)
}

func words0(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// dims reads [DIM,DIM:PITCH,...].
func (r *reader) dims(s *Struct, text string, at diag.Pos, what string, weight *Struct) []Dim {
	inner, opened := strings.CutPrefix(text, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !opened || !closed {
		r.diags.Add(at, "write [Rows,Cols]", "%s: dimensions %q are not in brackets", what, text)
		return nil
	}
	var dims []Dim
	for _, part := range splitOutside(inner, ',') {
		sides := splitOutside(part, ':')
		if len(sides) > 2 {
			r.diags.Add(at, "write DIM:PITCH", "%s: dimension %q has %d colons", what, part, len(sides)-1)
			continue
		}
		dim := Dim{Size: strings.TrimSpace(sides[0])}
		if len(sides) == 2 {
			dim.Pitch = strings.TrimSpace(sides[1])
			r.expression(s, dim.Pitch, at, what, weight)
		}
		r.expression(s, dim.Size, at, what, weight)
		dims = append(dims, dim)
	}
	return dims
}

// splitOutside splits at every sep that stands in no parentheses.
func splitOutside(s string, sep byte) []string {
	var parts []string
	depth, start := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case sep:
			if depth == 0 {
				parts = append(parts, s[start:i])
				start = i + 1
			}
		}
	}
	return append(parts, s[start:])
}

// expression checks that a dimension is integer arithmetic over the struct's integer fields.
func (r *reader) expression(s *Struct, text string, at diag.Pos, what string, weight *Struct) {
	e, err := parser.ParseExpr(text)
	if err != nil {
		r.diags.Add(at, "write a Go expression", "%s: dimension %q does not parse", what, text)
		return
	}
	var walk func(ast.Expr)
	walk = func(e ast.Expr) {
		switch e := e.(type) {
		case *ast.Ident:
			r.integer(s, e.Name, at, what)
		case *ast.SelectorExpr:
			x, ok := e.X.(*ast.Ident)
			if f := s.Field(nameOf(x, ok)); f == nil || f.Kind != WeightField {
				r.diags.Add(at, "only a Weight has fields of its own", "%s: %q in dimension %q", what, types.ExprString(e), text)
				return
			}
			r.integer(weight, e.Sel.Name, at, what)
		case *ast.BasicLit:
		case *ast.ParenExpr:
			walk(e.X)
		case *ast.BinaryExpr:
			walk(e.X)
			walk(e.Y)
		default:
			r.diags.Add(at, "use integer fields, numbers and + - * /", "%s: %q in dimension %q is not allowed", what, types.ExprString(e), text)
		}
	}
	walk(e)
}

func nameOf(x *ast.Ident, ok bool) string {
	if !ok {
		return ""
	}
	return x.Name
}

// integer checks that a name in a dimension is an integer field.
func (r *reader) integer(s *Struct, name string, at diag.Pos, what string) {
	if f := s.Field(name); f != nil && f.Kind == Number && f.Type != "float32" {
		return
	}
	var known []string
	for _, f := range s.Fields {
		if f.Kind == Number && f.Type != "float32" {
			known = append(known, f.Name)
		}
	}
	r.diags.Add(at, diag.Suggest(name, known), "%s: %s has no integer field %q", what, s.Name, name)
}
