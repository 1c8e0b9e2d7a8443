// Package kind says of which types of JSON schema a tool's parameter may be. Families that write values without quotes leave it to the reader
// to tell text from other values by it, and what is written must be read back as it was meant.
package kind

import (
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// Set is a set of the types of JSON schema. The empty set is that of no schema.
type Set uint8

// The types.
const (
	Null Set = 1 << iota
	Boolean
	Integer
	Number
	Array
	Object
	String
)

// named is the type of a name; the empty set where there is none.
func named(name string) Set {
	switch name {
	case "null":
		return Null
	case "boolean":
		return Boolean
	case "integer":
		return Integer
	case "number":
		return Number
	case "array":
		return Array
	case "object":
		return Object
	case "string":
		return String
	}
	return 0
}

// mostSchemas bounds how many schemas say of what types a parameter is: they come with a request, and may refer to themselves.
const mostSchemas = 64

// Declared is the types that the schema of a tool's parameters declares for one of them, in its schema or in those that one names.
func Declared(parameters jsontree.Value, name string) (k Set) {
	schemas := []jsontree.Value{member(member(parameters, "properties"), name)}
	for n := 0; n < len(schemas) && n < mostSchemas; n++ {
		k |= ofSchema(schemas[n])
		for _, name := range []string{"anyOf", "oneOf", "allOf"} {
			others, _ := member(schemas[n], name).(jsontree.Array)
			schemas = append(schemas, others[:min(len(others), mostSchemas)]...)
		}
		if path, ok := member(schemas[n], "$ref").(jsontree.String); ok {
			schemas = append(schemas, find(parameters, string(path)))
		}
	}
	return k
}

// ofSchema is the types that a schema names itself.
func ofSchema(schema jsontree.Value) (k Set) {
	switch t := member(schema, "type").(type) {
	case jsontree.String:
		k = named(string(t))
	case jsontree.Array:
		for _, one := range t {
			if name, ok := one.(jsontree.String); ok {
				k |= named(string(name))
			}
		}
	case nil:
		if v := member(schema, "const"); v != nil {
			k = Of(v)
		}
		values, _ := member(schema, "enum").(jsontree.Array)
		for _, v := range values {
			k |= Of(v)
		}
	}
	if v, ok := member(schema, "nullable").(jsontree.Bool); ok && bool(v) {
		k |= Null
	}
	return k
}

// find is the schema at a path such as #/$defs/place; nil where there is none.
func find(root jsontree.Value, path string) jsontree.Value {
	names := strings.Split(path, "/")
	if names[0] != "#" {
		return nil
	}
	for _, name := range names[1:] {
		root = member(root, name)
	}
	return root
}

// member is a value of an object; nil where there is none.
func member(v jsontree.Value, key string) jsontree.Value {
	if o, ok := v.(*jsontree.Object); ok && o != nil {
		if v, ok := o.Get(key); ok {
			return v
		}
	}
	return nil
}

// Of is the type of a value.
func Of(v jsontree.Value) Set {
	switch v := v.(type) {
	case jsontree.Null:
		return Null
	case jsontree.Bool:
		return Boolean
	case jsontree.Number:
		if v.IsInteger() {
			return Integer
		}
		return Number
	case jsontree.Array:
		return Array
	case *jsontree.Object:
		return Object
	}
	return String
}

// OnlyText says that every value is text.
func (k Set) OnlyText() bool { return k == 0 || k == String }

// Nulls says that null is read as null.
func (k Set) Nulls() bool { return !k.OnlyText() && (k&Null != 0 || k&String == 0) }

// Values is the types that are read as JSON. An integer may be written as a number, and 1.0 is an integer.
func (k Set) Values() Set {
	k &^= Null | Boolean | String
	if k&(Integer|Number) != 0 {
		k |= Integer | Number
	}
	return k
}
