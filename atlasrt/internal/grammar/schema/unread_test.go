package schema

import (
	"slices"
	"testing"
)

func TestFindUnread(t *testing.T) {
	cases := []struct {
		schema string
		want   []string // what is unread
	}{
		{`{"type":"string","format":"uri","title":"t","x-order":1,"maxLength":3}`, nil},
		{`{"properties":{"maxLenght":{"type":"string","maxLenght":3}}}`, []string{`at #/properties/maxLenght: nothing is known of the keyword "maxLenght": it asks nothing`}},
		{`{"anyOf":[{},{"items":{"format":"phone"}}]}`, []string{`at #/anyOf/1/items: nothing is known of the format "phone": it asks nothing`}},
		{`{"$schema":"https://example.com/own"}`, []string{`at #: nothing is known of the edition "https://example.com/own": the schema is read as one of draft 2020-12`}},
		{`{"$schema":"http://json-schema.org/draft-07/schema#"}`, nil},
		{`{"enum":[{"maxLenght":3}],"const":{"format":"phone"},"default":{"maxLenght":1},"required":["maxLenght"]}`, nil},
		{`{"$defs":{"a/b":{"discriminator":{"propertyName":"x"}}}}`, []string{`at #/$defs/a~1b: nothing is known of the keyword "discriminator": it asks nothing`}},
		{`true`, nil},
		{`{`, nil},
	}
	for _, c := range cases {
		var got []string
		for _, u := range FindUnread([]byte(c.schema), Limits{}) {
			got = append(got, u.Error())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.schema, got, c.want)
		}
	}
}
