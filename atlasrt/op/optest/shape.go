package optest

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Shape is the sizes and switches of a call: the integer fields of its struct, by the names that conditions in manifests use.
type Shape struct {
	Op    string           // the operation
	Args  map[string]int64 // "Rows", "W.Cols", …
	Count int64            `json:",omitempty"` // how often it was called
}

// ShapeOf is the shape of an op's struct.
func ShapeOf(args any) Shape {
	s := Shape{Op: reflect.TypeOf(args).Name(), Args: map[string]int64{}}
	s.add("", reflect.ValueOf(args))
	return s
}

// add adds the integer fields of a struct. Addresses, and the stride between stacked matrices, are left out.
func (s *Shape) add(prefix string, v reflect.Value) {
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		switch {
		case f.Kind() == reflect.Struct:
			s.add(name+".", f)
		case f.CanInt() && name != "_" && name != "Stride":
			s.Args[prefix+name] = f.Int()
		}
	}
}

// Sizes describes a call, an op's struct, by the sizes that its time depends on: "bf16 4096×12288 rows 1".
func Sizes(args any) string {
	v := reflect.ValueOf(args)
	var words []string
	if f := v.FieldByName("W"); f.IsValid() {
		w := f.Interface().(op.Weight)
		words = append(words, w.Scheme.String())
		if w.Count > 1 {
			words = append(words, fmt.Sprintf("%d×%d×%d", w.Count, w.Rows, w.Cols))
		} else {
			words = append(words, fmt.Sprintf("%d×%d", w.Rows, w.Cols))
		}
	}
	if v.FieldByName("KVHeads").IsValid() {
		words = append(words, fmt.Sprintf("%d/%d×%d", v.FieldByName("Heads").Int(), v.FieldByName("KVHeads").Int(), v.FieldByName("HeadDim").Int()))
	} else if v.FieldByName("HeadDim").IsValid() {
		words = append(words, fmt.Sprintf("%d×%d", v.FieldByName("Heads").Int(), v.FieldByName("HeadDim").Int()))
	}
	if v.FieldByName("KeyHeads").IsValid() {
		words = append(words, fmt.Sprintf("%d/%d×%d×%d", v.FieldByName("KeyHeads").Int(), v.FieldByName("ValueHeads").Int(), v.FieldByName("ValueDim").Int(), v.FieldByName("KeyDim").Int()))
	}
	for _, x := range []struct{ field, word string }{
		{"Cols", "columns"}, {"Channels", "channels"}, {"Vocab", "vocabulary"}, {"Experts", "experts"}, {"Pairs", "pairs"}, {"TopK", "top"}, {"Bytes", "bytes"}, {"Count", "count"},
		{"Seqs", "sequences"}, {"Rows", "rows"},
	} {
		if f := v.FieldByName(x.field); f.IsValid() && f.CanInt() {
			words = append(words, fmt.Sprintf("%s %d", x.word, f.Int()))
		}
	}
	for _, name := range []string{"Residual", "Bias", "QNorm"} {
		if f := v.FieldByName(name); f.IsValid() && !f.IsZero() {
			words = append(words, strings.ToLower(name))
		}
	}
	return strings.Join(words, " ")
}

// Limits of a shape that comes from a file.
const (
	mostShapeSize  = 1 << 20
	mostShapeBytes = 4 << 30
	mostShapeRows  = 1 << 30 // elements of an activation
)

// number is a size of a shape; 0 where the shape does not have it.
func (s Shape) number(name string) int32 { return int32(s.Args[name]) }

// shapedCase makes a case of a shape. It fails for sizes that are out of range, and for operations whose time depends on more than sizes.
func shapedCase(s Shape) (*Case, error) {
	for name, n := range s.Args {
		if n < 0 || n > mostShapeSize {
			return nil, fmt.Errorf("%s: %s is %d (it must be between 0 and %d)", s.Op, name, n, mostShapeSize)
		}
	}
	name := fmt.Sprintf("%d rows", s.Args["Rows"])
	w := op.Weight{Scheme: op.Scheme(s.number("W.Scheme")), Rows: s.number("W.Rows"), Cols: s.number("W.Cols"), Count: max(s.number("W.Count"), 1), Rounding: op.Rounding(s.number("W.Rounding"))}
	if slices.Contains([]string{"Linear", "Logits", "ExpertUp", "ExpertDown"}, s.Op) {
		if w.Scheme.String() == "unknown" || w.Rows < 1 || w.Cols < 1 || int64(w.Cols)%w.Scheme.Block() != 0 {
			return nil, fmt.Errorf("%s: no matrix of %d rows and %d columns in scheme %d", s.Op, w.Rows, w.Cols, w.Scheme)
		}
		if float64(w.Rows)*float64(w.Cols)*float64(w.Count) > math.MaxInt32*2 || int64(w.Count)*w.Scheme.RawBytes(int64(w.Rows), int64(w.Cols)) > mostShapeBytes {
			return nil, fmt.Errorf("%s: a matrix of %d×%d×%d is too large to be measured", s.Op, w.Count, w.Rows, w.Cols)
		}
		name = fmt.Sprintf("%s %s rows %d", w.Scheme, shape{int(w.Rows), int(w.Cols)}, s.Args["Rows"])
	}
	rows := s.number("Rows")
	if rows < 1 {
		return nil, fmt.Errorf("%s: no rows", s.Op)
	}
	for _, cols := range []string{"Cols", "W.Rows", "W.Cols", "OutPitch", "W.Count"} {
		if max(int64(rows), s.Args["InRows"])*max(s.Args["TopK"], 1)*s.Args[cols] > mostShapeRows {
			return nil, fmt.Errorf("%s: %d rows of %d are too large to be measured", s.Op, rows, s.Args[cols])
		}
	}
	switch s.Op {
	case "Linear":
		return of(name, op.Linear{W: w, Rows: rows, OutPitch: max(s.number("OutPitch"), w.Rows)}).with(factored(w.Scheme)), nil
	case "Logits":
		c := of(name, op.Logits{W: w, Rows: rows, InRows: max(s.number("InRows"), rows)}).with(factored(w.Scheme))
		set(c, "Index", counting(int(rows)))
		return c, nil
	case "ExpertUp", "ExpertDown":
		top := s.number("TopK")
		if top < 1 || top > w.Count || int64(rows)*int64(top) > mostShapeSize {
			return nil, fmt.Errorf("%s: %d experts of %d for each of %d rows", s.Op, top, w.Count, rows)
		}
		ids := picks(int(rows), int(w.Count), int(top), 0)
		if s.Op == "ExpertUp" {
			return of(name, op.ExpertUp{W: w, Rows: rows, TopK: top}).group(ids).with(factored(w.Scheme)), nil
		}
		return of(name, op.ExpertDown{W: w, Rows: rows, TopK: top}).group(ids).with(factored(w.Scheme)), nil
	case "RMSNorm":
		return of(name, op.RMSNorm{Rows: rows, Cols: max(s.number("Cols"), 1), Eps: 1e-6}).with("Residual"), nil
	case "SwiGLU":
		return of(name, op.SwiGLU{Rows: rows, Cols: max(s.number("Cols"), 1)}), nil
	}
	return nil, fmt.Errorf("%s is not measured by its sizes alone", s.Op)
}
