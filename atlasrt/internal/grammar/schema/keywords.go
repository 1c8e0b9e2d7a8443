package schema

import (
	"strconv"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// readSchema is what the schema at a place allows.
func (c *compiler) readSchema(p place) *set {
	k := keywords{compiler: c, object: p.schema.(*jsontree.Object), place: p}
	if !c.spend(1 + k.object.Len()) {
		return &set{}
	}
	if _, refers := k.object.Get("$ref"); refers && p.resource.draft.alone() {
		return c.read(k.reference("$ref"))
	}
	_, properties := k.get("unevaluatedProperties")
	_, items := k.get("unevaluatedItems")
	c.tracked = c.tracked || properties || items
	v := everything()
	v.number = k.numbers()
	v.text = k.texts()
	if a := k.array(); a != nil {
		v.arrays = []*array{a}
	}
	if o := k.properties(); o != nil {
		v.objects = []*object{o}
	}
	v = k.types(v)
	v = k.values(v)
	v = k.applicators(v)
	return k.unevaluated(v)
}

// keywords are those of a schema. The methods read some of them each.
type keywords struct {
	*compiler
	object *jsontree.Object
	place  place
}

func (k *keywords) get(name string) (jsontree.Value, bool) { return k.object.Get(name) }

// below is the place of what stands under a keyword.
func (k *keywords) below(v jsontree.Value, names ...string) place {
	return k.document.at(k.place, v, names...)
}

// child is the node of a schema under a keyword: of a part of the value.
func (k *keywords) child(v jsontree.Value, names ...string) node {
	return k.subschema(k.below(v, names...))
}

// inPlace is the node of a schema under a keyword that is about the same value.
func (k *keywords) inPlace(v jsontree.Value, names ...string) node {
	return k.schemaNode(k.below(v, names...), k.tracked)
}

func (k *keywords) malformed(name, want string) {
	v, _ := k.get(name)
	k.invalid(quote(name) + " must be " + want + ", not " + kindName(v))
}

// list is a keyword's array.
func (k *keywords) list(name string) (jsontree.Array, bool) {
	v, ok := k.get(name)
	if !ok {
		return nil, false
	}
	list, ok := v.(jsontree.Array)
	if !ok {
		k.malformed(name, "an array")
	}
	return list, ok
}

// members is a keyword's object.
func (k *keywords) members(name string) (*jsontree.Object, bool) {
	v, ok := k.get(name)
	if !ok {
		return nil, false
	}
	o, ok := v.(*jsontree.Object)
	if !ok {
		k.malformed(name, "an object")
	}
	return o, ok
}

// names is a list of strings.
func (k *keywords) names(keyword string, v jsontree.Value) (names []string) {
	list, ok := v.(jsontree.Array)
	for _, item := range list {
		name, isString := item.(jsontree.String)
		if ok = ok && isString; !ok {
			break
		}
		names = append(names, string(name))
	}
	if !ok {
		k.malformed(keyword, "an array of strings")
	}
	return names
}

// most of what a schema may ask an answer to have at least; more than that is no answer.
const mostLeast = 1_000_000

// count is a keyword's number of something.
func (k *keywords) count(name string, otherwise int, least bool) int {
	v, ok := k.get(name)
	if !ok {
		return otherwise
	}
	n, _ := v.(jsontree.Number)
	value, integer, fits := n.Whole()
	switch {
	case n == "" || !integer || n[0] == '-' && value != 0:
		k.malformed(name, "a whole number of at least 0")
	case least && (!fits || value > mostLeast):
		k.unsupported(name, "no answer is so long: at least "+strconv.Itoa(mostLeast)+" is the most that can be asked for")
	case !fits || value > 1<<30:
		return unbounded
	}
	return int(value)
}

// number is a keyword's number.
func (k *keywords) number(name string) (decimal, bool) {
	v, ok := k.get(name)
	if !ok {
		return decimal{}, false
	}
	n, ok := v.(jsontree.Number)
	if !ok {
		k.malformed(name, "a number")
		return decimal{}, false
	}
	return k.decimal(name, n)
}

// numbers reads minimum, maximum, exclusiveMinimum, exclusiveMaximum and multipleOf.
func (k *keywords) numbers() numbers {
	n := numbers{any: true}
	for _, side := range []struct {
		inclusive, exclusive string
		upwards              bool
	}{{"minimum", "exclusiveMinimum", true}, {"maximum", "exclusiveMaximum", false}} {
		strict := false
		if v, ok := k.get(side.exclusive); ok {
			if flag, ok := v.(jsontree.Bool); ok { // draft 4
				strict = bool(flag)
			} else if d, ok := k.number(side.exclusive); ok {
				n = k.bothNumbers(n, k.bound(d, side.upwards, true))
			}
		}
		if d, ok := k.number(side.inclusive); ok {
			n = k.bothNumbers(n, k.bound(d, side.upwards, strict))
		}
	}
	if d, ok := k.number("multipleOf"); ok {
		if d.digits == "" || d.negative {
			k.malformed("multipleOf", "a number above 0")
			return n
		}
		m, reason := k.multiples(d)
		if reason != "" {
			k.unsupported("multipleOf", reason)
		}
		n = k.bothNumbers(n, m)
	}
	return n
}

// texts reads minLength, maxLength, pattern and format.
func (k *keywords) texts() *texts {
	t := lengthTexts(k.count("minLength", 0, true), k.count("maxLength", unbounded, false))
	if v, ok := k.get("pattern"); ok {
		pattern, ok := v.(jsontree.String)
		if !ok {
			k.malformed("pattern", "a string")
			return nil
		}
		t = k.bothTexts(t, k.patternTexts("pattern", string(pattern)))
	}
	if v, ok := k.get("format"); ok {
		name, ok := v.(jsontree.String)
		if !ok {
			k.malformed("format", "a string")
			return nil
		}
		if f := k.format(string(name)); f != nil {
			t = k.bothTexts(t, f)
		}
	}
	return t
}

// types reads type and nullable.
func (k *keywords) types(v *set) *set {
	declared, ok := k.get("type")
	if !ok {
		return v
	}
	list, isList := declared.(jsontree.Array)
	if !isList {
		list = jsontree.Array{declared}
	}
	if nullable, _ := k.get("nullable"); nullable == jsontree.Bool(true) {
		list = append(list[:len(list):len(list)], jsontree.String("null"))
	}
	typed := &set{}
	for _, item := range list {
		name, ok := item.(jsontree.String)
		if !ok {
			k.malformed("type", "a string or an array of strings")
			return v
		}
		switch name {
		case "null":
			typed.null = true
		case "boolean":
			typed.no, typed.yes = true, true
		case "number":
			typed.number = v.number
		case "integer":
			if typed.number.none() {
				typed.number = k.bothNumbers(v.number, k.integers())
				typed.number.bare = true
			}
		case "string":
			typed.text = v.text
		case "array":
			typed.arrays = v.arrays
		case "object":
			typed.objects = v.objects
		default:
			k.invalid(quote("type") + " names " + quote(string(name)) + ": the types are null, boolean, integer, number, string, array and object")
		}
	}
	return typed
}

// values reads enum and const.
func (k *keywords) values(v *set) *set {
	if list, ok := k.list("enum"); ok {
		v = k.intersect(v, k.finite("enum", list))
	}
	if value, ok := k.get("const"); ok {
		v = k.intersect(v, k.finite("const", jsontree.Array{value}))
	}
	return v
}

// reference is the node that a keyword refers to.
func (k *keywords) reference(name string) node {
	v, _ := k.get(name)
	uri, ok := v.(jsontree.String)
	if !ok {
		k.malformed(name, "a string")
		return never
	}
	to, reason := k.document.find(k.place, string(uri))
	if reason != "" {
		k.unsupported(name, quote(string(uri))+": "+reason)
		return never
	}
	return k.schemaNode(to, k.tracked)
}
