package validate

import "testing"

func TestCheck(t *testing.T) {
	cases := []struct{ schema, valid, invalid string }{
		{`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, `{"a":1.0}`, `{"a":1.5}`},
		{`{"format":"date"}`, `"2024-02-29"`, `"2023-02-29"`},
		{`{"pattern":"^\\d+$"}`, `"12"`, `"١٢"`},
		{`{"pattern":"^[^\\u0041]$"}`, `"é"`, `"A"`},
		{`{"pattern":"^(?!ab)a"}`, `"ac"`, `"ab"`},
		{`{"pattern":"^.$"}`, `"😀"`, `"ab"`},
		{`{"type":"string","nullable":true}`, `null`, `1`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","minimum":5,"exclusiveMinimum":true}`, `6`, `5`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"null"}],"additionalItems":false}`, `[null]`, `[1]`},
		{`{"unevaluatedProperties":false,"properties":{"a":{}}}`, `{"a":1}`, `{"b":1}`},
		{`{"multipleOf":0.1}`, `0.3`, `0.35`},
	}
	for _, c := range cases {
		s, err := Compile(c.schema)
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		if err := s.Check(c.valid); err != nil {
			t.Errorf("%s: %s: %v", c.schema, c.valid, err)
		}
		for _, text := range []string{c.invalid, c.valid + " 1", ""} {
			if s.Check(text) == nil {
				t.Errorf("%s: %q is valid", c.schema, text)
			}
		}
	}
}

func TestBadSchemas(t *testing.T) {
	for _, schema := range []string{`{`, `{"type":"foo"}`, `{"pattern":"("}`, `{"$ref":"https://example.com/s.json"}`, `{"$ref":"file:///s.json"}`} {
		if _, err := Compile(schema); err == nil {
			t.Errorf("%s: no error", schema)
		}
	}
}
