package api

import (
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// read opens an object whose numbers n and m have ranges.
func read(t *testing.T, text string) *Fields {
	t.Helper()
	f, err := ReadObject([]byte(text), []Range{{Name: "n", Low: 1, High: 5, Whole: true}, {Name: "m", Low: 0, High: 1, LowOpen: true}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Each reader blames its field by its path, in these words.
func TestFieldsBlame(t *testing.T) {
	integer := func(f *Fields) { f.Integer("n", new(int)) }
	number := func(f *Fields) { f.GivenNumber("m") }
	stops := func(f *Fields) { f.Stops("list", f.List("list"), Limits{Stops: 2, StopBytes: 3}) }
	objects := func(f *Fields) {
		for i, entry := range f.Objects("list", f.List("list")) {
			if integer(entry); f.Err() != nil && i != 1 {
				t.Errorf("entry %d is read behind a problem", i)
			}
		}
	}
	tokens := func(f *Fields) { f.Tokens("list", f.List("list")) }
	cases := []struct {
		object string
		read   func(*Fields)
		want   string
	}{
		{`{"n":5,"m":1,"list":[-7,2147483647]}`, func(f *Fields) { integer(f); number(f); tokens(f) }, ""},
		{`{"n":null}`, integer, ""},
		{`{"n":6}`, integer, "in.n is 6, must be from 1 to 5."},
		{`{"n":1.5}`, integer, "in.n must be an integer, not a fraction."},
		{`{"n":99999999999999999999}`, integer, "in.n is 99999999999999999999, must be from 1 to 5."},
		{`{"m":0}`, number, "in.m is 0, must be more than 0 and at most 1."},
		{`{"m":"1"}`, number, "in.m must be a number, not a string."},
		{`{"list":{}}`, tokens, "in.list must be an array, not an object."},
		{`{"list":[1,"a"]}`, tokens, "in.list must hold integers; entry 1 is a string."},
		{`{"list":[2147483648]}`, tokens, "in.list holds token 2147483648, which no vocabulary has."},
		{`{"s":"c"}`, func(f *Fields) { f.Enum("s", new(string), "a", "b") }, "in.s must be one of a, b."},
		{`{"s":1}`, func(f *Fields) { f.Bool("s", new(bool)) }, "in.s must be true or false, not an integer."},
		{`{"s":true}`, func(f *Fields) { f.Refuse("s", IsFalse) }, "in.s is not supported by this server; leave it out."},
		{`{"s":false}`, func(f *Fields) { f.Refuse("s", IsFalse) }, ""},
		{`{"s":""}`, func(f *Fields) { f.Required("s") }, "in.s is required."},
		{`{"list":["a","b"]}`, stops, ""},
		{`{"list":["a",1]}`, stops, "in.list must hold strings; entry 1 is an integer."},
		{`{"list":["a",""]}`, stops, "in.list must not hold an empty string."},
		{`{"list":["abcd"]}`, stops, "in.list holds a string of 4 bytes, at most 3 are allowed."},
		{`{"list":["a","b","c"]}`, stops, "in.list has 3 entries, at most 2 are allowed."},
		{`{"list":[{"n":1},{"n":2}]}`, objects, ""},
		{`{"list":[{"n":1},{"n":6},7]}`, objects, "in.list[1].n is 6, must be from 1 to 5."},
		{`{"list":[{"n":1},7]}`, objects, "in.list[1] must be an object, not an integer."},
		{`{"s":1,"n":0}`, func(f *Fields) { f.Dict("s"); integer(f) }, "in.s must be an object, not an integer."}, // the first counts
	}
	for _, c := range cases {
		outer := read(t, `{"in":`+c.object+`}`)
		c.read(outer.Object("in"))
		got := ""
		if err := outer.Failure(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.object, got, c.want)
		}
	}
}

// What nobody asked for is left, in its order.
func TestRest(t *testing.T) {
	f := read(t, `{"z":1,"n":2,"a":null,"known":3}`)
	f.Integer("n", new(int))
	f.Ignore("known")
	var rest []string
	for name := range f.Rest() {
		rest = append(rest, name)
	}
	if !slices.Equal(rest, []string{"z", "a"}) || f.Unknown() != 2 {
		t.Errorf("got %v, %d unknown, want z and a", rest, f.Unknown())
	}
	if v, ok := f.Peek("z"); !ok || v != jsontree.Number("1") {
		t.Errorf("z is %v", v)
	}
}
