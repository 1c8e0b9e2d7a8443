package optest

import (
	"bytes"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

func TestPlainFormsAreEqualWhereWeightsAre(t *testing.T) {
	codes := []byte{0x12, 0xe4, 0x56, 0x78, 0x9a, 0xbc, 0x0d, 0xf0} // of sixteen columns
	turned := []byte{0x9a, 0x6c, 0xde, 0xf0, 0x12, 0x34, 0x85, 0x78}
	for _, c := range []struct {
		name   string
		scheme op.Scheme
		a, b   []byte
		same   bool
	}{
		{"signs of codes and of a scale", op.SchemeNVFP4, append(codes[:8:8], 0xb9), append(turned[:8:8], 0x39), true},
		{"the same codes, another sign", op.SchemeNVFP4, append(codes[:8:8], 0xb9), append(codes[:8:8], 0x39), false},
		{"other codes", op.SchemeNVFP4, append(codes[:8:8], 0x39), append(turned[:8:8], 0x39), false},
		{"codes of a scale of zero", op.SchemeNVFP4, append(codes[:8:8], 0x80), append(make([]byte, 8), 0x00), true},
		{"codes of the smallest scale", op.SchemeNVFP4, append(codes[:8:8], 0x01), append(make([]byte, 8), 0x01), false},
		{"bytes of another scheme", op.SchemeF8, append(codes[:8:8], 0x80), append(make([]byte, 8), 0x00), false},
	} {
		before := bytes.Clone(c.a)
		if same := bytes.Equal(plain(c.scheme, c.a), plain(c.scheme, c.b)); same != c.same {
			t.Errorf("%s: plain forms equal %v, want %v", c.name, same, c.same)
		}
		if !bytes.Equal(before, c.a) {
			t.Errorf("%s: the checkpoint was changed", c.name)
		}
	}
}
