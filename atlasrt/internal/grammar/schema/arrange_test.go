package schema

import (
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

func TestArrange(t *testing.T) {
	const (
		tree = `{"$defs":{"t":{"properties":{"name":{"type":"string"},"below":{"items":{"$ref":"#/$defs/t"}}},"required":["name"],"additionalProperties":false}},"$ref":"#/$defs/t"}`
		two  = `{"oneOf":[{"properties":{"a":{},"kind":{"const":1}},"required":["kind"]},{"properties":{"kind":{"const":2},"a":{}},"required":["kind"]}]}`
	)
	for _, c := range []struct{ schema, value, want string }{
		{`{"properties":{"a":{},"b":{}}}`, `{"z":1,"b":2,"y":3,"a":4}`, `{"a":4,"b":2,"z":1,"y":3}`},
		{`{"properties":{"a":{},"b":{}},"additionalProperties":false}`, `{"z":1,"b":2}`, ""},
		{tree, `{"below":[{"below":[],"name":"y"}],"name":"x"}`, `{"name":"x","below":[{"name":"y","below":[]}]}`},
		{tree, `{"below":[{"below":[]}],"name":"x"}`, ""},
		{two, `{"a":0,"kind":2}`, `{"kind":2,"a":0}`},
		{two, `{"kind":1,"a":0}`, `{"a":0,"kind":1}`},
		{two, `{"kind":3,"a":0}`, ""},
		{`{"properties":{"a":{}},"required":["z","a"]}`, `{"y":0,"z":1,"a":2}`, `{"a":2,"z":1,"y":0}`},
		{`{"not":{"additionalProperties":{"type":"string"}},"properties":{"a":{}}}`, `{"y":0,"a":"x"}`, `{"a":"x","y":0}`},
		{`{"not":{"additionalProperties":{"type":"string"}},"properties":{"a":{}}}`, `{"y":"0","a":"x"}`, ""},
		{`{"contains":{"type":"object","required":["a"]},"items":{"properties":{"b":{},"a":{}}},"maxItems":2}`, `[{"a":1,"b":2},3]`, `[{"b":2,"a":1},3]`},
		{`{"contains":{"type":"object","required":["a"]}}`, `[{"b":2},3]`, ""},
		{`{"items":{"enum":[1,2]},"uniqueItems":true}`, `[1,2]`, `[1,2]`},
		{`{"items":{"enum":[1,2]},"uniqueItems":true}`, `[1,1]`, ""},
		{`{"type":["null","boolean"]}`, `null`, `null`},
		{`{"enum":[true]}`, `false`, ""},
		{`{"minProperties":1,"maxProperties":1,"type":"object"}`, `{}`, ""},
		{`{"minProperties":1,"maxProperties":1,"type":"object"}`, `{"a":1e500,"b":1}`, ""},
		{`{"type":"object","patternProperties":{"^x":{"maximum":3}}}`, `{"x":4}`, ""},
	} {
		v, err := jsontree.Decode([]byte(c.value), jsontree.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		arranged, ok, err := Arrange([]byte(c.schema), v, Limits{})
		if err != nil || ok != (c.want != "") {
			t.Errorf("%s: %s: got %t, %v", c.schema, c.value, ok, err)
			continue
		}
		if !ok {
			continue
		}
		got := string(jsontree.AppendDumps(nil, arranged, jsontree.Compact))
		if got != c.want {
			t.Errorf("%s: %s: got %s, want %s", c.schema, c.value, got, c.want)
		}
		check(t, c.schema, Options{}, []string{got}, nil)
	}
}

// An object of which every order is one of a grammar's but for the first member is arranged without a look at orders: there are 2^40.
func TestArrangeLooksAtNoOrders(t *testing.T) {
	schema, value := []byte(`{"properties":{"k":{"const":1}`), []byte(`{"z":0`)
	for c := range byte(40) {
		name := string([]byte{'a' + c/8, 'a' + c%8})
		schema = append(schema, `,"`+name+`":{}`...)
		value = append(value, `,"`+name+`":0`...)
	}
	schema, value = append(schema, `},"required":["k"]}`...), append(value, '}')
	for _, c := range []struct {
		before string
		ok     bool
	}{{`{"z":0`, false}, {`{"k":1,"z":0`, true}, {`{"k":2,"z":0`, false}} {
		v, err := jsontree.Decode(append([]byte(c.before), value[len(`{"z":0`):]...), jsontree.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok, err := Arrange(schema, v, Limits{Work: 10_000}); ok != c.ok || err != nil {
			t.Errorf("%s…: got %t, %v", c.before, ok, err)
		}
	}
}
