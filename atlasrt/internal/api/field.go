package api

import (
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// fields reads the fields of one JSON object. The first problem is kept and later ones are not looked at, so that decoders
// are plain lists of what they read. Absent and null fields leave the default in place.
type fields struct {
	object *jsontree.Object
	path   string // what to put before a field's name in errors
	route  route  // whose ranges numbers have
	known  map[string]bool
	err    *Error
}

// readObject parses a body: exact keys without duplicates, bounded depth and size, valid UTF-8.
func readObject(body []byte, of route) (*fields, error) {
	v, err := jsontree.Decode(body, jsontree.Limits{})
	if err != nil {
		return nil, Invalid("", "The body cannot be read: %s.", clip(err.Error(), 200))
	}
	object, ok := v.(*jsontree.Object)
	if !ok {
		return nil, Invalid("", "The body must be a JSON object, not %s.", v.Kind())
	}
	return &fields{object: object, route: of, known: map[string]bool{}}, nil
}

// inner reads an object within the one that f reads; name is its field.
func (f *fields) inner(object *jsontree.Object, name string) *fields {
	return &fields{object: object, path: f.path + name + ".", route: f.route, known: map[string]bool{}}
}

// failure is the first problem.
func (f *fields) failure() error {
	if f.err == nil {
		return nil
	}
	return f.err
}

func (f *fields) fail(err *Error) {
	if f.err == nil {
		f.err = err
	}
}

// invalid blames a field.
func (f *fields) invalid(name, format string, values ...any) {
	f.fail(Invalid(f.path+name, f.path+name+" "+format+".", values...))
}

func (f *fields) wrongKind(name, want string, v jsontree.Value) {
	f.invalid(name, "must be %s, not %s", want, v.Kind())
}

// take returns the value of a field, or nil where there is none to read, and remembers its name as known.
func (f *fields) take(name string) jsontree.Value {
	f.known[name] = true
	v, ok := f.object.Get(name)
	if !ok || f.err != nil {
		return nil
	}
	if _, null := v.(jsontree.Null); null {
		return nil
	}
	return v
}

// ignore remembers fields that are accepted and change nothing.
func (f *fields) ignore(names ...string) {
	for _, name := range names {
		f.known[name] = true
	}
}

// unknown counts the fields that nobody asked for.
func (f *fields) unknown() int {
	n := 0
	for key := range f.object.All() {
		if !f.known[key] {
			n++
		}
	}
	return n
}

func (f *fields) text(name string, to *string) bool {
	v := f.take(name)
	if v == nil {
		return false
	}
	s, ok := v.(jsontree.String)
	if !ok {
		f.wrongKind(name, "a string", v)
		return false
	}
	*to = string(s)
	return true
}

// enum reads a string that must be one of values.
func (f *fields) enum(name string, to *string, values ...string) {
	if f.text(name, to) && !slices.Contains(values, *to) {
		f.invalid(name, "must be one of %s", strings.Join(values, ", "))
	}
}

func (f *fields) boolean(name string, to *bool) bool {
	v := f.take(name)
	if v == nil {
		return false
	}
	b, ok := v.(jsontree.Bool)
	if !ok {
		f.wrongKind(name, "true or false", v)
		return false
	}
	*to = bool(b)
	return true
}

// integer reads a whole number within the field's range.
func (f *fields) integer(name string, to *int) bool {
	v := f.take(name)
	if v == nil {
		return false
	}
	n, ok := v.(jsontree.Number)
	value, whole, fits := n.Whole()
	limit := rangeOf(f.route, name)
	switch {
	case !ok || !whole:
		f.wrongKind(name, "an integer", v)
	case !fits:
		f.invalid(name, "is %.40s, must be %s", string(n), limit)
	case !limit.holdsWhole(value):
		f.invalid(name, "is %d, must be %s", value, limit)
	default:
		*to = int(value)
		return true
	}
	return false
}

// number reads a number within the field's range.
func (f *fields) number(name string, to *float32) bool {
	v := f.take(name)
	if v == nil {
		return false
	}
	text, ok := v.(jsontree.Number)
	if !ok {
		f.wrongKind(name, "a number", v)
		return false
	}
	n, fits := text.Float()
	limit := rangeOf(f.route, name)
	if !fits || !limit.holds(n) {
		f.invalid(name, "is %.40s, must be %s", string(text), limit)
		return false
	}
	*to = float32(n)
	return true
}

// list reads an array; nil where there is none.
func (f *fields) list(name string) jsontree.Array {
	v := f.take(name)
	if v == nil {
		return nil
	}
	l, ok := v.(jsontree.Array)
	if !ok {
		f.wrongKind(name, "an array", v)
		return nil
	}
	return l
}

// dict reads an object; nil where there is none.
func (f *fields) dict(name string) *jsontree.Object {
	v := f.take(name)
	if v == nil {
		return nil
	}
	d, ok := v.(*jsontree.Object)
	if !ok {
		f.wrongKind(name, "an object", v)
		return nil
	}
	return d
}

// tokens reads an array of token ids below vocab.
func (f *fields) tokens(name string, items jsontree.Array, vocab int32) []int32 {
	ids := make([]int32, 0, len(items))
	for i, item := range items {
		n, _ := item.(jsontree.Number)
		id, whole, fits := n.Whole()
		switch {
		case n == "" || !whole:
			f.invalid(name, "must hold integers; entry %d is %s", i, item.Kind())
			return nil
		case !fits || id < 0 || id >= int64(vocab):
			f.invalid(name, "holds token %.40s, the vocabulary has %d", string(n), vocab)
			return nil
		}
		ids = append(ids, int32(id))
	}
	return ids
}

// refuse names a field that is understood but cannot be honoured, unless its value asks for nothing.
func (f *fields) refuse(name string, harmless func(jsontree.Value) bool) {
	if v := f.take(name); v != nil && !harmless(v) {
		f.fail(Unsupported(f.path+name, "%s%s is not supported by this server; leave it out.", f.path, name))
	}
}

// Values that ask for nothing.

func never(jsontree.Value) bool { return false }

func empty(v jsontree.Value) bool {
	l, ok := v.(jsontree.Array)
	return ok && len(l) == 0
}

func isFalse(v jsontree.Value) bool { return v == jsontree.Bool(false) }

func isTrue(v jsontree.Value) bool { return v == jsontree.Bool(true) }

func isText(want string) func(jsontree.Value) bool {
	return func(v jsontree.Value) bool {
		s, ok := v.(jsontree.String)
		return ok && string(s) == want
	}
}

// isNumber accepts some numbers, however they are written.
func isNumber(wants ...float64) func(jsontree.Value) bool {
	return func(v jsontree.Value) bool {
		text, ok := v.(jsontree.Number)
		n, fits := text.Float()
		return ok && fits && slices.Contains(wants, n)
	}
}

// anyOf accepts what one of its conditions accepts.
func anyOf(conditions ...func(jsontree.Value) bool) func(jsontree.Value) bool {
	return func(v jsontree.Value) bool {
		return slices.ContainsFunc(conditions, func(accepts func(jsontree.Value) bool) bool { return accepts(v) })
	}
}
