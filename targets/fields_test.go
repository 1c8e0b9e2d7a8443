package targets

import (
	"reflect"
	"testing"
)

func TestFields(t *testing.T) {
	var want []string
	for _, s := range []struct {
		of     reflect.Type
		prefix string
	}{{reflect.TypeFor[Hardware](), ""}, {reflect.TypeFor[Feature](), "features.NAME."}} {
		for i := range s.of.NumField() {
			if key := s.of.Field(i).Tag.Get("toml"); key != "" {
				want = append(want, s.prefix+key)
			}
		}
	}
	got := Fields()
	for i, f := range got {
		if i >= len(want) || f.Key != want[i] || f.Doc == "" {
			t.Errorf("field %d: got key %q, doc %q, want keys %q, each with a doc", i, f.Key, f.Doc, want)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d fields, want %d", len(got), len(want))
	}
}
