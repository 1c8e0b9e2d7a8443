package jsontree

import "testing"

// What is wanted is what Python 3.11 printed.
func TestDumps(t *testing.T) {
	cases := []struct {
		text       string
		separators Separators
		want       string
	}{
		{`[0, -0, 0.0, -0.0, 1e-5, 1E-4, 0.0001234, 1e15, 1e16, 123456789012345678, 1.5E300, 1e22, 9007199254740993.0, 5e-324]`, Compact,
			`[0,0,0.0,-0.0,1e-05,0.0001,0.0001234,1000000000000000.0,1e+16,123456789012345678,1.5e+300,1e+22,9007199254740992.0,5e-324]`},
		{`[2.5, 100000000000000000000000000000000, 1e400, -1e400, 0.1, 1E5, 3.0e0, 1.7976931348623157e308]`, Compact,
			`[2.5,100000000000000000000000000000000,Infinity,-Infinity,0.1,100000.0,3.0,1.7976931348623157e+308]`},
		{`[123456789.123456789, 9999999999999998.0, 99999999999999980.0, 1e-400]`, Compact,
			`[123456789.12345679,9999999999999998.0,9.999999999999998e+16,0.0]`},
		{`["\u0000\u001f\u007f\u0080\u2028\/\"\\\b\f\n\r\t\ud83d\ude00é",{"a":[],"b":{},"c":null,"d":[true,false]}]`, Compact,
			"[\"\\u0000\\u001f\x7f\u0080\u2028/\\\"\\\\\\b\\f\\n\\r\\t😀é\",{\"a\":[],\"b\":{},\"c\":null,\"d\":[true,false]}]"},
		{` { "a" : [ 1 , { "b" : 2.50 } ] , "c" : "" } `, Spaced, `{"a": [1, {"b": 2.5}], "c": ""}`},
	}
	for _, c := range cases {
		v, err := Decode([]byte(c.text), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(AppendDumps(nil, v, c.separators)); got != c.want {
			t.Errorf("%s: got\n%s, want\n%s", c.text, got, c.want)
		}
	}
}
