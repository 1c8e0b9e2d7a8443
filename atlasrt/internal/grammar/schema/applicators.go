package schema

import (
	"strconv"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// mostTracked bounds the alternatives of an anyOf whose evaluated properties or items matter: each choice of them is one of its own.
const mostTracked = 8

// applicators reads the keywords that apply schemas to the same value.
func (k *keywords) applicators(v *set) *set {
	if _, ok := k.get("$ref"); ok {
		v = k.intersect(v, k.read(k.reference("$ref")))
	}
	v = k.dynamicReferences(v)
	if list, ok := k.schemas("allOf"); ok {
		for _, n := range list {
			v = k.intersect(v, k.read(n))
		}
	}
	if list, ok := k.schemas("anyOf"); ok {
		v = k.intersect(v, k.anyOf(list))
	}
	if list, ok := k.schemas("oneOf"); ok {
		v = k.intersect(v, k.oneOf(list))
	}
	if schema, ok := k.get("not"); ok {
		v = k.subtract(v, k.read(k.child(schema, "not")))
	}
	v = k.conditions(v)
	return k.dependencies(v)
}

// schemas are the nodes of a list of schemas.
func (k *keywords) schemas(name string) (nodes []node, ok bool) {
	list, ok := k.list(name)
	if ok && len(list) == 0 {
		k.invalid(quote(name) + " must not be empty")
	}
	for i, v := range list {
		nodes = append(nodes, k.inPlace(v, name, strconv.Itoa(i)))
	}
	return nodes, ok
}

// dynamicReferences reads $dynamicRef and $recursiveRef where they mean one schema only.
func (k *keywords) dynamicReferences(v *set) *set {
	if reference, ok := k.get("$dynamicRef"); ok {
		n := k.reference("$dynamicRef")
		if uri, _ := reference.(jsontree.String); k.err == nil {
			to, _ := k.document.find(k.place, string(uri))
			o, _ := to.schema.(*jsontree.Object)
			if name, ok := text(o, "$dynamicAnchor"); ok && k.document.dynamic[name] > 1 {
				k.unsupported("$dynamicRef", "several schemas have the dynamic anchor "+quote(name)+": refer to one of them with $ref")
			}
		}
		v = k.intersect(v, k.read(n))
	}
	if _, ok := k.get("$recursiveRef"); ok && k.place.resource.draft == 2019 {
		if len(k.document.resources) > 2 {
			k.unsupported("$recursiveRef", "several schemas have an identifier: refer to one of them with $ref")
		}
		v = k.intersect(v, k.read(k.reference("$recursiveRef")))
	}
	return v
}

// anyOf is what some of the schemas allow.
func (k *keywords) anyOf(nodes []node) *set {
	sets := k.readAll(nodes)
	if !k.tracked {
		return k.uniteAll(sets)
	}
	if len(nodes) > mostTracked {
		k.unsupported("anyOf", "with unevaluatedProperties or unevaluatedItems at most "+strconv.Itoa(mostTracked)+" alternatives can be held")
		return &set{}
	}
	var choices []*set
	for choice := 1; choice < 1<<len(sets); choice++ {
		v := everything()
		for i, s := range sets {
			if choice>>i&1 == 1 {
				v = k.intersect(v, s)
			}
		}
		choices = append(choices, v)
	}
	return k.uniteAll(choices)
}

// conditions reads if, then and else.
func (k *keywords) conditions(v *set) *set {
	schema, ok := k.get("if")
	if !ok {
		return v
	}
	branch := func(name string) *set {
		if schema, ok := k.get(name); ok {
			return k.read(k.inPlace(schema, name))
		}
		return everything()
	}
	_, then := k.get("then")
	_, otherwise := k.get("else")
	if !then && !otherwise && !k.tracked {
		return v
	}
	condition := k.inPlace(schema, "if")
	yes := k.intersect(k.intersect(v, k.read(condition)), branch("then"))
	no := k.intersect(k.subtract(v, k.read(condition)), branch("else"))
	return k.unite(yes, no)
}

// dependencies reads dependentRequired, dependentSchemas and what drafts before them called dependencies.
func (k *keywords) dependencies(v *set) *set {
	for _, keyword := range []string{"dependentRequired", "dependentSchemas", "dependencies"} {
		members, _ := k.members(keyword)
		for name, dependency := range members.All() {
			var then *set
			if list, isList := dependency.(jsontree.Array); isList && keyword != "dependentSchemas" {
				o := newObject()
				for _, other := range k.names(keyword, list) {
					o.require(other)
				}
				then = objectsOnly(o)
			} else if keyword == "dependentRequired" {
				k.malformed(keyword, "an object of arrays of strings")
				return v
			} else {
				then = k.read(k.inPlace(dependency, keyword, name))
			}
			absent, present := newObject(), newObject()
			absent.fields = []field{{name: name, value: never}}
			present.require(name)
			with := k.intersect(k.intersect(v, objectsOnly(present)), then)
			without := k.intersect(v, objectsOnly(absent))
			v = k.uniteObjects(without, with)
		}
	}
	return v
}

// objectsOnly is a set that bounds nothing but objects.
func objectsOnly(o *object) *set {
	v := everything()
	v.objects = []*object{o}
	return v
}

// uniteObjects unites sets that differ in objects only.
func (k *keywords) uniteObjects(a, b *set) *set {
	v := *a
	v.objects = join(a.objects, b.objects, anyObject, k.tracked)
	return &v
}

// unevaluated reads unevaluatedProperties and unevaluatedItems.
func (k *keywords) unevaluated(v *set) *set {
	if schema, ok := k.get("unevaluatedProperties"); ok {
		n := k.child(schema, "unevaluatedProperties")
		narrowed := *v
		narrowed.objects = nil
		for _, o := range v.objects {
			if k.spend(1 + len(o.fields)) {
				narrowed.objects = append(narrowed.objects, k.evaluateObject(o, n))
			}
		}
		v = &narrowed
	}
	if schema, ok := k.get("unevaluatedItems"); ok {
		n := k.child(schema, "unevaluatedItems")
		narrowed := *v
		narrowed.arrays = nil
		for _, a := range v.arrays {
			if k.spend(1 + len(a.prefix)) {
				narrowed.arrays = append(narrowed.arrays, k.evaluateArray(a, n))
			}
		}
		v = &narrowed
	}
	return v
}
