package api

import "testing"

// What asks for nothing is let through, all else is refused by its name.
func TestForeignFields(t *testing.T) {
	refuse := func(f *Fields) {
		f.RefuseForeign()
		f.RefuseOfChats("n", "logit_bias")
		f.RefuseNames("stop_sequences", "stop")
	}
	cases := []struct{ object, want string }{
		{`{"n":1,"logit_bias":{},"stop":[],"mirostat":0,"grammar":""}`, ""}, {`{"n":null,"stop":null}`, ""}, {`{"m":1}`, ""},
		{`{"n":2}`, "n"}, {`{"n":0}`, "n"}, {`{"logit_bias":{"1":1}}`, "logit_bias"}, {`{"stop":"x"}`, "stop"}, {`{"mirostat":1}`, "mirostat"},
	}
	for _, field := range foreign {
		cases = append(cases, struct{ object, want string }{`{"` + field.name + `":null}`, ""}, struct{ object, want string }{`{"` + field.name + `":"odd"}`, field.name})
	}
	for _, c := range cases {
		f := read(t, c.object)
		refuse(f)
		got := ""
		if e := f.Err(); e != nil {
			if got = e.Field; e.Kind != KindUnsupported {
				t.Errorf("%s: got %+v", c.object, e)
			}
		}
		if got != c.want {
			t.Errorf("%s: got %q refused, want %q", c.object, got, c.want)
		}
	}
}
