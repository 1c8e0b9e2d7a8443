package api

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/atlas-inference/atlas/atlasrt/internal/jinja"
)

// fields reads the fields of one JSON object. The first problem is kept and later ones are not looked at, so that decoders
// are plain lists of what they read. Absent and null fields leave the default in place.
type fields struct {
	object *jinja.Dict
	path   string // what to put before a field's name in errors
	known  map[string]bool
	err    *Error
}

// readObject parses a body: exact keys without duplicates, bounded depth and size, valid UTF-8.
func readObject(body []byte) (*fields, error) {
	v, err := jinja.DecodeJSON(body, jinja.JSONLimits{})
	if err != nil {
		return nil, Invalid("", "The body cannot be read: %s.", clip(err.Error(), 200))
	}
	object, ok := v.(*jinja.Dict)
	if !ok {
		return nil, Invalid("", "The body must be a JSON object, not %s.", kind(v))
	}
	return newFields(object, ""), nil
}

func newFields(object *jinja.Dict, path string) *fields {
	return &fields{object: object, path: path, known: map[string]bool{}}
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

func (f *fields) wrongKind(name, want string, v jinja.Value) {
	f.invalid(name, "must be %s, not %s", want, kind(v))
}

// take returns the value of a field, or nil where there is none to read, and remembers its name as known.
func (f *fields) take(name string) jinja.Value {
	f.known[name] = true
	v, ok := f.object.Get(name)
	if !ok || f.err != nil {
		return nil
	}
	if _, null := v.(jinja.None); null {
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
	f.object.Each(func(key string, _ jinja.Value) {
		if !f.known[key] {
			n++
		}
	})
	return n
}

func (f *fields) text(name string, to *string) bool {
	v := f.take(name)
	if v == nil {
		return false
	}
	s, ok := v.(jinja.Str)
	if !ok {
		f.wrongKind(name, "a string", v)
		return false
	}
	*to = s.Text()
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
	b, ok := v.(jinja.Bool)
	if !ok {
		f.wrongKind(name, "true or false", v)
		return false
	}
	*to = bool(b)
	return true
}

// integer reads a whole number from low on; larger ones than top are refused as well.
func (f *fields) integer(name string, to *int, low, top int64) bool {
	v := f.take(name)
	if v == nil {
		return false
	}
	n, ok := wholeNumber(v)
	switch {
	case !ok && isBig(v):
		f.invalid(name, "is out of range")
	case !ok:
		f.wrongKind(name, "an integer", v)
	case n < low || n > top:
		f.invalid(name, "is %d, must be from %d to %d", n, low, top)
	default:
		*to = int(n)
		return true
	}
	return false
}

// number reads a number from low to top.
func (f *fields) number(name string, to *float32, low, top float64) {
	v := f.take(name)
	if v == nil {
		return
	}
	n, ok := realNumber(v)
	switch {
	case !ok:
		f.wrongKind(name, "a number", v)
	case !(n >= low && n <= top):
		f.invalid(name, "is %g, must be from %g to %g", n, low, top)
	default:
		*to = float32(n)
	}
}

// list reads an array; nil where there is none.
func (f *fields) list(name string) []jinja.Value {
	v := f.take(name)
	if v == nil {
		return nil
	}
	l, ok := v.(*jinja.List)
	if !ok {
		f.wrongKind(name, "an array", v)
		return nil
	}
	return l.Items()
}

// dict reads an object; nil where there is none.
func (f *fields) dict(name string) *jinja.Dict {
	v := f.take(name)
	if v == nil {
		return nil
	}
	d, ok := v.(*jinja.Dict)
	if !ok {
		f.wrongKind(name, "an object", v)
		return nil
	}
	return d
}

// tokens reads an array of token ids below vocab.
func (f *fields) tokens(name string, items []jinja.Value, vocab int32) []int32 {
	ids := make([]int32, 0, len(items))
	for i, item := range items {
		n, ok := wholeNumber(item)
		if !ok {
			f.invalid(name, "must hold integers; entry %d is %s", i, kind(item))
			return nil
		}
		if n < 0 || n >= int64(vocab) {
			f.invalid(name, "holds token %d, the vocabulary has %d", n, vocab)
			return nil
		}
		ids = append(ids, int32(n))
	}
	return ids
}

// refuse names a field that is understood but cannot be honoured, unless its value asks for nothing.
func (f *fields) refuse(name string, harmless func(jinja.Value) bool) {
	if v := f.take(name); v != nil && !harmless(v) {
		f.fail(Unsupported(f.path+name, "%s%s is not supported by this server; leave it out.", f.path, name))
	}
}

// Values that ask for nothing.

func never(jinja.Value) bool { return false }

func empty(v jinja.Value) bool {
	l, ok := v.(*jinja.List)
	return ok && len(l.Items()) == 0
}

func isFalse(v jinja.Value) bool {
	b, ok := v.(jinja.Bool)
	return ok && !bool(b)
}

func isZero(v jinja.Value) bool {
	n, ok := realNumber(v)
	return ok && n == 0
}

func isText(want string) func(jinja.Value) bool {
	return func(v jinja.Value) bool {
		s, ok := v.(jinja.Str)
		return ok && s.Text() == want
	}
}

func wholeNumber(v jinja.Value) (int64, bool) {
	n, ok := v.(jinja.Int)
	return int64(n), ok
}

func realNumber(v jinja.Value) (float64, bool) {
	switch v := v.(type) {
	case jinja.Int:
		return float64(v), true
	case jinja.Float:
		return float64(v), true
	}
	return 0, false
}

func isBig(v jinja.Value) bool {
	_, big := v.(*jinja.Big)
	return big
}

// kind names a JSON type.
func kind(v jinja.Value) string {
	switch v.(type) {
	case jinja.None:
		return "null"
	case jinja.Bool:
		return "a boolean"
	case jinja.Int, *jinja.Big:
		return "an integer"
	case jinja.Float:
		return "a fraction"
	case jinja.Str:
		return "a string"
	case *jinja.List:
		return "an array"
	}
	return "an object"
}

// runeSize is the length of the code point that text begins with, 0 where it is not UTF-8.
func runeSize(text string) int {
	r, size := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError && size == 1 {
		return 0
	}
	return size
}
