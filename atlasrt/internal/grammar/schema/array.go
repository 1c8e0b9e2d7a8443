package schema

import (
	"strconv"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// array is a set of arrays.
type array struct {
	prefix   []element
	rest     element // of items behind the prefix
	min, max int     // items; max may be unbounded
	contains []contain
	unique   bool
	place    *path // of the schema that wants unique items, for errors
}

// element is an item.
type element struct {
	value     node
	evaluated bool // by the schemas so far
}

// contain is that from min to max of the items behind the first ones are of a kind; max may be unbounded.
type contain struct {
	value          node
	from, min, max int
	evaluates      bool // items of that kind are evaluated
}

var anyArray = newArray()

func newArray() *array { return &array{rest: element{value: always}, max: unbounded} }

// item is what stands at a place.
func (a *array) item(i int) element {
	if i < len(a.prefix) {
		return a.prefix[i]
	}
	return a.rest
}

// bothArrays is what is in both; nil where there is none.
func (c *compiler) bothArrays(a, b *array) *array {
	n := max(len(a.prefix), len(b.prefix))
	if !c.spend(n) {
		return nil
	}
	v := &array{min: max(a.min, b.min), max: lower(a.max, b.max), unique: a.unique || b.unique, place: a.place}
	if v.place == nil {
		v.place = b.place
	}
	both := func(x, y element) element {
		return element{value: c.both(x.value, y.value), evaluated: x.evaluated || y.evaluated}
	}
	for i := range n {
		v.prefix = append(v.prefix, both(a.item(i), b.item(i)))
	}
	v.rest = both(a.rest, b.rest)
	v.contains = append(a.contains[:len(a.contains):len(a.contains)], b.contains...)
	for i := range min(v.min, n) {
		if c.hollow(v.prefix[i].value) {
			return nil
		}
	}
	if v.max != unbounded && v.max < v.min || v.min > n && c.hollow(v.rest.value) {
		return nil
	}
	return v
}

// notArray is the arrays that are not in a: each breaks it in one way at least.
func (c *compiler) notArray(a *array) (alternatives []*array) {
	if a == anyArray || !c.spend(1+len(a.prefix)) {
		return nil
	}
	if a.unique {
		at := c.at
		c.at.path = a.place
		c.unsupported("uniqueItems", "its opposite cannot be held")
		c.at = at
		return nil
	}
	add := func(edit func(v *array)) {
		v := newArray()
		edit(v)
		alternatives = append(alternatives, v)
	}
	if a.min > 0 {
		add(func(v *array) { v.max = a.min - 1 })
	}
	if a.max != unbounded {
		add(func(v *array) { v.min = a.max + 1 })
	}
	for i, e := range a.prefix {
		if value, ok := c.opposite(e.value); ok && value != never {
			add(func(v *array) {
				for range i {
					v.prefix = append(v.prefix, element{value: always})
				}
				v.prefix = append(v.prefix, element{value: value})
				v.min = i + 1
			})
		}
	}
	if value, ok := c.opposite(a.rest.value); ok && value != never {
		add(func(v *array) {
			v.contains = []contain{{value: value, from: len(a.prefix), min: 1, max: unbounded}}
		})
	}
	for _, k := range a.contains {
		if k.min > 0 {
			add(func(v *array) {
				v.contains = []contain{{value: k.value, from: k.from, max: k.min - 1}}
			})
		}
		if k.max != unbounded {
			add(func(v *array) {
				v.contains = []contain{{value: k.value, from: k.from, min: k.max + 1, max: unbounded}}
			})
		}
	}
	return alternatives
}

// evaluateArray holds items that no schema evaluated so far to n.
func (c *compiler) evaluateArray(a *array, n node) *array {
	e := *a
	for _, k := range a.contains {
		if k.evaluates {
			n = c.either(n, k.value)
		}
	}
	hold := func(x element) element {
		if !x.evaluated {
			x = element{value: c.both(x.value, n), evaluated: true}
		}
		return x
	}
	e.prefix = nil
	for _, x := range a.prefix {
		e.prefix = append(e.prefix, hold(x))
	}
	e.rest = hold(a.rest)
	return &e
}

// array reads the keywords of arrays; nil where there are none.
func (k *keywords) array() *array {
	a := newArray()
	a.min, a.max = k.count("minItems", 0, true), k.count("maxItems", unbounded, false)
	used := a.min > 0 || a.max != unbounded

	rest := "items"
	prefix, hasPrefix := k.list("prefixItems")
	name := "prefixItems"
	if items, ok := k.get("items"); ok && !hasPrefix {
		if list, isList := items.(jsontree.Array); isList { // before draft 2020-12
			prefix, name, rest = list, "items", "additionalItems"
		}
	}
	for i, v := range prefix {
		a.prefix = append(a.prefix, element{value: k.child(v, name, strconv.Itoa(i)), evaluated: true})
	}
	if v, ok := k.get(rest); ok {
		a.rest = element{value: k.child(v, rest), evaluated: true}
	}
	used = used || len(prefix) > 0 || a.rest.evaluated

	if v, ok := k.get("contains"); ok {
		kept := contain{value: k.child(v, "contains"), min: k.count("minContains", 1, true), max: k.count("maxContains", unbounded, false)}
		kept.evaluates = k.place.resource.draft >= 2020
		if kept.min > 0 || kept.max != unbounded || kept.evaluates && k.tracked {
			a.contains = []contain{kept}
			used = true
		}
	}
	if v, ok := k.get("uniqueItems"); ok {
		flag, isFlag := v.(jsontree.Bool)
		if !isFlag {
			k.malformed("uniqueItems", "a boolean")
		}
		if flag && (a.max == unbounded || a.max > 1) {
			a.unique, a.place, used = true, k.place.path, true
		}
	}
	if !used || k.err != nil {
		return nil
	}
	return a
}
