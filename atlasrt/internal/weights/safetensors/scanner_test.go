package safetensors

import (
	"encoding/json"
	"fmt"
	"testing"
	"unicode/utf8"
)

func TestScannerStrings(t *testing.T) {
	cases := []struct {
		text string
		good bool
	}{
		{`"a"`, true}, {`""`, true}, {`"é\u00e9\n\"\\"`, true}, {`"\ud83d\ude00"`, true}, {` "a"`, true},
		{`"`, false}, {`"a`, false}, {`"\`, false}, {`"\"`, false}, {`"\x"`, false}, {"\"a\nb\"", false}, {`a`, false}, {``, false}, {`'a'`, false},
	}
	for _, c := range cases {
		got, err := (&scanner{text: []byte(c.text)}).string()
		var want string
		json.Unmarshal([]byte(c.text), &want)
		if (err == nil) != c.good || c.good && got != want {
			t.Errorf("%s: got %q, %v; want %q", c.text, got, err, want)
		}
	}
}

func TestScannerIntegers(t *testing.T) {
	cases := []struct{ text, want string }{ // empty: refused
		{`[]`, "[]"}, {`[ ]`, "[]"}, {`[0]`, "[0]"}, {"[1 ,\n2]", "[1 2]"}, {`[9223372036854775807]`, "[9223372036854775807]"},
		{`[9223372036854775808]`, ""}, {`[1,]`, ""}, {`[,1]`, ""}, {`[1 2]`, ""}, {`[01]`, ""}, {`[-1]`, ""}, {`[1.0]`, ""}, {`[1e3]`, ""},
		{`[1`, ""}, {`[`, ""}, {`1`, ""}, {`["1"]`, ""}, {`[null]`, ""}, {`[1,2,3,4]`, ""},
	}
	for _, c := range cases {
		got := ""
		list, err := (&scanner{text: []byte(c.text)}).integers(3)
		if err == nil {
			got = fmt.Sprint(list)
		}
		if got != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.text, got, err, c.want)
		}
	}
}

// What the scanner accepts, encoding/json accepts too, with the same keys in the same order.
func FuzzScannerObject(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1}`, `{"a":[1,2],"b\u0041":"c"}`, `{"a":1,}`, `{"a" 1}`, `{"\`, `{"":[]}x`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) { // encoding/json repairs it; a header is checked before
			return
		}
		s := &scanner{text: []byte(text)}
		var keys []string
		err := s.object(func(key string) error {
			keys = append(keys, key)
			switch s.next() {
			case '"':
				_, err := s.string()
				return err
			case '[':
				_, err := s.integers(3)
				return err
			}
			_, err := s.integer()
			return err
		})
		if err == nil {
			err = s.end()
		}
		if err != nil {
			return
		}
		var tree map[string]any
		if err := json.Unmarshal([]byte(text), &tree); err != nil {
			t.Fatalf("%q is accepted with keys %q, encoding/json says %v", text, keys, err)
		}
		for _, key := range keys {
			delete(tree, key)
		}
		if len(tree) != 0 {
			t.Fatalf("%q: keys %q lack %v", text, keys, tree)
		}
	})
}
