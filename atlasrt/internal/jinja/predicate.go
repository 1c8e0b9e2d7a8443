package jinja

import "unicode"

// testNamed is the test of this name, as in "is defined".
func testNamed(id string) (filter, bool) {
	if is := typeTest(id); is != nil {
		return func(_ *run, v Value, a args) (Value, error) {
			if _, err := a.bind(id, 0); err != nil {
				return nil, err
			}
			return Bool(is(v)), nil
		}, true
	}
	switch id {
	case "odd", "even":
		return func(r *run, v Value, a args) (Value, error) {
			if _, err := a.bind(id, 0); err != nil {
				return nil, err
			}
			return r.remainderIs(v, Int(2), id == "odd")
		}, true
	case "divisibleby":
		return func(r *run, v Value, a args) (Value, error) {
			values, err := a.bind(id, 1, "num")
			if err != nil {
				return nil, err
			}
			return r.remainderIs(v, values[0], false)
		}, true
	case "lower", "upper":
		return func(r *run, v Value, a args) (Value, error) {
			s, err := r.str(v)
			if id == "lower" {
				return Bool(isCased(s.text, unicode.IsLower, unicode.IsUpper)), err
			}
			return Bool(isCased(s.text, unicode.IsUpper, unicode.IsLower)), err
		}, true
	case "sameas":
		return func(_ *run, v Value, a args) (Value, error) {
			values, err := a.bind(id, 1, "other")
			if err != nil {
				return nil, err
			}
			return Bool(same(v, values[0])), nil
		}, true
	}
	operator, ok := comparisonTest(id)
	if !ok {
		return nil, false
	}
	return func(r *run, v Value, a args) (Value, error) {
		values, err := a.bind(id, 1, "other")
		if err != nil {
			return nil, err
		}
		holds, err := r.compare(operator, v, values[0])
		return Bool(holds), err
	}, true
}

func comparisonTest(id string) (string, bool) {
	switch id {
	case "eq", "equalto", "==":
		return "==", true
	case "ne", "!=":
		return "!=", true
	case "lt", "lessthan", "<":
		return "<", true
	case "le", "<=":
		return "<=", true
	case "gt", "greaterthan", ">":
		return ">", true
	case "ge", ">=":
		return ">=", true
	case "in":
		return "in", true
	}
	return "", false
}

func (r *run) remainderIs(v, divisor Value, one bool) (Value, error) {
	rest, err := r.binary("%", v, divisor)
	if err != nil {
		return nil, err
	}
	want := Int(0)
	if one {
		want = 1
	}
	is, err := r.equal(rest, want, r.maxDepth)
	return Bool(is), err
}

// same is Python's "is", which for numbers and strings depends on how CPython shares objects: small integers, the constants
// and equal strings are taken for the same.
func same(a, b Value) bool {
	switch x := a.(type) {
	case None:
		_, ok := b.(None)
		return ok
	case Bool:
		y, ok := b.(Bool)
		return ok && x == y
	case Int:
		y, ok := b.(Int)
		return ok && x == y
	case Str:
		y, ok := b.(Str)
		return ok && x.text == y.text
	}
	switch b.(type) {
	case Str, None, Bool, Int:
		return false
	}
	return a == b
}

// typeTest is a test of what a value is, nil where there is none of this name.
func typeTest(id string) func(Value) bool {
	switch id {
	case "defined":
		return func(v Value) bool { _, missing := v.(*undefined); return !missing }
	case "undefined":
		return func(v Value) bool { _, missing := v.(*undefined); return missing }
	case "none":
		return func(v Value) bool { _, ok := v.(None); return ok }
	case "boolean":
		return func(v Value) bool { _, ok := v.(Bool); return ok }
	case "true":
		return func(v Value) bool { b, ok := v.(Bool); return ok && bool(b) }
	case "false":
		return func(v Value) bool { b, ok := v.(Bool); return ok && !bool(b) }
	case "integer":
		return func(v Value) bool { _, isBool := v.(Bool); _, ok := bigOf(v); return ok && !isBool }
	case "float":
		return func(v Value) bool { _, ok := v.(Float); return ok }
	case "number":
		return isNumber
	case "string":
		return func(v Value) bool { _, ok := v.(Str); return ok }
	case "mapping":
		return func(v Value) bool { _, ok := v.(*Dict); return ok }
	case "sequence":
		return isSequence
	case "iterable":
		return isIterable
	case "callable":
		return isCallable
	}
	return nil
}

// isSequence is what has a length and elements by key, which for Python includes dictionaries, and undefined too.
func isSequence(v Value) bool {
	switch v.(type) {
	case Str, *List, *Tuple, *Dict, *rangeValue, *undefined:
		return true
	}
	return false
}

func isIterable(v Value) bool {
	switch v.(type) {
	case *dictView, *generator, *loopContext:
		return true
	}
	return isSequence(v)
}

func isCallable(v Value) bool {
	switch v.(type) {
	case *method, *macro, *loopContext, *undefined:
		return true
	}
	return false
}
