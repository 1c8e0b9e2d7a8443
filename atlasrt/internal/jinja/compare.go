package jinja

import (
	"cmp"
	"math"
	"math/big"
	"strings"
)

// compare is left operator right, for ==, !=, <, <=, >, >=, in and not in.
func (r *run) compare(operator string, left, right Value) (bool, error) {
	switch operator {
	case "==":
		return r.equal(left, right, r.maxDepth)
	case "!=":
		same, err := r.equal(left, right, r.maxDepth)
		return !same, err
	case "in":
		return r.contains(right, left)
	case "not in":
		found, err := r.contains(right, left)
		return !found, err
	}
	return r.ordered(operator, left, right, r.maxDepth)
}

func (r *run) equal(left, right Value, depth int) (bool, error) {
	if depth == 0 {
		return false, depthError()
	}
	switch a := left.(type) {
	case Str:
		b, ok := right.(Str)
		if !ok || len(a.text) != len(b.text) {
			return false, nil
		}
		r.chargeText(a)
		return a.text == b.text, nil
	case None:
		_, ok := right.(None)
		return ok, nil
	case *undefined:
		_, ok := right.(*undefined)
		return ok, nil
	case *List:
		b, ok := right.(*List)
		if !ok {
			return false, nil
		}
		return r.equalSlices(a.items, b.items, depth-1)
	case *Tuple:
		b, ok := right.(*Tuple)
		if !ok {
			return false, nil
		}
		return r.equalSlices(a.items, b.items, depth-1)
	case *Dict:
		b, ok := right.(*Dict)
		if !ok {
			return false, nil
		}
		return r.equalDicts(a, b, depth-1)
	case *rangeValue:
		b, ok := right.(*rangeValue)
		if !ok || a.length() != b.length() {
			return false, nil
		}
		n := a.length()
		return n == 0 || a.start == b.start && (n == 1 || a.step == b.step), nil
	}
	if order, ok := compareNumbers(left, right); ok {
		return order == 0, nil
	}
	if isNumber(left) || isNumber(right) {
		return false, nil
	}
	return left == right, nil
}

func isNumber(v Value) bool {
	_, ok := floatOf(v)
	return ok
}

func (r *run) equalSlices(a, b []Value, depth int) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	if err := r.spend(len(a)); err != nil {
		return false, err
	}
	for i := range a {
		if same, err := r.equal(a[i], b[i], depth); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (r *run) equalDicts(a, b *Dict, depth int) (bool, error) {
	if a.Len() != b.Len() {
		return false, nil
	}
	if err := r.spend(a.Len()); err != nil {
		return false, err
	}
	for _, e := range a.entries {
		other, ok, err := b.lookup(e.key)
		if !ok || err != nil {
			return false, err
		}
		if same, err := r.equal(e.value, other, depth); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// unordered is the result of comparing with NaN.
const unordered = 2

// compareNumbers is -1, 0, 1 or unordered; ok is false where one is no number.
func compareNumbers(left, right Value) (order int, ok bool) {
	a, aSmall := smallOf(left)
	b, bSmall := smallOf(right)
	if aSmall && bSmall {
		return cmp.Compare(a, b), true
	}
	x, aFloat := left.(Float)
	y, bFloat := right.(Float)
	if aFloat && bFloat {
		return compareFloats(float64(x), float64(y)), true
	}
	n, aInt := bigOf(left)
	m, bInt := bigOf(right)
	switch {
	case aInt && bInt:
		return n.Cmp(m), true
	case aInt && bFloat:
		return compareIntFloat(n, float64(y)), true
	case aFloat && bInt:
		order := compareIntFloat(m, float64(x))
		if order == unordered {
			return unordered, true
		}
		return -order, true
	}
	return 0, false
}

func compareFloats(x, y float64) int {
	if math.IsNaN(x) || math.IsNaN(y) {
		return unordered
	}
	return cmp.Compare(x, y)
}

func compareIntFloat(n *big.Int, f float64) int {
	switch {
	case math.IsNaN(f):
		return unordered
	case math.IsInf(f, 1):
		return -1
	case math.IsInf(f, -1):
		return 1
	}
	return new(big.Rat).SetInt(n).Cmp(new(big.Rat).SetFloat64(f))
}

// ordered is <, <=, > or >=.
func (r *run) ordered(operator string, left, right Value, depth int) (bool, error) {
	if depth == 0 {
		return false, depthError()
	}
	for _, v := range []Value{left, right} {
		if u, ok := v.(*undefined); ok {
			return false, u.failure()
		}
	}
	if order, ok := compareNumbers(left, right); ok {
		return holds(operator, order), nil
	}
	if a, ok := left.(Str); ok {
		if b, ok := right.(Str); ok {
			r.charge(min(len(a.text), len(b.text)) / bytesPerStep)
			return holds(operator, strings.Compare(a.text, b.text)), nil
		}
	}
	a, b, ok := sameSequences(left, right)
	if !ok {
		return false, failf("'%s' not supported between instances of '%s' and '%s'", operator, left.typeName(), right.typeName())
	}
	if err := r.spend(min(len(a), len(b))); err != nil {
		return false, err
	}
	for i := range min(len(a), len(b)) {
		same, err := r.equal(a[i], b[i], depth-1)
		if err != nil {
			return false, err
		}
		if !same {
			return r.ordered(operator, a[i], b[i], depth-1)
		}
	}
	return holds(operator, cmp.Compare(len(a), len(b))), nil
}

func sameSequences(left, right Value) (a, b []Value, ok bool) {
	switch l := left.(type) {
	case *List:
		if m, ok := right.(*List); ok {
			return l.items, m.items, true
		}
	case *Tuple:
		if m, ok := right.(*Tuple); ok {
			return l.items, m.items, true
		}
	}
	return nil, nil, false
}

func holds(operator string, order int) bool {
	if order == unordered {
		return false
	}
	switch operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

// contains is "item in container".
func (r *run) contains(container, item Value) (bool, error) {
	switch c := container.(type) {
	case Str:
		s, ok := item.(Str)
		if !ok {
			return false, failf("'in <string>' requires string as left operand, not %s", item.typeName())
		}
		r.charge(len(c.text) / bytesPerStep)
		return strings.Contains(c.text, s.text), nil
	case *Dict:
		r.chargeText(item)
		_, found, err := c.lookup(item)
		return found, err
	case *dictView:
		if c.kind == "dict_keys" {
			_, found, err := c.dict.lookup(item)
			return found, err
		}
	}
	it, err := r.iterate(container)
	if err != nil {
		return false, failf("argument of type '%s' is not iterable", container.typeName())
	}
	for {
		v, more, err := it.next()
		if !more || err != nil {
			return false, err
		}
		if err := r.spend(1); err != nil {
			return false, err
		}
		if same, err := r.equal(v, item, r.maxDepth); same || err != nil {
			return same, err
		}
	}
}
