// Package jsontree reads the JSON of requests into a tree of values, strictly and within limits. encoding/json would ignore the case of
// keys, keep the last of two equal keys, lose the order of keys and make 1 and 1.0 the same; templates need all of these.
//
// Objects keep the order of their keys and have each key once. Numbers keep their text, so that 1 differs from 1.0 and large ones are
// not rounded. Nothing in a document can panic, recurse without bound, or allocate more than the document and the limits grant.
// Source: RFC 8259.
package jsontree

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Value is one JSON value: Null, Bool, Number, String, Array or *Object.
type Value interface {
	// Kind names the type as messages to clients do, with its article.
	Kind() string
}

// Null is null.
type Null struct{}

// Bool is true or false.
type Bool bool

// Number is a number as it was written.
type Number string

// String is a string; it is valid UTF-8.
type String string

// Array is a list of values.
type Array []Value

// Kind implements Value.
func (Null) Kind() string { return "null" }

// Kind implements Value.
func (Bool) Kind() string { return "a boolean" }

// Kind implements Value.
func (n Number) Kind() string {
	if n.IsInteger() {
		return "an integer"
	}
	return "a fraction"
}

// Kind implements Value.
func (String) Kind() string { return "a string" }

// Kind implements Value.
func (Array) Kind() string { return "an array" }

// Kind implements Value.
func (*Object) Kind() string { return "an object" }

// IsInteger says whether the number is written without fraction and exponent: 1 is an integer in Python, 1.0 is not.
func (n Number) IsInteger() bool { return !strings.ContainsAny(string(n), ".eE") }

// Float is the number as a float; false where it is too large for one.
func (n Number) Float() (float64, bool) {
	f, err := strconv.ParseFloat(string(n), 64)
	return f, err == nil
}

// maxExactDigits bounds the cost of Whole: longer numbers that have a fraction or an exponent and are beyond 2^53 do not fit.
const maxExactDigits = 64

// Whole is the number as an integer. 1.0 and 1e2 are integers here, too. whole is false where the number has a fraction; fits is false
// where it needs more than 64 bits.
func (n Number) Whole() (value int64, whole, fits bool) {
	if n.IsInteger() {
		value, err := strconv.ParseInt(string(n), 10, 64)
		return value, true, err == nil
	}
	f, ok := n.Float()
	switch {
	case !ok || math.Abs(f) >= 1<<63:
		return 0, true, false
	case f != math.Trunc(f):
		return 0, false, false
	case math.Abs(f) < 1<<53:
		return int64(f), true, true
	}
	if len(n) > maxExactDigits {
		return 0, true, false
	}
	exact, ok := new(big.Rat).SetString(string(n)) // a float of this size may have been rounded
	if !ok || !exact.IsInt() || !exact.Num().IsInt64() {
		return 0, ok && exact.IsInt(), false
	}
	return exact.Num().Int64(), true, true
}

// Object is a list of keys and values in order. The zero value is an empty object.
type Object struct {
	keys   []string
	values []Value
	index  map[string]int // place of each key; nil up to scanSize keys
}

// scanSize is the number of keys up to which a linear search is faster than a map.
const scanSize = 8

// NewObject returns an empty object.
func NewObject() *Object { return &Object{} }

// Len is the number of keys; that of a nil object is 0.
func (o *Object) Len() int {
	if o == nil {
		return 0
	}
	return len(o.keys)
}

// Get returns the value under a key. A nil object has none.
func (o *Object) Get(key string) (Value, bool) {
	if i := o.find(key); i >= 0 {
		return o.values[i], true
	}
	return nil, false
}

func (o *Object) find(key string) int {
	if o == nil {
		return -1
	}
	if o.index != nil {
		if i, ok := o.index[key]; ok {
			return i
		}
		return -1
	}
	for i := range o.keys {
		if o.keys[i] == key {
			return i
		}
	}
	return -1
}

// Set stores a value; a key that exists keeps its place.
func (o *Object) Set(key string, value Value) {
	if i := o.find(key); i >= 0 {
		o.values[i] = value
		return
	}
	o.keys, o.values = append(o.keys, key), append(o.values, value)
	switch {
	case o.index != nil:
		o.index[key] = len(o.keys) - 1
	case len(o.keys) > scanSize:
		o.index = make(map[string]int, 2*len(o.keys))
		for i, k := range o.keys {
			o.index[k] = i
		}
	}
}

// All is a range over keys and values in order. A nil object has none.
func (o *Object) All() func(yield func(string, Value) bool) {
	return func(yield func(string, Value) bool) {
		for i := range o.Len() {
			if !yield(o.keys[i], o.values[i]) {
				return
			}
		}
	}
}
