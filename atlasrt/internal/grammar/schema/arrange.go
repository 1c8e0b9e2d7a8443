package schema

import (
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// Arrange is a value with the properties of its objects in an order in which the grammar of a schema has them; false: the value is not one of that
// grammar in any order. It asks the sets of values that the grammar is written from, and not one order after the other, so that it takes no more
// steps than Limits.Work. Errors are those of Add.
func Arrange(schema []byte, v jsontree.Value, limits Limits) (jsontree.Value, bool, error) {
	_, c, err := add(rules.NewBuilder(), schema, Options{Limits: limits})
	if err != nil {
		return nil, false, err
	}
	c.work = 0
	a := arranger{compiler: c, objects: map[arrangement]*jsontree.Object{}}
	arranged, ok := a.value(c.subschema(c.document.root), v)
	return arranged, ok, c.err
}

// arranger arranges parts of a value.
type arranger struct {
	*compiler
	objects map[arrangement]*jsontree.Object // that were arranged; nil: the node does not have them
}

type arrangement struct {
	node   node
	object *jsontree.Object
}

// value arranges a value that a node has. It is false where the node does not have it.
func (a *arranger) value(n node, v jsontree.Value) (jsontree.Value, bool) {
	if n == always || n == never || !a.spend(1) {
		return v, n == always
	}
	s := a.read(n)
	switch v := v.(type) {
	case jsontree.Null:
		return v, s.null
	case jsontree.Bool:
		return v, bool(v) && s.yes || !bool(v) && s.no
	case jsontree.Number:
		d, ok := parseDecimal(v)
		return v, s.number.any || ok && a.hasNumber(s.number, d)
	case jsontree.String:
		return v, a.matches(s.text, string(v))
	case jsontree.Array:
		for _, alternative := range s.arrays {
			if list, ok := a.array(alternative, v); ok {
				return list, true
			}
		}
	case *jsontree.Object:
		at := arrangement{n, v}
		object, known := a.objects[at]
		for i := 0; i < len(s.objects) && !known && object == nil; i++ {
			object = a.object(s.objects[i], v)
		}
		a.objects[at] = object
		return object, object != nil
	}
	return v, false
}

func (a *arranger) array(set *array, v jsontree.Array) (jsontree.Array, bool) {
	if len(v) < set.min || set.max != unbounded && len(v) > set.max {
		return nil, false
	}
	list := make(jsontree.Array, len(v))
	seen := map[string]bool{}
	for i, item := range v {
		var ok bool
		if list[i], ok = a.value(set.item(i).value, item); !ok {
			return nil, false
		}
		if set.unique {
			key := string(appendCanonical(nil, item))
			if seen[key] {
				return nil, false
			}
			seen[key] = true
		}
	}
	for _, k := range set.contains {
		count := 0
		for _, item := range v[min(k.from, len(v)):] {
			if _, ok := a.value(k.value, item); ok {
				count++
			}
		}
		if count < k.min || k.max != unbounded && count > k.max {
			return nil, false
		}
	}
	return list, true
}

// object arranges an object: the fields that have a place first, then those that must come, then others as they are. It is nil where the set does
// not have the object.
func (a *arranger) object(set *object, v *jsontree.Object) *jsontree.Object {
	if v.Len() < set.min || set.max != unbounded && v.Len() > set.max {
		return nil
	}
	members := make(map[string]jsontree.Value, v.Len())
	for name, member := range v.All() {
		n := a.other(set, name).value
		if f := set.find(name); f != nil {
			n = f.value
		}
		var ok bool
		if members[name], ok = a.value(n, member); !ok {
			return nil
		}
	}
	arranged := jsontree.NewObject()
	for _, loose := range []bool{false, true} {
		for _, f := range set.fields {
			member, has := members[f.name]
			if !has && f.required {
				return nil
			}
			if has && f.loose == loose {
				arranged.Set(f.name, member)
			}
		}
	}
	for name := range v.All() {
		arranged.Set(name, members[name])
	}
	unmet := slices.ContainsFunc(set.demands, func(d demand) bool {
		for name, member := range v.All() {
			if _, ok := a.value(d.value, member); ok && a.matches(d.keys, name) {
				return false
			}
		}
		return true
	})
	if unmet {
		return nil
	}
	return arranged
}
