package api

import (
	"fmt"
	"iter"
	"math"
	"strconv"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// List reads an array; nil where there is none.
func (f *Fields) List(name string) jsontree.Array {
	v := f.Take(name)
	if v == nil {
		return nil
	}
	l, ok := v.(jsontree.Array)
	if !ok {
		f.WrongKind(name, "an array", v)
		return nil
	}
	return l
}

// Dict reads an object; nil where there is none.
func (f *Fields) Dict(name string) *jsontree.Object {
	v := f.Take(name)
	if v == nil {
		return nil
	}
	d, ok := v.(*jsontree.Object)
	if !ok {
		f.WrongKind(name, "an object", v)
		return nil
	}
	return d
}

// Object reads the fields of an object; nil where there is none.
func (f *Fields) Object(name string) *Fields {
	d := f.Dict(name)
	if d == nil {
		return nil
	}
	return f.Inner(d, name)
}

// Objects reads the entries of an array, which must be objects, up to the first problem. name is its field.
func (f *Fields) Objects(name string, list jsontree.Array) iter.Seq2[int, *Fields] {
	return func(yield func(int, *Fields) bool) {
		for i, item := range list {
			entry := fmt.Sprintf("%s[%d]", name, i)
			object, ok := item.(*jsontree.Object)
			if !ok {
				f.WrongKind(entry, "an object", item)
			}
			if f.Err() != nil || !yield(i, f.Inner(object, entry)) {
				return
			}
		}
	}
}

// AtMost refuses a field with more entries than a limit allows; false: it has more.
func (f *Fields) AtMost(limit Limit, name string, entries, most int) bool {
	if entries > most {
		f.Fail(TooMuch(limit, f.Path(name), "%s has %d entries, at most %d are allowed.", f.Path(name), entries, most))
	}
	return entries <= most
}

// Stops makes stop strings of the items of an array.
func (f *Fields) Stops(name string, items jsontree.Array, limits Limits) (stops []string) {
	if !f.AtMost(LimitStops, name, len(items), limits.Stops) {
		return nil
	}
	for i, item := range items {
		stop, ok := item.(jsontree.String)
		switch {
		case !ok:
			f.Invalid(name, "must hold strings; entry %d is %s", i, item.Kind())
		case stop == "":
			f.Invalid(name, "must not hold an empty string")
		case len(stop) > limits.StopBytes:
			f.Fail(TooMuch(LimitStops, f.Path(name), "%s holds a string of %d bytes, at most %d are allowed.", f.Path(name), len(stop), limits.StopBytes))
		}
		stops = append(stops, string(stop))
	}
	return stops
}

// Tokens makes token ids of the items of an array. Whether the model has them is not known yet.
func (f *Fields) Tokens(name string, items jsontree.Array) []int32 {
	ids := make([]int32, 0, len(items))
	for i, item := range items {
		n, _ := item.(jsontree.Number)
		id, whole, fits := n.Whole()
		switch {
		case n == "" || !whole:
			f.Invalid(name, "must hold integers; entry %d is %s", i, item.Kind())
			return nil
		case !fits || id < math.MinInt32 || id > math.MaxInt32:
			f.Invalid(name, "holds token %.40s, which no vocabulary has", string(n))
			return nil
		}
		ids = append(ids, int32(id))
	}
	return ids
}

// PageLimit reads how many entries of a list a query asks for, from 1 to most.
func PageLimit(text string, usual, most int) (int, error) {
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, Invalid("limit", "limit is %q, must be an integer from 1 to %d.", Clip(text, 40), most)
	}
	return n, nil
}
