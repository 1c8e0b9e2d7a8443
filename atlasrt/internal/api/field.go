package api

import (
	"iter"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// Fields reads the fields of one JSON object. The first problem of a body is kept, wherever it lies, and later ones are not looked
// at, so that decoders are plain lists of what they read. Absent and null fields leave the default in place.
type Fields struct {
	object *jsontree.Object
	path   string // what to put before a field's name in errors
	ranges []Range
	known  map[string]bool
	first  **Error // problem of the body, shared by all of its objects
}

// ReadObject parses a body: exact keys without duplicates, bounded depth and size, valid UTF-8. Numbers have these ranges.
func ReadObject(body []byte, ranges []Range) (*Fields, error) {
	v, err := jsontree.Decode(body, jsontree.Limits{})
	if err != nil {
		return nil, Invalid("", "The body cannot be read: %s.", Clip(err.Error(), 200))
	}
	object, ok := v.(*jsontree.Object)
	if !ok {
		return nil, Invalid("", "The body must be a JSON object, not %s.", v.Kind())
	}
	return &Fields{object: object, ranges: ranges, known: map[string]bool{}, first: new(*Error)}, nil
}

// Inner reads an object within the one that f reads; name is its field.
func (f *Fields) Inner(object *jsontree.Object, name string) *Fields {
	return &Fields{object: object, path: f.path + name + ".", ranges: f.ranges, known: map[string]bool{}, first: f.first}
}

// Source is the object whose fields are read.
func (f *Fields) Source() *jsontree.Object { return f.object }

// Err is the first problem of the body; nil: there is none.
func (f *Fields) Err() *Error { return *f.first }

// Failure is Err as an error.
func (f *Fields) Failure() error {
	if err := f.Err(); err != nil {
		return err
	}
	return nil
}

// Fail keeps a problem, unless there was one before.
func (f *Fields) Fail(err *Error) {
	if *f.first == nil {
		*f.first = err
	}
}

// Invalid blames a field. The format goes on from its name, and has no full stop.
func (f *Fields) Invalid(name, format string, values ...any) {
	f.Fail(Invalid(f.Path(name), f.Path(name)+" "+format+".", values...))
}

// Path is the name of a field with those of the objects that it lies in.
func (f *Fields) Path(name string) string { return f.path + name }

// WrongKind blames a field for its JSON type. want says which is wanted.
func (f *Fields) WrongKind(name, want string, v jsontree.Value) {
	f.Invalid(name, "must be %s, not %s", want, v.Kind())
}

// Take returns the value of a field, or nil where there is none to read, and remembers its name as known.
func (f *Fields) Take(name string) jsontree.Value {
	f.known[name] = true
	v, ok := f.object.Get(name)
	if !ok || f.Err() != nil {
		return nil
	}
	if _, null := v.(jsontree.Null); null {
		return nil
	}
	return v
}

// Ignore remembers fields that are accepted and change nothing.
func (f *Fields) Ignore(names ...string) {
	for _, name := range names {
		f.known[name] = true
	}
}

// Rest gives the fields that nobody asked for, in their order.
func (f *Fields) Rest() iter.Seq2[string, jsontree.Value] {
	return func(yield func(string, jsontree.Value) bool) {
		for key, value := range f.object.All() {
			if !f.known[key] && !yield(key, value) {
				return
			}
		}
	}
}

// Unknown counts the fields that nobody asked for.
func (f *Fields) Unknown() (n int) {
	for range f.Rest() {
		n++
	}
	return n
}

// Text reads a string.
func (f *Fields) Text(name string, to *string) bool {
	v := f.Take(name)
	if v == nil {
		return false
	}
	s, ok := v.(jsontree.String)
	if !ok {
		f.WrongKind(name, "a string", v)
		return false
	}
	*to = string(s)
	return true
}

// Required reads a string that must be there and must not be empty.
func (f *Fields) Required(name string) (text string) {
	if f.Text(name, &text); text == "" {
		f.Invalid(name, "is required")
	}
	return text
}

// Enum reads a string that must be one of values.
func (f *Fields) Enum(name string, to *string, values ...string) {
	if f.Text(name, to) && !slices.Contains(values, *to) {
		f.Invalid(name, "must be one of %s", strings.Join(values, ", "))
	}
}

// Bool reads true or false.
func (f *Fields) Bool(name string, to *bool) bool {
	v := f.Take(name)
	if v == nil {
		return false
	}
	b, ok := v.(jsontree.Bool)
	if !ok {
		f.WrongKind(name, "true or false", v)
		return false
	}
	*to = bool(b)
	return true
}

// Integer reads a whole number within the field's range.
func (f *Fields) Integer(name string, to *int) bool {
	v := f.Take(name)
	if v == nil {
		return false
	}
	n, ok := v.(jsontree.Number)
	value, whole, fits := n.Whole()
	limit := f.Range(name)
	switch {
	case !ok || !whole:
		f.WrongKind(name, "an integer", v)
	case !fits:
		f.Invalid(name, "is %.40s, must be %s", string(n), limit)
	case !limit.HoldsWhole(value):
		f.Invalid(name, "is %d, must be %s", value, limit)
	default:
		*to = int(value)
		return true
	}
	return false
}

// Number reads a number within the field's range.
func (f *Fields) Number(name string, to *float32) bool {
	v := f.Take(name)
	if v == nil {
		return false
	}
	text, ok := v.(jsontree.Number)
	if !ok {
		f.WrongKind(name, "a number", v)
		return false
	}
	n, fits := text.Float()
	limit := f.Range(name)
	if !fits || !limit.Holds(n) {
		f.Invalid(name, "is %.40s, must be %s", string(text), limit)
		return false
	}
	*to = float32(n)
	return true
}

// GivenNumber is Number; nil where there is none.
func (f *Fields) GivenNumber(name string) *float32 {
	var n float32
	if f.Number(name, &n) {
		return &n
	}
	return nil
}

// Peek gives the value of a field without reading it.
func (f *Fields) Peek(name string) (jsontree.Value, bool) { return f.object.Get(name) }

// Refuse names a field that is understood but cannot be honoured, unless its value asks for nothing.
func (f *Fields) Refuse(name string, harmless Condition) {
	if v := f.Take(name); v != nil && !harmless(v) {
		f.Fail(f.Refusal(name))
	}
}

// Refusal is the error of Refuse.
func (f *Fields) Refusal(name string) *Error {
	return Unsupported(f.Path(name), "%s is not supported by this server; leave it out.", f.Path(name))
}
