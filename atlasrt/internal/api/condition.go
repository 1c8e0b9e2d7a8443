package api

import (
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// Condition tells whether a value of a field that is not honoured asks for nothing, so that it need not be refused.
type Condition func(jsontree.Value) bool

// Never accepts no value but null, which is no value.
func Never(jsontree.Value) bool { return false }

// Empty accepts the empty array.
func Empty(v jsontree.Value) bool {
	l, ok := v.(jsontree.Array)
	return ok && len(l) == 0
}

// EmptyObject accepts the empty object.
func EmptyObject(v jsontree.Value) bool {
	o, ok := v.(*jsontree.Object)
	return ok && o.Len() == 0
}

// AnyNumber accepts every number.
func AnyNumber(v jsontree.Value) bool {
	_, ok := v.(jsontree.Number)
	return ok
}

// IsFalse accepts false.
func IsFalse(v jsontree.Value) bool { return v == jsontree.Bool(false) }

// IsTrue accepts true.
func IsTrue(v jsontree.Value) bool { return v == jsontree.Bool(true) }

// IsText accepts one text.
func IsText(want string) Condition {
	return func(v jsontree.Value) bool {
		s, ok := v.(jsontree.String)
		return ok && string(s) == want
	}
}

// IsNumber accepts some numbers, however they are written.
func IsNumber(wants ...float64) Condition {
	return func(v jsontree.Value) bool {
		text, ok := v.(jsontree.Number)
		n, fits := text.Float()
		return ok && fits && slices.Contains(wants, n)
	}
}

// AnyOf accepts what one of its conditions accepts.
func AnyOf(conditions ...Condition) Condition {
	return func(v jsontree.Value) bool {
		return slices.ContainsFunc(conditions, func(accepts Condition) bool { return accepts(v) })
	}
}
