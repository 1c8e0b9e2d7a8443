package optest

import (
	"fmt"
	"reflect"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// field is one buffer of a call at its exact size: count items of inner elements each, pitch elements apart.
type field struct {
	name   string // of the struct's field; the two buffers of a weight are "W.Data" and "W.Scale"
	role   role
	first  string // the first dimension as the tag writes it
	dtype  op.DType
	count  int  // the first dimension
	inner  int  // the product of the other dimensions
	pitch  int  // elements from one item to the next
	cols   int  // the last dimension: a row for comparisons
	vector bool // it has one dimension; then count is 1
	weight bool // packed bytes, made by Pack
}

func (f field) bytes() int64 {
	if f.count == 0 || f.inner == 0 {
		return 0
	}
	return int64((f.count-1)*f.pitch+f.inner) * f.dtype.Bytes()
}

// items calls visit with the byte range of each item.
func (f field) items(visit func(from, to int64)) {
	size := f.dtype.Bytes()
	for i := range f.count {
		from := int64(i*f.pitch) * size
		visit(from, from+int64(f.inner)*size)
	}
}

// fields lists the buffers of a case for activations of type act and matrices of so many packed bytes. Optional buffers are listed where
// the case gives them. A weight has two buffers: its data, and its scale where the case gives that.
func (c *Case) fields(act op.DType, packed func(op.Weight) int64) ([]field, error) {
	var list []field
	t := c.args.Type()
	for i := range t.NumField() {
		text, ok := t.Field(i).Tag.Lookup("atlas")
		if !ok || t.Field(i).Type.Kind() == reflect.Int32 || t.Field(i).Type.Kind() == reflect.Int64 { // of no buffer
			continue
		}
		name := t.Field(i).Name
		tag, err := parseTag(text)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", c.Op, name, err)
		}
		if tag.optional && !c.given[name] {
			continue
		}
		if w, ok := c.args.Field(i).Interface().(op.Weight); ok {
			list = append(list, weightFields(name, tag.role, w, packed(w), c.given[name+".Scale"])...)
			continue
		}
		f := field{name: name, role: tag.role, first: tag.first}
		if f.dtype, err = element(tag.element, c.args, act); err == nil {
			err = f.size(tag, c.args)
		}
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", c.Op, name, err)
		}
		if c.alias[name] != "" {
			continue
		}
		list = append(list, f)
	}
	return list, c.turnAliases(list)
}

// turnAliases makes every buffer whose address another field has, too, one that is read and written.
func (c *Case) turnAliases(list []field) error {
	for name, target := range c.alias {
		found := false
		for i := range list {
			if list[i].name == target {
				list[i].role, found = inout, true
			}
		}
		if !found {
			return fmt.Errorf("%s.%s stands for %s, which is not there", c.Op, name, target)
		}
	}
	return nil
}

func weightFields(name string, role role, w op.Weight, packed int64, scaled bool) []field {
	list := []field{{
		name: name + ".Data", role: role, dtype: op.U8, weight: true,
		count: int(w.Count), inner: int(packed), pitch: int(w.Stride), cols: int(packed),
	}}
	if scaled {
		n := int(w.Count) * int(w.Rows)
		list = append(list, field{name: name + ".Scale", role: in, dtype: op.F32, count: 1, inner: n, pitch: n, cols: n})
	}
	return list
}

func (f *field) size(t tag, args reflect.Value) error {
	f.inner, f.cols = 1, 1
	for i, expr := range t.dims {
		n, err := evaluate(expr, args)
		switch {
		case err != nil:
			return err
		case n < 0:
			return fmt.Errorf("dimension %d is %d", i, n)
		case i == 0:
			f.count = int(n)
		default:
			f.inner *= int(n)
			f.cols = int(n)
		}
	}
	f.pitch = f.inner
	if t.pitch != nil {
		n, err := evaluate(t.pitch, args)
		if err != nil {
			return err
		}
		f.pitch = int(n)
	}
	if len(t.dims) == 1 {
		f.vector = true
		f.cols, f.inner, f.pitch, f.count = f.count, f.count, f.count, min(f.count, 1)
	}
	if f.pitch < f.inner {
		return fmt.Errorf("pitch %d is less than the %d elements of an item", f.pitch, f.inner)
	}
	return nil
}

// element finds an element type by name: act, one of op's, or a field of args that holds one.
func element(name string, args reflect.Value, act op.DType) (op.DType, error) {
	if name == "act" {
		return act, nil
	}
	if v := args.FieldByName(name); v.IsValid() {
		if t, ok := v.Interface().(op.DType); ok {
			return t, nil
		}
	}
	for t := op.F32; t <= op.F8E4M3; t++ {
		if t.String() == name {
			return t, nil
		}
	}
	return 0, fmt.Errorf("element type %q is unknown", name)
}
