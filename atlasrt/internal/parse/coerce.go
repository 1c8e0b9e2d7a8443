package parse

import (
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// kinds is a set of the types of JSON schema. The empty set is that of no schema.
type kinds uint8

const (
	nullKind kinds = 1 << iota
	booleanKind
	integerKind
	numberKind
	arrayKind
	objectKind
	stringKind
)

// kindOf is the kind that a schema names.
func kindOf(name string) kinds {
	switch name {
	case "null":
		return nullKind
	case "boolean":
		return booleanKind
	case "integer":
		return integerKind
	case "number":
		return numberKind
	case "array":
		return arrayKind
	case "object":
		return objectKind
	case "string":
		return stringKind
	}
	return 0
}

// mostSchemas bounds how many schemas say of what kinds a parameter is: they come with a request, and may refer to themselves.
const mostSchemas = 64

// kinds are those that the tool whose call goes on declares for a parameter, in its schema or in those that one names.
func (s *scanner) kinds(parameter string) (k kinds) {
	if !s.known() {
		return 0
	}
	root := s.tool.Parameters
	schemas := []jsontree.Value{member(member(root, "properties"), parameter)}
	for n := 0; n < len(schemas) && n < mostSchemas; n++ {
		k |= schemaKinds(schemas[n])
		for _, name := range []string{"anyOf", "oneOf", "allOf"} {
			others, _ := member(schemas[n], name).(jsontree.Array)
			schemas = append(schemas, others[:min(len(others), mostSchemas)]...)
		}
		if path, ok := member(schemas[n], "$ref").(jsontree.String); ok {
			schemas = append(schemas, find(root, string(path)))
		}
	}
	return k
}

// schemaKinds are those that a schema names itself.
func schemaKinds(schema jsontree.Value) (k kinds) {
	switch t := member(schema, "type").(type) {
	case jsontree.String:
		k = kindOf(string(t))
	case jsontree.Array:
		for _, one := range t {
			if name, ok := one.(jsontree.String); ok {
				k |= kindOf(string(name))
			}
		}
	case nil:
		if v := member(schema, "const"); v != nil {
			k = valueKind(v)
		}
		values, _ := member(schema, "enum").(jsontree.Array)
		for _, v := range values {
			k |= valueKind(v)
		}
	}
	if v, ok := member(schema, "nullable").(jsontree.Bool); ok && bool(v) {
		k |= nullKind
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

// valueKind is the kind of a value.
func valueKind(v jsontree.Value) kinds {
	switch v := v.(type) {
	case jsontree.Null:
		return nullKind
	case jsontree.Bool:
		return booleanKind
	case jsontree.Number:
		if v.IsInteger() {
			return integerKind
		}
		return numberKind
	case jsontree.Array:
		return arrayKind
	case *jsontree.Object:
		return objectKind
	}
	return stringKind
}

// isText tells whether a value that begins with what came can only be text.
func (k kinds) isText(came []byte) bool {
	switch k {
	case 0, stringKind:
		return true
	case stringKind | nullKind:
		return len(came) > 2*len("null") || !strings.HasPrefix("null", strings.TrimSpace(string(came)))
	}
	return false
}

// coerce makes JSON of a value as it was written. Null counts where it is declared, and where text is not.
func (k kinds) coerce(written string) string {
	value := strings.TrimSpace(written)
	switch lower := strings.ToLower(value); {
	case (lower == "null" || lower == "none") && (k&nullKind != 0 || k&stringKind == 0):
		return "null"
	case (lower == "true" || lower == "false") && k&booleanKind != 0:
		return lower
	}
	if accepts := k &^ (nullKind | booleanKind | stringKind); accepts != 0 {
		if accepts&numberKind != 0 {
			accepts |= integerKind
		}
		if accepts&integerKind != 0 {
			accepts |= numberKind // 1.0 is an integer
		}
		if v, err := jsontree.Decode([]byte(value), jsontree.Limits{}); err == nil && valueKind(v)&accepts != 0 {
			return value
		}
	}
	return quoted(written)
}

// quoted is a text as a JSON string.
func quoted(text string) string { return `"` + escaped(text) + `"` }

// escaped is a text as it stands within a JSON string. Bytes beyond ASCII remain, so that a code point may come in pieces.
func escaped(text string) string {
	const hex = "0123456789abcdef"
	b := make([]byte, 0, len(text))
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return string(b)
}
