package regex

import "testing"

func TestFirstHasEveryByteThatBegins(t *testing.T) {
	s := NewSet()
	for _, pattern := range append(forkCases, `abc`, `[^x]y`, `(?!a)[a-c]b`, `(a?){3}b?c`, `((((a|b)|c)|d)|e)|f`, `a*b*c*d`) {
		r, err := s.Parse(pattern, Syntax{Anchored: true})
		if err != nil {
			t.Fatal(pattern, err)
		}
		for range 6 {
			first := s.First(r)
			begins := 0
			for b := range 256 {
				if s.Derive(r, byte(b)) == Nothing {
					continue
				}
				begins++
				if !first.Has(byte(b)) {
					t.Errorf("%s: %q begins a text and is not in First", pattern, byte(b))
				}
			}
			if b, only := first.Only(); only && (begins > 1 || begins == 1 && s.Derive(r, b) == Nothing) {
				t.Errorf("%s: only %q is in First", pattern, b)
			}
			next := s.Derive(r, 'a')
			if next == Nothing {
				next = s.Derive(r, 'b')
			}
			r = next
		}
	}
	if b, only := s.First(s.Literal("xyz")).Only(); !only || b != 'x' {
		t.Errorf("a literal begins with %q, %v", b, only)
	}
}
