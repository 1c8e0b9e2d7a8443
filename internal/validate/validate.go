// Package validate tells whether JSON follows a schema. It is for tests: another program than the one that holds answers to schemas judges
// them.
//
// The validator is github.com/santhosh-tekuri/jsonschema. Formats are held, expressions are those of ECMAScript, and nothing is fetched.
package validate

import (
	"fmt"
	"strings"

	"github.com/dlclark/regexp2/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is a schema to judge by. It is safe for concurrent use.
type Schema struct{ compiled *jsonschema.Schema }

// place is what a schema is called that has no name of its own.
const place = "urn:schema"

// Compile reads a schema of draft 4 to 2020-12, the last of them where it does not say.
func Compile(text string) (*Schema, error) {
	root, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("a schema that is no JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(jsonschema.SchemeURLLoader{}) // of no scheme
	c.UseRegexpEngine(compileExpression)
	c.AssertFormat()
	if err := c.AddResource(place, nullable(root)); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(place)
	if err != nil {
		return nil, err
	}
	return &Schema{compiled}, nil
}

// Check is an error that says what is wrong with a text; nil: it is a value that the schema allows.
func (s *Schema) Check(text string) error {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return s.compiled.Validate(value)
}

// nullable writes OpenAPI's word for null as JSON Schema has it.
func nullable(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = nullable(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = nullable(v[key])
		}
		if kind, ok := v["type"].(string); ok && v["nullable"] == true {
			v["type"] = []any{kind, "null"}
		}
	}
	return v
}

// expression is one of ECMAScript.
type expression struct{ *regexp2.Regexp }

func compileExpression(text string) (jsonschema.Regexp, error) {
	e, err := regexp2.Compile(text, regexp2.ECMAScript, regexp2.Unicode)
	if err != nil {
		return nil, err
	}
	return expression{e}, nil
}

// MatchString implements jsonschema.Regexp. What cannot be decided does not match.
func (e expression) MatchString(text string) bool {
	matches, err := e.Regexp.MatchString(text)
	return matches && err == nil
}
