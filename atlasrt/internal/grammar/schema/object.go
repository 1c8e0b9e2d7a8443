package schema

import "slices"

// object is a set of objects.
type object struct {
	fields   []field
	rest     []region // what other properties may be; no key is in two regions, and one in none is not allowed
	min, max int      // properties; max may be unbounded
	demands  []demand
	places   map[string]int // of fields, once there are many
}

// field is a property that the schema names.
type field struct {
	name      string
	value     node // never, and not required: it may not come
	required  bool
	loose     bool // it is required and not described: it comes among the other properties
	evaluated bool // by the schemas so far
}

// region is properties that the schema does not name.
type region struct {
	keys      *texts
	value     node
	evaluated bool
}

// demand is that some property has one of some keys and values.
type demand struct {
	keys  *texts
	value node
}

var anyObject = newObject()

func newObject() *object {
	return &object{rest: []region{{keys: anyText, value: always}}, max: unbounded}
}

// require adds a field that must come, of any value.
func (o *object) require(name string) {
	if o.find(name) == nil {
		o.add(field{name: name, value: always, required: true, loose: true})
	}
}

func (o *object) add(f field) {
	if o.places != nil {
		o.places[f.name] = len(o.fields)
	}
	o.fields = append(o.fields, f)
}

// fewFields is a number of fields up to which looking through them is faster than a map.
const fewFields = 32

// find is a field; nil where it is not named.
func (o *object) find(name string) *field {
	if len(o.fields) <= fewFields {
		for i := range o.fields {
			if o.fields[i].name == name {
				return &o.fields[i]
			}
		}
		return nil
	}
	if o.places == nil {
		o.places = make(map[string]int, len(o.fields))
		for i, f := range o.fields {
			o.places[f.name] = i
		}
	}
	if i, ok := o.places[name]; ok {
		return &o.fields[i]
	}
	return nil
}

// other is the region of a property that is no field.
func (c *compiler) other(o *object, name string) region {
	for _, r := range o.rest {
		if c.matches(r.keys, name) {
			return r
		}
	}
	return region{value: never}
}

// bothObjects is what is in both, with the order of a's fields; nil where there is none.
func (c *compiler) bothObjects(a, b *object) *object {
	if !c.spend(len(a.fields) + len(b.fields)) {
		return nil
	}
	o := &object{min: max(a.min, b.min), max: lower(a.max, b.max), fields: make([]field, 0, len(a.fields)+len(b.fields))}
	add := func(f field) bool {
		if f.required && c.hollow(f.value) {
			return false
		}
		o.fields = append(o.fields, f)
		return true
	}
	merged := func(f, g *field) field {
		return field{name: f.name, value: c.both(f.value, g.value), required: f.required || g.required, loose: f.loose && g.loose, evaluated: f.evaluated || g.evaluated}
	}
	beside := func(f field, other *object) field {
		r := c.other(other, f.name)
		f.value, f.evaluated = c.both(f.value, r.value), f.evaluated || r.evaluated
		return f
	}
	for i := range a.fields {
		f := &a.fields[i]
		g := b.find(f.name)
		switch {
		case g == nil:
			if !add(beside(*f, b)) {
				return nil
			}
		case f.loose && !g.loose: // it comes where the other one describes it
		case !add(merged(f, g)):
			return nil
		}
	}
	for i := range b.fields {
		g := &b.fields[i]
		f := a.find(g.name)
		switch {
		case f == nil:
			if !add(beside(*g, a)) {
				return nil
			}
		case f.loose && !g.loose && !add(merged(f, g)):
			return nil
		}
	}
	for _, r := range a.rest {
		for _, s := range b.rest {
			keys := c.bothTexts(r.keys, s.keys)
			if keys != r.keys && keys != s.keys && !c.someText(keys) {
				continue
			}
			o.rest = append(o.rest, region{keys: keys, value: c.both(r.value, s.value), evaluated: r.evaluated || s.evaluated})
		}
	}
	o.rest = mergeRegions(o.rest)
	o.demands = a.demands[:len(a.demands):len(a.demands)]
	for _, d := range b.demands {
		if !slices.Contains(o.demands, d) {
			o.demands = append(o.demands, d)
		}
	}
	if o.max != unbounded && o.max < o.min {
		return nil
	}
	return o
}

// mergeRegions joins regions that allow the same values, and leaves out those that allow none.
func mergeRegions(regions []region) []region {
	merged := regions[:0]
next:
	for _, r := range regions {
		if r.value == never || r.keys == nil {
			continue
		}
		for i := range merged {
			if m := &merged[i]; m.value == r.value && m.evaluated == r.evaluated {
				m.keys = eitherTexts(m.keys, r.keys)
				continue next
			}
		}
		merged = append(merged, r)
	}
	return merged
}

// named is the keys of fields.
func (o *object) named() *texts {
	names := make([]string, len(o.fields))
	for i, f := range o.fields {
		names[i] = f.name
	}
	return wordTexts(names)
}

// notObject is the objects that are not in o: each breaks it in one way at least.
func (c *compiler) notObject(o *object) (alternatives []*object) {
	if o == anyObject || !c.spend(len(o.fields)+len(o.rest)) {
		return nil
	}
	for _, f := range o.fields {
		if f.required {
			without := newObject()
			without.fields = []field{{name: f.name, value: never}}
			alternatives = append(alternatives, without)
		}
		if value, ok := c.opposite(f.value); ok && value != never {
			wrong := newObject()
			wrong.fields = []field{{name: f.name, value: value, required: true, loose: true}}
			alternatives = append(alternatives, wrong)
		}
	}
	ask := func(keys *texts, value node) {
		if value != never && c.someText(keys) {
			other := newObject()
			other.demands = []demand{{keys, value}}
			alternatives = append(alternatives, other)
		}
	}
	unnamed := notTexts(o.named())
	covered := (*texts)(nil)
	for _, r := range o.rest {
		covered = eitherTexts(covered, r.keys)
		if value, ok := c.opposite(r.value); ok {
			ask(c.bothTexts(unnamed, r.keys), value)
		}
	}
	ask(c.bothTexts(unnamed, notTexts(covered)), always)
	if o.min > 0 {
		fewer := newObject()
		fewer.max = o.min - 1
		alternatives = append(alternatives, fewer)
	}
	if o.max != unbounded {
		more := newObject()
		more.min = o.max + 1
		alternatives = append(alternatives, more)
	}
	for _, d := range o.demands {
		unmet := newObject()
		value, _ := c.opposite(d.value)
		unmet.rest = mergeRegions([]region{{keys: d.keys, value: value}, {keys: notTexts(d.keys), value: always}})
		alternatives = append(alternatives, unmet)
	}
	return alternatives
}

// evaluateObject holds properties that no schema evaluated so far to n.
func (c *compiler) evaluateObject(o *object, n node) *object {
	e := &object{min: o.min, max: o.max, demands: o.demands}
	for _, f := range o.fields {
		if !f.evaluated {
			f.value, f.evaluated = c.both(f.value, n), true
		}
		e.fields = append(e.fields, f)
	}
	for _, r := range o.rest {
		if !r.evaluated {
			r.value, r.evaluated = c.both(r.value, n), true
		}
		e.rest = append(e.rest, r)
	}
	e.rest = mergeRegions(e.rest)
	return e
}

// mostRegions bounds how many kinds of properties patterns may make.
const mostRegions = 64

// properties reads the keywords of objects; nil where there are none.
func (k *keywords) properties() *object {
	declared, hasDeclared := k.members("properties")
	patterns, hasPatterns := k.members("patternProperties")
	additional, hasAdditional := k.get("additionalProperties")
	names, hasNames := k.get("propertyNames")
	required, hasRequired := k.get("required")
	o := newObject()
	o.min, o.max = k.count("minProperties", 0, true), k.count("maxProperties", unbounded, false)
	if k.err != nil || !hasDeclared && !hasPatterns && !hasAdditional && !hasNames && !hasRequired && o.min == 0 && o.max == unbounded {
		return nil
	}

	type group struct {
		keys  *texts
		value node
	}
	var groups []group
	for pattern, v := range patterns.All() {
		groups = append(groups, group{k.patternTexts("patternProperties", pattern), k.child(v, "patternProperties", pattern)})
	}
	additionalValue := always
	if hasAdditional {
		additionalValue = k.child(additional, "additionalProperties")
	}
	for _, g := range groups {
		var split []region
		for _, r := range o.rest {
			if k.err != nil {
				return nil
			}
			in, out := k.bothTexts(r.keys, g.keys), k.bothTexts(r.keys, notTexts(g.keys))
			if k.someText(in) {
				split = append(split, region{keys: in, value: k.both(r.value, g.value), evaluated: true})
			}
			if k.someText(out) {
				split = append(split, region{keys: out, value: r.value, evaluated: r.evaluated})
			}
		}
		if o.rest = split; len(split) > mostRegions {
			k.unsupported("patternProperties", "the patterns overlap in too many ways")
			return nil
		}
	}
	for i := range o.rest {
		if r := &o.rest[i]; !r.evaluated {
			r.value, r.evaluated = additionalValue, hasAdditional
		}
	}
	for name, v := range declared.All() {
		f := field{name: name, value: k.child(v, "properties", name), evaluated: true}
		for _, g := range groups {
			if k.matches(g.keys, name) {
				f.value = k.both(f.value, g.value)
			}
		}
		o.fields = append(o.fields, f)
	}
	if hasRequired {
		k.require(o, k.names("required", required))
	}
	if hasNames {
		k.nameProperties(o, k.read(k.child(names, "propertyNames")).text)
	}
	o.rest = mergeRegions(o.rest)
	return o
}

// require makes fields required. Those that are not declared are what other properties are.
func (k *keywords) require(o *object, names []string) {
	for _, name := range names {
		if f := o.find(name); f != nil {
			f.required = true
			continue
		}
		r := k.other(o, name)
		o.add(field{name: name, value: r.value, required: true, loose: true, evaluated: r.evaluated})
	}
}

// nameProperties holds the names of properties to a set.
func (k *keywords) nameProperties(o *object, names *texts) {
	for i := range o.fields {
		if f := &o.fields[i]; !k.matches(names, f.name) {
			f.value = never
		}
	}
	for i := range o.rest {
		r := &o.rest[i]
		if r.keys = k.bothTexts(r.keys, names); !k.someText(r.keys) {
			r.keys = nil
		}
	}
}
