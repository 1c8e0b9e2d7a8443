package optest

import (
	"reflect"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

func TestTagsGiveSizes(t *testing.T) {
	linear := op.Linear{W: matrix(op.SchemeQ8_0, 5, 32), Rows: 3, OutPitch: 7}
	cache := op.RotaryCache{Rows: 2, Heads: 3, KVHeads: 1, HeadDim: 4, QKVPitch: 20, Blocks: 2, BlockSize: 8, KVType: op.BF16}
	cases := []struct {
		name  string
		call  *Case
		field string
		want  int64
	}{
		{"pitch ends with the last item", of("", linear), "Out", (2*7 + 5) * 4},
		{"field of a weight", of("", linear), "In", 3 * 32 * 4},
		{"optional", of("", linear).with("Bias"), "Bias", 5 * 4},
		{"packed", of("", linear), "W.Data", 1000},
		{"scale", of("", linear).with("W.Scale"), "W.Scale", 5 * 4},
		{"sum and product", of("", cache), "QKV", 2 * 5 * 4 * 4},
		{"type of a field", of("", cache), "K", 2 * 8 * 4 * 2},
		{"quotient", of("", op.Sample{Rows: 9, Masks: 2, Vocab: 33}).with("Mask"), "Mask", 2 * 2 * 4},
		{"nothing", of("", op.Sample{Rows: 2, Vocab: 33}), "EditToken", 0},
	}
	for _, c := range cases {
		list, err := c.call.fields(op.F32, func(op.Weight) int64 { return 1000 })
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := int64(-1)
		for _, f := range list {
			if f.name == c.field {
				got = f.bytes()
			}
		}
		if got != c.want {
			t.Errorf("%s: %s.%s has %d bytes, want %d", c.name, c.call.Op, c.field, got, c.want)
		}
	}
}

func TestTagsThatMakeNoSense(t *testing.T) {
	args := reflect.ValueOf(op.Linear{Rows: 1})
	for _, text := range []string{
		"", "maybe f32 [Rows]", "in f32", "in f32 Rows]", "in f32 [Rows", "in f32 [Rows,W.Cols:Pitch]", "in f32 [Rows+]", "in f32 [Rows:*]",
		"in f32 [Absent]", "in f32 [Out.Cols]", "in f32 [len(Rows)]", "in f32 [Rows/0]", "in f32 [Rows-2]", "in f32 [Rows,W]", "in f99 [Rows]", "in f32 [Rows:OutPitch,8]",
	} {
		tag, err := parseTag(text)
		if err == nil {
			_, err = element(tag.element, args, op.F32)
		}
		if err == nil {
			err = new(field).size(tag, args)
		}
		if err == nil {
			t.Errorf("tag %q: got no error", text)
		}
	}
}
