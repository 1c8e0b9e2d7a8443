package regex

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// walk derives by a text over and over, and reports the steps.
func walk(s *Set, r Ref, text string, times int) int {
	before := s.Steps()
	for range times {
		for i := range len(text) {
			s.Classes(r)
			r = s.Derive(r, text[i])
		}
	}
	return s.Steps() - before
}

// Twice the text takes at most a little more than twice the steps, and counts are not copied.
func TestStepsAreLinear(t *testing.T) {
	words := make([]string, 2000)
	for i := range words {
		words[i] = fmt.Sprintf("word %d of the list", i*7919%100003)
	}
	for _, c := range []struct {
		pattern, text string
		most          int // steps a byte
	}{
		{`^.{0,10000}$`, "aé", 20},
		{`^(?:\S+\s+){0,9999}\S+$`, "ab ", 60},
		{`^([\w\/ \.-]*)*x$`, "ab", 20},
		{`^(a|aa)*b$`, "a", 20},
		{`^(([a-z0-9._-]+)+)+@`, "a", 20},
		{`^((?!foo).)*$`, "fo", 100},
		{`(x+x+)+y`, "x", 60},
		{`^((a{1,1000}){1,1000}){1,1000}$`, "a", 20},
		{`^(((a{1,1000}b){1,1000}c){1,1000}d){1,1000}$`, "ab", 60},
		{`^(.{1,63}\.){1,127}$`, "abcdefgh.", 600},
		{`^(` + strings.Join(words, "|") + `)$`, "word 7919 of the list", 60},
		{`[aA][12].*[zZ]`, "a1z", 60},
	} {
		s := NewSet()
		r := parse(t, s, c.pattern, Syntax{})
		size := s.Size()
		if size > 300+len(c.pattern)/10 {
			t.Errorf("%.40q: %d expressions before any text", c.pattern, size)
		}
		n := 2000 / len(c.text)
		first := walk(s, r, c.text, n)
		s = NewSet()
		second := walk(s, parse(t, s, c.pattern, Syntax{}), c.text, 2*n)
		if second > 2*first+first/5 || first > c.most*n*len(c.text) {
			t.Errorf("%.40q: %d steps for %d bytes, %d for twice as many", c.pattern, first, n*len(c.text), second)
		}
	}
}

// Hostile patterns are refused or read within bounds.
func TestHostile(t *testing.T) {
	for name, pattern := range map[string]string{
		"brackets":         strings.Repeat("(", 30000),
		"nested counts":    "(" + strings.Repeat("(?:", 100) + "a" + strings.Repeat("){1,99999}", 100) + ")",
		"nested gaps":      strings.Repeat("(?:", 100) + "a" + strings.Repeat("b?){2,99999}", 100),
		"optional parts":   strings.Repeat("a?", 15000) + strings.Repeat("a", 15000),
		"optional letters": strings.Repeat("a?b?", 8000),
		"alternatives":     strings.Repeat("a|", 30000),
		"alternating ends": strings.Repeat("(a|bc)", 8000),
		"nested ends":      strings.Repeat("(?:", 190) + "a|b" + strings.Repeat("c|de)(?:f|g+)", 190),
		"properties":       "[" + strings.Repeat(`\p{L}`, 10000) + "]",
		"folded":           "(?i)" + strings.Repeat(`[^a-c]`, 9000),
		"many properties":  strings.Repeat(`\p{L}\P{Lu}`, 5000),
		"look-ahead":       strings.Repeat("(?=a", 150) + strings.Repeat(")", 150),
		"look-aheads":      strings.Repeat("(?=.*a)(?!b.*c)", 3000) + ".*",
		"nested loops":     strings.Repeat("(?:", 150) + "^a$|b" + strings.Repeat(")*", 150),
		"nested unrolls":   strings.Repeat("(?:", 150) + "^a$|b" + strings.Repeat("){2,3}", 150),
		"boundaries":       strings.Repeat(`\b\w+\b.`, 5000),
		"exact distance":   "(a|b)*a(a|b){2000}c",
		"dots":             strings.Repeat(".*a", 10000),
	} {
		s := NewSet()
		r, err := s.Parse(pattern, Syntax{})
		if refused := (*Error)(nil); err != nil && !errors.As(err, &refused) {
			t.Errorf("%s: %v is no *Error", name, err)
		}
		if err == nil {
			walk(s, r, "ab", 20)
		}
		t.Logf("%s: %d steps, %d bytes, %v", name, s.Steps(), s.Memory(), err)
		if s.Steps() > 2*maxWork || s.Memory() > 128<<20 {
			t.Errorf("%s: %d steps, %d bytes", name, s.Steps(), s.Memory())
		}
	}
}

// A question that is too large fails, and others go on.
func TestBudget(t *testing.T) {
	s := NewSet()
	s.Budget = 10000
	a := parse(t, s, `^(a|b)*a(a|b){12}$`, Syntax{})
	b := parse(t, s, `^(a|b)*a(a|b){12}(a|b)?$`, Syntax{})
	if _, err := s.Covers(b, a); !errors.Is(err, ErrBudget) {
		t.Errorf("got %v, want ErrBudget", err)
	}
	if some, err := s.Alive(s.And(a, s.Not(s.Literal("a")))); err != nil || !some {
		t.Errorf("got %t, %v", some, err)
	}
	s.Budget = 1 << 24
	if all, err := s.Covers(b, a); err != nil || !all {
		t.Errorf("got %t, %v", all, err)
	}
}

// What an expression may end with is found once, and not again for each that comes of it.
func TestAliveIsTakenFromOthers(t *testing.T) {
	s := NewSet()
	r := parse(t, s, `^(?!.*://)(?=.{1,255}$)((.{1,63}\.){1,127}(?![0-9]*$)[a-z0-9-]+\.?)$`, Syntax{})
	s.Budget = 1 << 15
	before := s.Steps()
	text := strings.Repeat("some-name.of-a-host.", 12)
	for i := range len(text) {
		r = s.Derive(r, text[i])
		if some, err := s.Alive(r); err != nil || !some {
			t.Fatalf("behind %d bytes: got %t, %v", i+1, some, err)
		}
	}
	if steps := s.Steps() - before; steps > 3000*len(text) {
		t.Errorf("%d steps for %d bytes", steps, len(text))
	}
}

// Any pattern gives an expression or an error, and derivatives keep within bounds.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`^(?!a)[^b-d]{2,5}\b(?i:x|y)*?$`, `\p{L}+(?=.\u00e9)\x41|[]\cA`, `((a{3,}|b)*c?){0,7}`} {
		f.Add(seed, "abcé")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 200 || len(text) > 50 {
			return
		}
		s := NewSet()
		s.Budget = 1 << 16
		r, err := s.Parse(pattern, Syntax{})
		if err != nil {
			var refused *Error
			if !errors.As(err, &refused) || refused.Position < 0 || refused.Position > len(pattern) || refused.Reason == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		whole, err := s.Parse(pattern, Syntax{Anchored: true})
		if err != nil {
			t.Fatalf("refused when anchored: %v", err)
		}
		if s.Nullable(s.DeriveText(whole, text)) && !s.Nullable(s.DeriveText(r, text)) {
			t.Fatalf("%q is matched as a whole and has no match", text)
		}
		if some, err := s.Alive(s.And(whole, s.Not(r))); err == nil && some {
			t.Fatal("a text is matched as a whole and has no match")
		}
		if valid, err := s.Covers(s.Text(), r); err == nil && !valid {
			t.Fatal("a text that is no valid UTF-8 is matched")
		}
		if s.Steps() > maxWork {
			t.Fatalf("%d steps", s.Steps())
		}
	})
}
