package api

import (
	"slices"
	"testing"
)

// What asks for nothing is let through, all else is refused by its name.
func TestForeignFields(t *testing.T) {
	refuse := func(f *Fields) {
		f.RefuseForeign()
		f.RefuseOfChats("messages")
		f.RefuseNames("stop_sequences", "stop")
		f.RefuseLimits("max_tokens", "max_completion_tokens")
	}
	cases := []struct{ object, want string }{
		{`{"n":1,"logit_bias":{},"stop":[],"mirostat":0,"grammar":""}`, ""}, {`{"n":null,"stop":null}`, ""}, {`{"m":1}`, ""},
		{`{"min_tokens":0,"skip_special_tokens":true,"echo":false,"best_of":1,"min_length":0,"messages":[]}`, ""}, {`{"messages":[{}]}`, "messages"},
		{`{"skip_special_tokens":false}`, "skip_special_tokens"}, {`{"add_generation_prompt":false}`, "add_generation_prompt"}, {`{"stop_token_ids":[1]}`, "stop_token_ids"},
		{`{"min_new_tokens":1}`, "min_new_tokens"}, {`{"n_predict":5}`, "n_predict"}, {`{"max_length":5}`, "max_length"},
		{`{"n":2}`, "n"}, {`{"n":0}`, "n"}, {`{"logit_bias":{"1":1}}`, "logit_bias"}, {`{"stop":"x"}`, "stop"}, {`{"mirostat":1}`, "mirostat"},
	}
	for _, field := range slices.Concat(foreign, ofChats) {
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
