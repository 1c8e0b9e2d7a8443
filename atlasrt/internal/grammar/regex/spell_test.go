package regex

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// jsonCharacter spells a character as json.Marshal does, but for HTML: quotes, backslashes and controls are escaped.
func jsonCharacter(s *Set, class []rune) Ref {
	var raw []rune
	var parts []Ref
	for i := 0; i < len(class); i += 2 {
		for c := class[i]; c <= min(class[i+1], 0x7F); c++ {
			text, _ := json.Marshal(string(c))
			if len(text) == 3 {
				raw = append(raw, c, c)
			} else if c != '<' && c != '>' && c != '&' {
				parts = append(parts, s.Literal(string(text[1:len(text)-1])))
			} else {
				raw = append(raw, c, c)
			}
		}
		if class[i+1] > 0x7F {
			raw = append(raw, max(class[i], 0x80), class[i+1])
		}
	}
	return s.Or(append(parts, s.Runes(raw...))...)
}

// Patterns with another spelling of characters match the spelled texts.
func TestCharacter(t *testing.T) {
	p := patterns{Rand: rand.New(rand.NewPCG(11, 12)), ahead: true}
	all := texts([]string{"a", "_", "\n", `"`}, 4)
	for range 400 {
		pattern := p.pattern(1 + p.IntN(5))
		s := NewSet()
		plain := parse(t, s, pattern, Syntax{})
		spelled := parse(t, s, pattern, Syntax{Character: jsonCharacter})
		for _, text := range all {
			spelling := ""
			for _, c := range text {
				one, _ := json.Marshal(string(c))
				spelling += string(one[1 : len(one)-1])
			}
			if want := matches(s, plain, text); matches(s, spelled, spelling) != want {
				t.Fatalf("%q in %s: want %t", pattern, spelling, want)
			}
			if len(text) > 0 && matches(s, spelled, spelling+`"`) {
				t.Fatalf("%q matches a bare quote", pattern)
			}
		}
	}
}

// A search that has found its text is any string, whatever its characters are spelled like.
func TestSearchEnds(t *testing.T) {
	s := NewSet()
	any := s.Repeat(jsonCharacter(s, []rune{0, 0x10FFFF}), 0, -1)
	quote := s.Literal(`"`)
	for _, pattern := range []string{"a", `\d{2}-\d`, "é+x", `\n`, "[^a]b"} {
		r := parse(t, s, pattern, Syntax{Character: jsonCharacter})
		found := s.DeriveText(s.Concat(quote, r, quote), `"12-3éxa\n-b.`)
		if want := s.Concat(any, quote); found != want {
			t.Errorf("%q: the end is another expression than that of any string", pattern)
		}
	}
}
