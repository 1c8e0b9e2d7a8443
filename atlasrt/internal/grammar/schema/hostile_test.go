package schema

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

func repeated(n int, part func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = part(i)
	}
	return strings.Join(parts, ",")
}

// Rows T076–T080: malformed, hostile and unbounded schemas are served or refused within bounds of work and memory.
func TestHostileSchemas(t *testing.T) {
	nested := func(n int, open, close string) string {
		return strings.Repeat(open, n) + "{}" + strings.Repeat(close, n)
	}
	cases := []struct {
		name, schema, want string // of the error; "": it is served
	}{
		{"no object", `[]`, "an object or a boolean"},
		{"text", `"x"`, "an object or a boolean"},
		{"no JSON", `{"type":`, "ends too early"},
		{"type", `{"type":"foo"}`, `names "foo"`},
		{"type of a type", `{"type":{}}`, `"type" must be`},
		{"bracket", `{"pattern":"("}`, `#: "pattern": the pattern "("`},
		{"back reference", `{"properties":{"a":{"pattern":"(a)\\1"}}}`, `#/properties/a: "pattern"`},
		{"required", `{"required":"a"}`, "an array of strings"},
		{"properties", `{"properties":[]}`, `"properties" must be an object`},
		{"negative", `{"minLength":-1}`, `"minLength" must be`},
		{"fraction", `{"maxItems":1.5}`, `"maxItems" must be`},
		{"step", `{"multipleOf":0}`, `"multipleOf" must be`},
		{"empty list", `{"anyOf":[]}`, "must not be empty"},
		{"schema of a property", `{"properties":{"a":3}}`, "#/properties/a: a schema is an object or a boolean, not an integer"},
		{"remote", `{"$ref":"https://example.com/s.json"}`, "nothing is fetched"},
		{"nowhere", `{"$ref":"#/$defs/a"}`, "nothing stands at"},
		{"no anchor", `{"$ref":"#a"}`, "no anchor"},
		{"to itself", `{"$ref":"#"}`, "refers to itself"},
		{"to each other", `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}},"$ref":"#/$defs/a"}`, "refers to itself"},
		{"never ends", `{"properties":{"a":{"$ref":"#"}},"required":["a"],"type":"object"}`, "no value satisfies"},
		{"contradiction", `{"type":"string","enum":[1,2]}`, "no value satisfies"},
		{"never", `false`, "no value satisfies"},
		{"recursion", `{"properties":{"a":{"$ref":"#"}},"type":"object"}`, ""},
		{"mutual recursion", `{"$defs":{"a":{"properties":{"b":{"$ref":"#/$defs/b"}}},"b":{"items":{"$ref":"#/$defs/a"}}},"$ref":"#/$defs/a"}`, ""},
		{"depth of 10,000", nested(10_000, `{"items":`, `}`), "nests too deep"},
		{"depth of 200", nested(200, `{"items":`, `}`), ""},
		{"depth of not", nested(200, `{"not":`, `}`), ""},
		{"items", `{"type":"array","minItems":1000000000}`, `"minItems"`},
		{"many items", `{"type":"array","minItems":1000000,"maxItems":1000000000}`, ""},
		{"length", `{"type":"string","minLength":1000,"maxLength":1000000}`, ""},
		{"number", `{"minimum":1e999999999}`, `"minimum"`},
		{"small number", `{"const":1e-999999999}`, `"const"`},
		{"nested counts", `{"type":"string","pattern":"((a{1,100000}){1,100000}){1,100000}"}`, "?"},
		{"10,000 alternatives", `{"anyOf":[` + repeated(10_000, func(i int) string {
			return fmt.Sprintf(`{"properties":{"p%d":{"type":"string"}},"required":["p%d"]}`, i, i)
		}) + `]}`, ""},
		{"10,000 exclusive alternatives", `{"oneOf":[` + repeated(10_000, func(i int) string { return fmt.Sprintf(`{"properties":{"p%d":{"type":"string"}}}`, i) }) + `]}`, "more work than is granted"},
		{"10,000 exclusive constants", `{"oneOf":[` + repeated(10_000, func(i int) string { return fmt.Sprintf(`{"const":"c%d"}`, i) }) + `]}`, ""},
		{"100,000 values", `{"enum":[` + repeated(100_000, func(i int) string { return strconv.Quote("value" + strconv.Itoa(i)) }) + `]}`, ""},
		{"1,000,000 values", `{"enum":[` + repeated(1_000_000, func(i int) string { return strconv.Itoa(i) }) + `]}`, "too many values"},
		{"5,000 properties", `{"type":"object","properties":{` + repeated(5_000, func(i int) string { return fmt.Sprintf(`"property%d":{"type":"integer"}`, i) }) + `},"additionalProperties":false}`, ""},
		{"5,000 properties counted", `{"type":"object","minProperties":2500,"properties":{` + repeated(5_000, func(i int) string { return fmt.Sprintf(`"property%d":{"type":"integer"}`, i) }) + `}}`, `"minProperties"`},
		{"1,000 dependencies", `{"dependentRequired":{` + repeated(1_000, func(i int) string { return fmt.Sprintf(`"a%d":["b%d"]`, i, i) }) + `}}`, "more work than is granted"},
		{"30 patterns", `{"patternProperties":{` + repeated(30, func(i int) string { return fmt.Sprintf(`"%c.*%c":{"minLength":%d}`, 'a'+i%26, 'b'+i%24, i) }) + `}}`, "more work than is granted"},
		{"chain of references", `{"$defs":{` + repeated(20_000, func(i int) string { return fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, i+1) }) + `,"d20000":{"type":"null"}},"$ref":"#/$defs/d0"}`, ""},
		{"alternatives in alternatives", `{"allOf":[` + repeated(20, func(i int) string {
			return fmt.Sprintf(`{"anyOf":[{"required":["a%d"]},{"required":["b%d"]},{"minProperties":%d}]}`, i, i, i)
		}) + `]}`, "more work than is granted"},
		{"opposites of alternatives", `{"not":{"anyOf":[` + repeated(40, func(i int) string {
			return fmt.Sprintf(`{"properties":{"a%d":{"type":"object"},"b%d":{"type":"array"}},"required":["c%d"]}`, i, i, i)
		}) + `]}}`, "?"},
	}
	for _, c := range cases {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := machine(c.schema, Options{})
		runtime.ReadMemStats(&after)
		got := ""
		if err != nil {
			got = err.Error()
			var invalid *Invalid
			var unsupported *Unsupported
			var unsatisfiable *Unsatisfiable
			if !errors.As(err, &invalid) && !errors.As(err, &unsupported) && !errors.As(err, &unsatisfiable) {
				t.Errorf("%s: the error %q is not of this package", c.name, err)
			}
		}
		if c.want == "" && got != "" || c.want != "?" && !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 512<<20 {
			t.Errorf("%s: %d MiB allocated", c.name, used>>20)
		}
		if len(got) > 1000 {
			t.Errorf("%s: an error of %d bytes", c.name, len(got))
		}
		if testing.Verbose() {
			t.Logf("%s: %d MiB, %.100s", c.name, (after.TotalAlloc-before.TotalAlloc)>>20, got)
		}
	}
}

// Work and symbols grow with the schema, and not faster.
func TestWorkIsLinear(t *testing.T) {
	integer := func(i int) string { return fmt.Sprintf(`"p%d":{"type":"integer","minimum":%d}`, i, 1000+i) }
	cases := map[string]func(n int) string{
		"properties": func(n int) string {
			return `{"type":"object","properties":{` + repeated(n, integer) + `},"required":["p1"],"additionalProperties":false}`
		},
		"required": func(n int) string {
			return `{"type":"object","required":[` + repeated(n, func(i int) string { return fmt.Sprintf(`"p%d"`, i) }) + `],"allOf":[{"properties":{` + repeated(n, integer) + `}}]}`
		},
		"alternatives": func(n int) string {
			return `{"anyOf":[` + repeated(n, func(i int) string { return `{"type":"object","properties":{` + integer(i) + `}}` }) + `]}`
		},
		"values": func(n int) string {
			return `{"enum":[` + repeated(n, func(i int) string { return fmt.Sprintf(`"v%d",%d`, i, i) }) + `]}`
		},
		"tuples": func(n int) string {
			return `{"prefixItems":[` + repeated(n, func(int) string { return `{"type":"string"}` }) + `]}`
		},
		"references": func(n int) string {
			return `{"$defs":{` + repeated(n, func(i int) string {
				return fmt.Sprintf(`"d%d":{"properties":{"next":{"$ref":"#/$defs/d%d"}}}`, i, (i+1)%n)
			}) + `},"$ref":"#/$defs/d0"}`
		},
	}
	for name, schema := range cases {
		cost := func(n int) (work, symbols, expressions int) {
			b := rules.NewBuilder()
			root, err := jsontree.Decode([]byte(schema(n)), jsontree.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			options := Options{}
			options.Limits.fill()
			_, c := compile(b, root, options, false)
			if c.err != nil {
				t.Fatalf("%s: %v", name, c.err)
			}
			return c.work, b.Size(), b.Regexes.Size()
		}
		work, symbols, expressions := cost(500)
		work2, symbols2, expressions2 := cost(1000)
		if 10*work2 > 22*work || 10*symbols2 > 22*symbols || 10*expressions2 > 24*expressions {
			t.Errorf("%s: twice the schema takes %d and %d steps, %d and %d symbols, %d and %d expressions", name, work, work2, symbols, symbols2, expressions, expressions2)
		}
	}
}
