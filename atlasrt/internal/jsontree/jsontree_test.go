package jsontree

import (
	"strings"
	"testing"
)

func decode(t testing.TB, text string) Value {
	t.Helper()
	v, err := Decode([]byte(text), Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// What is read is written again as Python's json.dumps writes it, numbers as they were.
func TestRoundTrip(t *testing.T) {
	cases := []struct{ text, want string }{
		{`{"b":1,"a":[1.0,-0,1e400,12345678901234567890],"":null}`, `{"b": 1, "a": [1.0, -0, 1e400, 12345678901234567890], "": null}`},
		{` [ true , false , { } , [ ] ] `, `[true, false, {}, []]`},
		{`"\ud83d\ude00 \ud800x \u00e9 \n\t\r\b\f\u0001\/\"\\"`, `"😀 ` + "\ufffd" + `x é \n\t\r\b\f\u0001/\"\\"`},
		{`{"1":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":7,"8":8,"9":9,"10":{"A":1,"a":2}}`,
			`{"1": 1, "2": 2, "3": 3, "4": 4, "5": 5, "6": 6, "7": 7, "8": 8, "9": 9, "10": {"A": 1, "a": 2}}`},
	}
	for _, c := range cases {
		if got := string(Append(nil, decode(t, c.text))); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	cases := []struct{ text, want string }{
		{``, "ends too early"}, {`{`, "expected a string as key"}, {`[1`, "expected ','"}, {`{"a":1,"a":2}`, `duplicate key "a"`}, {`{"k":1,"\u006b":2}`, `duplicate key "k"`},
		{"\"\xff\"", "invalid UTF-8"}, {"\"\x01\"", "control character"}, {`"\x"`, "bad escape"}, {`"\u12"`, "bad escape"}, {`"abc`, "ends within a string"},
		{`NaN`, "unexpected"}, {`Infinity`, "unexpected"}, {`01`, "bad number"}, {`1.`, "bad number"}, {`1e`, "bad number"}, {`-`, "bad number"}, {`+1`, "unexpected"}, {`.5`, "unexpected"},
		{`{} {}`, "after the end"}, {`{"a" 1}`, "expected ':'"}, {`tru`, "unexpected"},
		{strings.Repeat("[", 65), "too deep"}, {strings.Repeat("[", 100_000), "too deep"}, {`[` + strings.Repeat("1,", 250_000) + `1]`, "too many"},
	}
	for _, c := range cases {
		if v, err := Decode([]byte(c.text), Limits{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: got %v, %v, want an error with %q", c.text, v, err, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	cases := []struct {
		text        Number
		value       int64
		whole, fits bool
		float       float64
		finite      bool
	}{
		{"1", 1, true, true, 1, true}, {"1.0", 1, true, true, 1, true}, {"1e2", 100, true, true, 100, true}, {"-0", 0, true, true, 0, true}, {"1.5", 0, false, false, 1.5, true},
		{"9223372036854775807", 1<<63 - 1, true, true, 1 << 63, true}, {"-9223372036854775808", -1 << 63, true, true, -1 << 63, true},
		{"9223372036854775808", 1<<63 - 1, true, false, 1 << 63, true}, {"9007199254740993.0", 1<<53 + 1, true, true, 1 << 53, true}, {"9007199254740993.5", 0, false, false, 9007199254740994, true},
		{"1e999", 0, true, false, 0, false}, {"1e-999", 0, true, true, 0, true}, {Number("0." + strings.Repeat("0", 5000) + "1e5019"), 0, true, false, 1e18, true}, {"1e19", 0, true, false, 1e19, true},
	}
	for _, c := range cases {
		value, whole, fits := c.text.Whole()
		float, finite := c.text.Float()
		if whole != c.whole || fits != c.fits || fits && value != c.value || finite != c.finite || finite && float != c.float {
			t.Errorf("%.40s: got %d, whole %v, fits %v, float %g, finite %v; want %d, whole %v, fits %v, float %g, finite %v", string(c.text), value, whole, fits, float, finite, c.value, c.whole, c.fits, c.float, c.finite)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, document := range []string{`{"s": "Straße 漢字 😀", "l": [3, 1.0, -0, 1e5, {}, []], "n": null}`, `["\ud83d\ude00\ud800x"]`, `{"a":1,"a":2}`, `"\u00"`, `[[[`, "\"\xff\"", `1e999`} {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		v, err := Decode(document, Limits{})
		if err != nil {
			return
		}
		text := string(Append(nil, v))
		again, err := Decode([]byte(text), Limits{})
		if err != nil {
			t.Fatalf("%q became %q: %v", document, text, err)
		}
		if twice := string(Append(nil, again)); twice != text {
			t.Fatalf("%q became %q, then %q", document, text, twice)
		}
		if n, ok := v.(Number); ok {
			n.Whole()
		}
	})
}
