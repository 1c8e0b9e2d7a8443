package schema

import (
	"strings"
	"testing"
)

func TestKeywords(t *testing.T) {
	cases := []struct {
		name, schema   string
		valid, invalid []string
	}{
		{"everything", `{}`, []string{`null`, `{"a":[1,{"b":"c"}]}`, `"\u00e9\/\ud83d\ude00é"`, `-1.5e+3`}, []string{`"\ud83d"`, `"\udc00"`, "\"\n\"", `{"a":1,}`, `[1,]`, `tru`, ` 1`, `01`}},
		{"types", `{"type":["null","boolean"]}`, []string{`null`, `true`, `false`}, []string{`0`, `""`, `[]`, `{}`}},
		{"nullable", `{"type":"string","nullable":true}`, []string{`null`, `"a"`}, []string{`1`}},
		{"strings", `{"type":"string","maxLength":3}`, []string{`""`, `"äöü"`, `"😀\n\u001f"`, `"\u001F\"\\"`, "\"\x7f/\""}, []string{`"abcd"`, `"\/"`, `"\u0061"`, "\"\x1f\"", `"\u000a"`}},
		{"pattern", `{"type":"string","pattern":"^\\d+[\"\\n]x?$"}`, []string{`"12\""`, `"3\nx"`}, []string{`"12"`, `"x"`, `"1\"y"`}},
		{"pattern without anchors", `{"type":"string","pattern":"ab"}`, []string{`"ab"`, `"\"ab\\"`}, []string{`"a b"`, `""`}},
		{"pattern and length", `{"type":"string","pattern":"^a*$","minLength":2,"maxLength":3}`, []string{`"aa"`, `"aaa"`}, []string{`"a"`, `"aaaa"`, `"ab"`}},
		{"opposite of a pattern", `{"type":"string","not":{"pattern":"b"}}`, []string{`""`, `"ac\n"`}, []string{`"b"`, `"\u0062"`}},
		{"unknown format", `{"type":"string","format":"url"}`, []string{`"x"`}, []string{`1`}},
		{"format of any type", `{"format":"date"}`, []string{`"2024-02-29"`, `1`, `{}`}, []string{`"2023-02-29"`, `"2100-02-29"`}},
		{"enum", `{"enum":["a\"b",1,null,true,[1,{"x":2}],{"y":[]}]}`, []string{`"a\"b"`, `1`, `1.0`, `null`, `true`, `[1,{"x":2}]`, `{"y":[]}`}, []string{`"a"`, `2`, `false`, `[1]`, `{}`, `{"y":[],"z":1}`}},
		{"enum and type", `{"type":"string","enum":["a",1]}`, []string{`"a"`}, []string{`1`}},
		{"enum and pattern", `{"enum":["ab","b"],"pattern":"a"}`, []string{`"ab"`}, []string{`"b"`}},
		{"order", `{"type":"object","properties":{"b":{},"a":{},"c":{}},"required":["a"],"additionalProperties":false}`, []string{`{"a":1}`, `{"b":1,"a":2,"c":3}`, `{"a":2,"c":3}`}, []string{`{}`, `{"a":2,"b":1}`, `{"b":1,"c":3}`, `{"a":1,"d":1}`, `{"a":1,"a":1}`}},
		{"other properties", `{"type":"object","properties":{"ab":{"type":"null"}},"additionalProperties":{"type":"integer"}}`, []string{`{"ab":null,"a":1,"abc":2}`, `{"x":1}`, `{"":1}`}, []string{`{"ab":1}`, `{"x":1,"ab":1}`, `{"a":null}`, `{"\u0061b":1}`}},
		{"patterns of properties", `{"type":"object","properties":{"xa":{"minimum":1}},"patternProperties":{"^x":{"type":"integer"},"y$":{"maximum":5}},"additionalProperties":false}`, []string{`{"xa":1,"xy":5,"zy":1.5}`}, []string{`{"xa":0}`, `{"xa":1.5}`, `{"xy":6}`, `{"xy":1.5}`, `{"zy":6}`, `{"z":1}`}},
		{"names of properties", `{"type":"object","propertyNames":{"pattern":"^[a-z]$"},"properties":{"AB":{}}}`, []string{`{"a":1}`, `{}`}, []string{`{"AB":1}`, `{"ab":1}`}},
		{"counted properties", `{"type":"object","properties":{"a":{},"b":{},"c":{}},"minProperties":2,"maxProperties":3}`, []string{`{"a":1,"b":2}`, `{"b":2,"x":1}`, `{"x":1,"y":2,"z":3}`}, []string{`{"a":1}`, `{"a":1,"b":2,"c":3,"d":4}`, `{}`}},
		{"required and not described", `{"type":"object","required":["a","b"]}`, []string{`{"a":1,"b":2}`, `{"x":0,"b":2,"y":0,"a":1}`}, []string{`{"a":1}`, `{"x":1,"y":2}`}},
		{"arrays", `{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3}`, []string{`[1]`, `[1,2,3]`}, []string{`[]`, `[1,2,3,4]`, `["a"]`, `[1,]`}},
		{"tuples", `{"type":"array","prefixItems":[{"type":"null"},{"type":"boolean"}],"items":{"type":"integer"}}`, []string{`[]`, `[null]`, `[null,true,1,2]`}, []string{`[true]`, `[null,1]`, `[null,true,null]`}},
		{"tuples of draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"array","items":[{"type":"null"}],"additionalItems":false}`, []string{`[]`, `[null]`}, []string{`[1]`, `[null,1]`}},
		{"contains", `{"type":"array","contains":{"const":1},"minContains":2,"maxContains":3,"maxItems":4}`, []string{`[1,1]`, `[0,1,"x",1]`, `[1,1,1]`}, []string{`[1]`, `[1,1,1,1]`, `[0,1,0,1,0]`}},
		{"contains without a bound", `{"type":"array","items":{"type":"integer"},"contains":{"minimum":5}}`, []string{`[5]`, `[1,9,2]`}, []string{`[]`, `[1,2]`, `["a",5]`}},
		{"unique items", `{"type":"array","items":{"enum":["a","b",1]},"uniqueItems":true,"minItems":2}`, []string{`["a","b"]`, `[1,"b","a"]`}, []string{`["a"]`, `["a","a"]`, `[1,1.0]`, `["a","b",1,"a"]`}},
		{"one unique item", `{"type":"array","uniqueItems":true,"maxItems":1}`, []string{`[]`, `[{"a":1}]`}, []string{`[1,2]`}},
		{"allOf", `{"allOf":[{"type":"object","properties":{"a":{"type":"integer"}}},{"properties":{"a":{"minimum":3},"b":{}},"required":["b"]}]}`, []string{`{"a":3,"b":0}`, `{"b":0}`}, []string{`{"a":2,"b":0}`, `{"a":3}`, `1`}},
		{"anyOf beside properties", `{"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}],"additionalProperties":false}`, []string{`{"a":1}`, `{"b":1}`, `{"a":1,"b":2}`}, []string{`{}`, `{"c":1}`}},
		{"oneOf by a constant", `{"oneOf":[{"properties":{"t":{"const":"a"},"v":{"type":"integer"}},"required":["t","v"]},{"properties":{"t":{"const":"b"},"v":{"type":"string"}},"required":["t","v"]}]}`, []string{`{"t":"a","v":1}`, `{"t":"b","v":"x"}`}, []string{`{"t":"a","v":"x"}`, `{"t":"c","v":1}`, `1`}},
		{"oneOf of overlapping numbers", `{"oneOf":[{"type":"integer"},{"type":"number","minimum":2}]}`, []string{`1`, `2.5`}, []string{`3`, `3.0`, `1.5`}},
		{"oneOf of overlapping objects", `{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]}`, []string{`{"a":1}`, `{"b":1}`, `{"a":1,"c":2}`}, []string{`{}`, `{"a":1,"b":2}`}},
		{"not", `{"not":{"type":["object","array"]}}`, []string{`1`, `"x"`, `null`}, []string{`{}`, `[]`}},
		{"not required", `{"type":"object","properties":{"a":{},"b":{}},"not":{"required":["a","b"]}}`, []string{`{"a":1}`, `{"b":1}`, `{}`}, []string{`{"a":1,"b":1}`}},
		{"not closed", `{"type":"object","not":{"properties":{"a":{"type":"integer"}},"additionalProperties":false}}`, []string{`{"a":"x"}`, `{"a":1,"b":2}`, `{"b":1}`}, []string{`{}`, `{"a":1}`}},
		{"if", `{"type":"object","properties":{"kind":{"enum":["a","b"]},"v":{}},"required":["kind"],"if":{"properties":{"kind":{"const":"a"}}},"then":{"required":["v"]},"else":{"properties":{"v":false}}}`, []string{`{"kind":"a","v":1}`, `{"kind":"b"}`}, []string{`{"kind":"a"}`, `{"kind":"b","v":1}`}},
		{"dependencies", `{"type":"object","properties":{"a":{},"b":{},"c":{}},"dependentRequired":{"a":["b"]},"dependentSchemas":{"b":{"properties":{"c":{"type":"integer"}}}},"additionalProperties":false}`, []string{`{}`, `{"b":1,"c":2}`, `{"a":1,"b":1}`, `{"c":"x"}`}, []string{`{"a":1}`, `{"b":1,"c":"x"}`}},
		{"recursion", `{"$ref":"#/$defs/list","$defs":{"list":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/list"},{"type":"null"}]}},"required":["v","next"],"additionalProperties":false}}}`, []string{`{"v":1,"next":null}`, `{"v":1,"next":{"v":2,"next":null}}`}, []string{`{"v":1}`, `{"v":1,"next":{"v":2}}`}},
		{"names of schemas", `{"$id":"https://example.com/root","$defs":{"a":{"$id":"sub","$anchor":"here","type":"integer"},"b~/":{"type":"null"}},"properties":{"x":{"$ref":"sub#here"},"y":{"$ref":"#/$defs/b~0~1"},"z":{"$ref":"https://example.com/sub"}},"type":"object"}`, []string{`{"x":1,"y":null,"z":2}`}, []string{`{"x":null}`, `{"y":1}`, `{"z":""}`}},
		{"beside a reference", `{"$defs":{"a":{"type":"integer"}},"$ref":"#/$defs/a","minimum":5}`, []string{`5`}, []string{`4`, `""`}},
		{"beside a reference in draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"type":"integer"}},"properties":{"x":{"$ref":"#/definitions/a","minimum":5}}}`, []string{`{"x":4}`}, []string{`{"x":""}`}},
		{"bounds of draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"integer","minimum":5,"exclusiveMinimum":true}`, []string{`6`}, []string{`5`, `6.0`}},
		{"unevaluated", `{"type":"object","properties":{"a":{}},"anyOf":[{"properties":{"b":{"type":"integer"}},"required":["b"]},{"properties":{"c":{"type":"integer"}},"required":["c"]}],"unevaluatedProperties":false}`, []string{`{"a":1,"b":1}`, `{"b":1,"c":2}`}, []string{`{"a":1}`, `{"b":1,"d":2}`, `{"b":1,"c":"x"}`}},
		{"descriptions", `{"title":1,"description":[],"default":{},"examples":0,"deprecated":"x","x-more":{"type":"foo"},"type":"null"}`, []string{`null`}, []string{`1`}},
	}
	for _, c := range cases {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) { check(t, c.schema, Options{}, c.valid, c.invalid) })
	}
}

// What cannot be held is refused by its path and keyword.
func TestRefusals(t *testing.T) {
	cases := []struct{ schema, path, keyword string }{
		{`{"properties":{"a":{"items":{"type":"array","uniqueItems":true}}}}`, "#/properties/a/items", "uniqueItems"},
		{`{"properties":{"a/b":{"pattern":"(?<=x)y"}}}`, "#/properties/a~1b", "pattern"},
		{`{"anyOf":[{"$ref":"other.json"}]}`, "#/anyOf/0", "$ref"},
		{`{"items":{"format":"regex"}}`, "#/items", "format"},
		{`{"multipleOf":12345.6789}`, "#", "multipleOf"},
		{`{"patternProperties":{"(":{}}}`, "#", "patternProperties"},
		{`{"not":{"type":"array","uniqueItems":true}}`, "#/not", "uniqueItems"},
	}
	for _, c := range cases {
		_, err := machine(c.schema, Options{})
		if e, ok := err.(*Unsupported); !ok || e.Path != c.path || e.Keyword != c.keyword || e.Reason == "" {
			t.Errorf("%s: %v, want a refusal of %q at %s", c.schema, err, c.keyword, c.path)
		}
	}
}

func FuzzAdd(f *testing.F) {
	for _, s := range []string{`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["b"],"minProperties":2}`, `{"oneOf":[{"type":"integer"},{"minimum":3}],"not":{"enum":[1,"x"]}}`,
		`{"items":[{"const":{"a":1}}],"contains":{"pattern":"a+"},"uniqueItems":true}`, `{"if":{"required":["a"]},"then":{"unevaluatedProperties":false},"patternProperties":{"^x":false}}`,
		`{"dependencies":{"a":["b"],"c":{"maxProperties":3}},"propertyNames":{"maxLength":3}}`, `{"multipleOf":0.3,"exclusiveMinimum":-2.5,"format":"uri"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		for _, notation := range []Notation{Compact, QwenXML, Gemma} {
			m, err := machine(string(schema), Options{Notation: notation, Limits: Limits{Work: 20_000, Symbols: 20_000}})
			if err == nil {
				accepts(m, `{"a":[1,"x",null]}`)
			}
		}
	})
}
