package match

import (
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
)

func TestEveryCharacterHasOneKind(t *testing.T) {
	s := regex.NewSet()
	var all []regex.Ref
	for k := kinds(1); k < anyText; k <<= 1 {
		all = append(all, k.character(s))
	}
	if covers, err := s.Covers(s.Or(all...), s.NotRunes()); err != nil || !covers {
		t.Errorf("the kinds together are not all characters: %v", err)
	}
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if r >= 0xD800 && r <= 0xDFFF || r > 0x3100 && r < 0xFE00 || r > 0x1FFFF && r < utf8.MaxRune {
			continue
		}
		k := kindOf(r)
		if k == 0 || k&(k-1) != 0 {
			t.Fatalf("%q has the kinds %b", r, k)
		}
		if end := s.DeriveText(k.character(s), string(r)); end != regex.Empty {
			t.Fatalf("%q is not matched by its kind %b", r, k)
		}
		if white := unicode.Is(unicode.White_Space, r) || r == 0xFEFF; r >= 0x80 && white != (k == odd) {
			t.Errorf("%q is white space: %v, and odd: %v", r, white, k == odd)
		}
		if !k.begins(string(r)[0]) {
			t.Errorf("%q does not begin with a byte of its kind", r)
		}
	}
}

func TestKindsOfTexts(t *testing.T) {
	cases := []struct {
		text   string
		want   kinds
		prefix int // of jsonText
	}{
		{"abC", lower | upper, 3},
		{" a\"b", blank | lower | quotes, 2},
		{"é\u3000x", foreign | odd | lower, 6},
		{"a\xc3", lower | foreign, 1},
		{"\xa9", noText, 0},
		{"\xff<end>\xfe", noText, 0},
		{"\t", control, 0},
		{"\xef\xbf\xbd", foreign, 3},
	}
	for _, c := range cases {
		if got := kindsOf([]byte(c.text)); got != c.want {
			t.Errorf("%q has the kinds %b, want %b", c.text, got, c.want)
		}
		if got := jsonText.prefix([]byte(c.text)); got != c.prefix {
			t.Errorf("%q begins with %d bytes that JSON strings may have, want %d", c.text, got, c.prefix)
		}
	}
}
