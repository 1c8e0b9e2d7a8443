package jinja

import (
	"math/big"
	"strings"
	"unicode/utf8"
)

// Value is one value of a template: None, Bool, Int, *Big, Float, Str, *List, *Tuple, *Dict, or a value that only the
// interpreter makes (undefined, macro, loop, generator, …). Values are immutable once a render sees them.
type Value interface {
	// typeName is the name that Python gives the type, as error messages print it.
	typeName() string
}

// None is Python's None and JSON's null.
type None struct{}

// Bool is True or False.
type Bool bool

// Int is an integer that fits 64 bits.
type Int int64

// Big is an integer that does not fit 64 bits.
type Big struct{ n *big.Int }

// Float is a 64-bit float; 1.0 and 1 are different values that print differently.
type Float float64

// Str is a string that remembers where its bytes come from.
type Str struct {
	text   string
	origin *origin
	markup bool // the result of |safe or |escape
}

// List is an ordered sequence.
type List struct{ items []Value }

// Tuple is a sequence that prints and compares as Python's tuple.
type Tuple struct{ items []Value }

// Control returns a string of the template's own kind: text in which special tokens count. Bytes that are no UTF-8 become U+FFFD.
func Control(text string) Str { return Str{text: strings.ToValidUTF8(text, "\ufffd")} }

// Data returns a string of a request: text in which special tokens are plain characters. Bytes that are no UTF-8 become U+FFFD.
func Data(text string) Str {
	return Str{text: strings.ToValidUTF8(text, "\ufffd"), origin: allData}
}

// Text returns the string without its origin.
func (s Str) Text() string { return s.text }

// NewList returns a list of items, which it keeps.
func NewList(items ...Value) *List { return &List{items: items} }

// Items returns the list's values; callers must not change them.
func (l *List) Items() []Value { return l.items }

func (None) typeName() string  { return "NoneType" }
func (Bool) typeName() string  { return "bool" }
func (Int) typeName() string   { return "int" }
func (*Big) typeName() string  { return "int" }
func (Float) typeName() string { return "float" }
func (s Str) typeName() string {
	if s.markup {
		return "Markup"
	}
	return "str"
}
func (*List) typeName() string  { return "list" }
func (*Tuple) typeName() string { return "tuple" }

// isASCII says whether byte and character positions of s agree.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// truth is Python's bool(v).
func truth(v Value) bool {
	switch v := v.(type) {
	case Bool:
		return bool(v)
	case Str:
		return v.text != ""
	case None, *undefined:
		return false
	case Int:
		return v != 0
	case *Big:
		return v.n.Sign() != 0
	case Float:
		return v != 0
	}
	if n, ok := length(v); ok {
		return n > 0
	}
	return true
}

// length is Python's len(v); ok is false where that raises.
func length(v Value) (n int, ok bool) {
	switch v := v.(type) {
	case Str:
		return utf8.RuneCountInString(v.text), true
	case *List:
		return len(v.items), true
	case *Tuple:
		return len(v.items), true
	case *Dict:
		return v.Len(), true
	case *dictView:
		return v.dict.Len(), true
	case *rangeValue:
		return v.length(), true
	case *undefined:
		return 0, true
	}
	return 0, false
}

// sequence is the elements of a list or tuple.
func sequence(v Value) ([]Value, bool) {
	switch v := v.(type) {
	case *List:
		return v.items, true
	case *Tuple:
		return v.items, true
	}
	return nil, false
}

// undefined stands for what a lookup did not find. It prints as nothing, iterates as nothing and fails in any other use.
type undefined struct {
	hint   string
	object Value // nil where a name of the template was looked up
	name   Value
}

func (*undefined) typeName() string { return "Undefined" }

func undefinedName(name string) *undefined { return &undefined{name: Str{text: name}} }

// failure is the error of using the value.
func (u *undefined) failure() error {
	name, isText := u.name.(Str)
	switch {
	case u.hint != "":
		return failf("%s", u.hint)
	case u.object == nil:
		return failf("%s is undefined", quote(name.text))
	case !isText:
		return failf("%s has no element %s", objectName(u.object), shortRepr(u.name))
	}
	return failf("%s has no attribute %s", quote(objectName(u.object)), quote(name.text))
}

// objectName names an object in messages about what it does not have.
func objectName(v Value) string {
	switch v.(type) {
	case None:
		return "None"
	case *namespace:
		return "jinja2.utils.Namespace object"
	case *loopContext:
		return "jinja2.runtime.LoopContext object"
	case *macro:
		return "jinja2.runtime.Macro object"
	}
	return v.typeName() + " object"
}
