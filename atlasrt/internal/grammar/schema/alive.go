package schema

import (
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// verdict is whether a node has values.
type verdict uint8

const (
	unknown verdict = iota
	looking         // at it
	dead            // it has none
	living          // it has some
)

// hollow says that a node surely has no values. It reads only nodes that scalars decide, so that reading a schema does not read all of it.
func (c *compiler) hollow(n node) bool {
	if n == never || n == always {
		return n == never
	}
	if !c.narrow(n) || c.busy(n) || c.err != nil {
		return false
	}
	return c.emptySet(c.read(n))
}

// narrow says that a node has only scalars, as far as its own keywords tell.
func (c *compiler) narrow(n node) bool {
	e := &c.nodes[n]
	if e.values != nil {
		return e.values.scalar()
	}
	switch e.kind {
	case constant:
		return c.read(n).scalar()
	case leaf:
		return narrowSchema(e.place)
	case all:
		for _, p := range e.parts {
			if c.narrow(p) {
				return true
			}
		}
	}
	return false
}

// busy says that reading a node needs one that is being read.
func (c *compiler) busy(n node) bool {
	e := &c.nodes[n]
	if e.values != nil {
		return false
	}
	if e.reading || e.kind == leaf && !shallow(e.place) {
		return true
	}
	for _, p := range e.parts {
		if c.busy(p) {
			return true
		}
	}
	return false
}

// emptySet says that a set surely has no values, without a look at arrays and objects.
func (c *compiler) emptySet(v *set) bool {
	return !v.null && !v.no && !v.yes && v.scalar() && !v.partial && !c.someText(v.text) && !c.someNumber(v.number)
}

// look says whether a node has values. What needs a node that is being read counts as having some. Sure is false where a node has none
// only if one that is looked at further out has none.
func (c *compiler) look(n node) (alive, sure bool) {
	switch c.nodes[n].alive {
	case looking:
		return false, false
	case dead:
		return false, true
	case living:
		return true, true
	}
	if !c.spend(2) {
		return true, true
	}
	c.nodes[n].alive = looking
	c.exploring++
	alive, sure = c.lookInto(c.read(n))
	c.exploring--
	switch {
	case c.touched:
		c.nodes[n].alive, alive, sure = unknown, true, true
		c.touched = c.exploring > 0
	case alive:
		c.nodes[n].alive = living
	case sure:
		c.nodes[n].alive = dead
	default:
		c.nodes[n].alive = unknown
	}
	return alive, sure
}

func (c *compiler) lookInto(v *set) (alive, sure bool) {
	if v.null || v.no || v.yes || c.someText(v.text) || c.someNumber(v.number) {
		return true, true
	}
	sure = true
	for _, a := range v.arrays {
		alive, known := c.lookAtArray(a)
		if alive {
			return true, true
		}
		sure = sure && known
	}
	for _, o := range v.objects {
		alive, known := c.lookAtObject(o)
		if alive {
			return true, true
		}
		sure = sure && known
	}
	return v.partial, sure || v.partial
}

func (c *compiler) lookAtArray(a *array) (alive, sure bool) {
	most := a.min
	for i := range min(most, len(a.prefix)+1) {
		if alive, sure := c.look(a.item(i).value); !alive {
			return false, sure
		}
	}
	for _, k := range a.contains {
		if k.min == 0 {
			continue
		}
		some, sure := false, true
		for i := k.from; i <= max(len(a.prefix), k.from) && !some; i++ {
			if a.max != unbounded && i >= a.max {
				break
			}
			alive, known := c.look(c.both(a.item(i).value, k.value))
			some, sure = alive, sure && known
		}
		if !some {
			return false, sure
		}
	}
	return true, true
}

func (c *compiler) lookAtObject(o *object) (alive, sure bool) {
	required := 0
	for _, f := range o.fields {
		if !f.required {
			continue
		}
		required++
		if alive, sure := c.look(f.value); !alive {
			return false, sure
		}
	}
	if o.max != unbounded && max(required, o.min) > o.max {
		return false, true
	}
	sure = true
	if o.min > required {
		possible := required
		for _, f := range o.fields {
			if f.required {
				continue
			}
			alive, known := c.look(f.value)
			if alive {
				possible++
			}
			sure = sure && known
		}
		others, known := c.someRegion(o, func(region) (*texts, node) { return anyText, always })
		if !others && possible < o.min {
			return false, sure && known
		}
	}
	for _, d := range o.demands {
		met, known := c.meets(o, d)
		if !met {
			return false, known
		}
	}
	return true, true
}

// someRegion says whether some property can be in a region and in what is asked of it.
func (c *compiler) someRegion(o *object, ask func(region) (*texts, node)) (alive, sure bool) {
	sure = true
	for _, r := range o.rest {
		keys, value := ask(r)
		if !c.someText(c.bothTexts(r.keys, keys)) {
			continue
		}
		alive, known := c.look(c.both(r.value, value))
		if alive {
			return true, true
		}
		sure = sure && known
	}
	return false, sure
}

// meets says whether some property can be what is demanded.
func (c *compiler) meets(o *object, d demand) (met, sure bool) {
	sure = true
	for _, f := range o.fields {
		if !c.matches(d.keys, f.name) {
			continue
		}
		alive, known := c.look(c.both(f.value, d.value))
		if alive {
			return true, true
		}
		sure = sure && known
	}
	alive, known := c.someRegion(o, func(region) (*texts, node) { return d.keys, d.value })
	return alive, sure && known
}

// narrowSchema says that a schema's own keywords allow only scalars.
func narrowSchema(p place) bool {
	o, ok := p.schema.(*jsontree.Object)
	if !ok {
		return false
	}
	if v, ok := o.Get("const"); ok {
		return isScalar(v)
	}
	if v, ok := o.Get("enum"); ok {
		list, ok := v.(jsontree.Array)
		return ok && !slices.ContainsFunc(list, func(v jsontree.Value) bool { return !isScalar(v) })
	}
	v, _ := o.Get("type")
	list, isList := v.(jsontree.Array)
	if !isList {
		list = jsontree.Array{v}
	}
	return v != nil && !slices.ContainsFunc(list, func(v jsontree.Value) bool {
		return v == jsontree.String("array") || v == jsontree.String("object")
	})
}

func isScalar(v jsontree.Value) bool {
	switch v.(type) {
	case jsontree.Array, *jsontree.Object:
		return false
	}
	return true
}

// shallow says that no other schema applies to the same value as a schema.
func shallow(p place) bool {
	o, _ := p.schema.(*jsontree.Object)
	for _, name := range inPlaceKeywords {
		if _, ok := o.Get(name); ok {
			return false
		}
	}
	return true
}

var inPlaceKeywords = strings.Fields("$ref $dynamicRef $recursiveRef allOf anyOf oneOf not if dependencies dependentSchemas propertyNames")
