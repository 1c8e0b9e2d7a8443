package grammar

import (
	"fmt"
	"strings"
)

// choices are bytes that decide. Where none is left the first of all is chosen.
type choices struct{ left []byte }

// of is a number below n.
func (c *choices) of(n int) int {
	if len(c.left) == 0 {
		return 0
	}
	b := c.left[0]
	c.left = c.left[1:]
	return int(b) % n
}

// one is one of several texts.
func (c *choices) one(of ...string) string { return of[c.of(len(of))] }

// some are up to n parts, at least one.
func (c *choices) some(n int, part func() string) string {
	parts := make([]string, 1+c.of(n))
	for i := range parts {
		parts[i] = part()
	}
	return strings.Join(parts, ",")
}

// Names of properties; one is another's beginning, and one is no ASCII.
var randomNames = []string{`"a"`, `"ab"`, `"é"`, `"x"`}

func (c *choices) name() string { return c.one(randomNames...) }

// members are an object's, whose keys are names.
func (c *choices) members(part func() string) string {
	var all []string
	for _, name := range randomNames {
		if c.of(2) == 1 {
			all = append(all, name+":"+part())
		}
	}
	return "{" + strings.Join(all, ",") + "}"
}

// value is a value of JSON.
func (c *choices) value() string {
	return c.one(`null`, `true`, `1`, `"a"`, `-0.5`, `12`, `[]`, `{}`, `"ab"`, `[1,"a"]`, `{"a":1}`, `1e2`, `"é\n"`, `{"ab":[null]}`)
}

func (c *choices) integer() string { return c.one("0", "1", "2", "3", "5") }
func (c *choices) number() string  { return c.one("0", "1", "-3", "2.5", "10", "0.1", "-0.75", "100") }

// schema is a random schema.
func (c *choices) schema(depth int) string {
	if len(c.left) == 0 || depth == 0 {
		return c.one(`true`, `{"type":"boolean"}`, `{"type":"integer"}`, `{"enum":["a",1]}`)
	}
	if c.of(12) == 11 {
		return c.one(`true`, `false`, `{}`, `{"$ref":"#"}`, `{"$ref":"#/$defs/a"}`, `{"$ref":"#/$defs/b"}`)
	}
	parts := map[string]string{}
	for range 1 + c.of(4) {
		c.keywords(parts, depth-1)
	}
	return object(parts)
}

// object is an object of keywords, in the order of their names: properties come before required.
func object(parts map[string]string) string {
	var all []string
	for _, name := range randomKeywords {
		if value, ok := parts[name]; ok {
			all = append(all, fmt.Sprintf("%q:%s", name, value))
		}
	}
	return "{" + strings.Join(all, ",") + "}"
}

var randomKeywords = strings.Fields(`type enum const minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern format
	prefixItems items minItems maxItems uniqueItems contains minContains maxContains properties patternProperties additionalProperties propertyNames
	required minProperties maxProperties dependentRequired dependentSchemas allOf anyOf oneOf not if then else unevaluatedProperties unevaluatedItems $defs`)

// keywords adds some that belong together.
func (c *choices) keywords(to map[string]string, depth int) {
	sub := func() string { return c.schema(depth) }
	list := func() string { return "[" + c.some(3, sub) + "]" }
	kind := func() string {
		return c.one(`"object"`, `"string"`, `"integer"`, `"array"`, `"number"`, `"boolean"`, `"null"`)
	}
	switch c.of(20) {
	case 0, 1:
		to["type"] = kind()
	case 2:
		to["type"] = "[" + kind() + "," + c.one(`"null"`, `"string"`) + "]"
	case 3:
		to["enum"] = "[" + c.some(4, c.value) + "]"
	case 4:
		to["const"] = c.value()
	case 5:
		to["type"], to[c.one("minimum", "exclusiveMinimum")], to[c.one("maximum", "exclusiveMaximum")] = c.one(`"integer"`, `"number"`), c.number(), c.number()
	case 6:
		to["multipleOf"] = c.one("1", "2", "3", "0.5", "0.1", "7", "1.5")
	case 7:
		to["type"], to["minLength"], to["maxLength"] = `"string"`, c.integer(), c.integer()
	case 8:
		to["pattern"] = c.one(`"^a*$"`, `"b"`, `"^[^a]"`, `"^(a|b){2,3}$"`, `"^.?$"`, `"^(?!a)\\w+$"`, `"\\n$"`)
	case 9:
		to["format"] = c.one(`"date"`, `"ipv4"`, `"uuid"`, `"nothing"`)
	case 10, 11:
		to["type"], to["properties"], to["required"] = `"object"`, c.members(sub), "["+c.name()+"]"
		to["additionalProperties"] = c.one("false", "true", sub())
	case 12:
		to["patternProperties"] = "{" + c.one(`"^a"`, `"b$"`, `"."`) + ":" + sub() + "}"
		to["propertyNames"] = c.one(`true`, `{"maxLength":2}`, `{"pattern":"^[a-z]+$"}`, `{"enum":["a","x"]}`)
	case 13:
		to["minProperties"], to["maxProperties"] = c.integer(), c.integer()
	case 14:
		to["dependentRequired"], to["dependentSchemas"] = "{"+c.name()+":["+c.name()+"]}", "{"+c.name()+":"+sub()+"}"
	case 15, 16:
		to["type"], to["items"], to["minItems"], to["maxItems"] = `"array"`, sub(), c.integer(), c.integer()
		if c.of(2) == 1 {
			to["prefixItems"] = list()
		}
		if c.of(4) == 1 {
			to["contains"], to["minContains"], to["maxContains"] = sub(), c.integer(), c.integer()
		}
		if c.of(4) == 1 {
			to["uniqueItems"] = "true"
		}
	case 17:
		to[c.one("anyOf", "allOf", "oneOf")] = list()
	case 18:
		to[c.one("not", "unevaluatedProperties", "unevaluatedItems")] = sub()
	case 19:
		to["if"], to["then"], to["else"] = sub(), sub(), sub()
	}
}

// root is a random schema with what its references need. Now and then a keyword has any value, which may be none of its kind.
func (c *choices) root() string {
	parts := map[string]string{"$defs": `{"a":` + c.schema(2) + `,"b":` + c.schema(2) + `}`}
	for range 1 + c.of(4) {
		c.keywords(parts, 3)
	}
	if c.of(16) == 15 {
		parts[c.one(randomKeywords...)] = c.value()
	}
	return object(parts)
}
