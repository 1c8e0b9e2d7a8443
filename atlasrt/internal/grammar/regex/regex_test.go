package regex

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// matches reports whether r matches a text, and that the laws of derivatives hold on the way.
func matches(s *Set, r Ref, text string) bool { return s.Nullable(s.DeriveText(r, text)) }

func parse(t *testing.T, s *Set, pattern string, syntax Syntax) Ref {
	t.Helper()
	r, err := s.Parse(pattern, syntax)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// texts are all texts of some characters, up to a length.
func texts(alphabet []string, length int) []string {
	all := []string{""}
	for from := 0; length > 0; length-- {
		to := len(all)
		for _, t := range all[from:to] {
			for _, c := range alphabet {
				all = append(all, t+c)
			}
		}
		from = to
	}
	return all
}

// patterns makes random patterns.
type patterns struct {
	*rand.Rand
	ahead bool // with look-ahead
}

func (p patterns) pattern(depth int) string {
	if depth == 0 {
		return p.pick("a", "b", "c", "é", "_", "[ab]", "[^a]", ".", `\w`, `\W`, "[b-é]", "", "ab", `[^\w]`, `["\n]`)
	}
	switch p.IntN(12) {
	case 0, 1:
		return p.pattern(depth-1) + "|" + p.pattern(depth-1)
	case 2, 3, 4:
		return p.pattern(depth-1) + p.pattern(depth-1)
	case 5, 6, 7:
		return "(?:" + p.pattern(depth-1) + ")" + p.pick("*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?", "{3,4}")
	case 8:
		return p.pick("^", "$", `\b`, `\B`, "") + p.pattern(depth-1)
	case 9:
		return p.pattern(depth-1) + p.pick("^", "$", `\b`, `\B`, "")
	case 10:
		if p.ahead {
			return p.pick("(?=", "(?!") + p.pattern(depth-1) + ")" + p.pattern(depth-1)
		}
	}
	return "(" + p.pattern(depth-1) + ")"
}

func (p patterns) pick(from ...string) string { return from[p.IntN(len(from))] }

// Patterns match what they match in Go.
func TestGo(t *testing.T) {
	p := patterns{Rand: rand.New(rand.NewPCG(1, 2))}
	all := texts([]string{"a", "b", "_", "é"}, 4)
	for range 1000 {
		pattern := p.pattern(1 + p.IntN(5))
		inner := "(?s:" + pattern + ")"
		search := regexp.MustCompile(inner)
		whole := regexp.MustCompile(`\A(?:` + inner + `)\z`)
		s := NewSet()
		found, err := s.Parse(pattern, Syntax{DotAll: true})
		if err != nil {
			t.Fatal(err)
		}
		exact, err := s.Parse(pattern, Syntax{DotAll: true, Anchored: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range all {
			// \b of Go is about ASCII, as that of ECMA-262 is.
			if want := search.MatchString(text); matches(s, found, text) != want {
				t.Fatalf("%q in %q: want %t", pattern, text, want)
			}
			if want := whole.MatchString(text); matches(s, exact, text) != want {
				t.Fatalf("%q matches %q as a whole: want %t", pattern, text, want)
			}
		}
	}
}

// Patterns with look-ahead match what going through all ways says.
func TestLookAhead(t *testing.T) {
	p := patterns{Rand: rand.New(rand.NewPCG(3, 4)), ahead: true}
	all := texts([]string{"a", "b", "_", "é"}, 4)
	for range 1000 {
		pattern := p.pattern(1 + p.IntN(6))
		s := NewSet()
		found := parse(t, s, pattern, Syntax{})
		exact := parse(t, s, pattern, Syntax{Anchored: true})
		reading := parser{pattern: pattern}
		root := reading.parse()
		for _, text := range all {
			w := walker{[]rune(text)}
			ways := w.ends(root, 1)
			if want := ways>>len(w.text)&1 != 0; matches(s, exact, text) != want {
				t.Fatalf("%q matches %q as a whole: want %t", pattern, text, want)
			}
			if want := w.ends(root, w.all()) != 0; matches(s, found, text) != want {
				t.Fatalf("%q in %q: want %t", pattern, text, want)
			}
		}
	}
}

// walker goes through a tree on a short text. Sets of places in it are bits.
type walker struct{ text []rune }

func (w walker) all() uint { return 1<<(len(w.text)+1) - 1 }

func (w walker) isWord(i int) bool { return i >= 0 && i < len(w.text) && contains(word, w.text[i]) }

// ends are the places to which a tree leads from some others.
func (w walker) ends(t *tree, from uint) (to uint) {
	for i := 0; i <= len(w.text); i++ {
		if from>>i&1 == 0 {
			continue
		}
		here := false
		switch t.op {
		case opEmpty:
			here = true
		case opClass:
			if i < len(w.text) && contains(t.class, w.text[i]) {
				to |= 1 << (i + 1)
			}
		case opConcat:
			at := uint(1) << i
			for _, sub := range t.subs {
				at = w.ends(sub, at)
			}
			to |= at
		case opUnion:
			for _, sub := range t.subs {
				to |= w.ends(sub, 1<<i)
			}
		case opRepeat:
			at := uint(1) << i
			for n := 0; n <= max(t.hi, t.lo+len(w.text)+1) && at != 0; n++ {
				if n >= t.lo && (t.hi < 0 || n <= t.hi) {
					to |= at
				}
				at = w.ends(t.subs[0], at)
			}
		case opStart:
			here = i == 0
		case opEnd:
			here = i == len(w.text)
		case opBoundary:
			here = (w.isWord(i-1) != w.isWord(i)) != t.not
		case opAhead:
			here = (w.ends(t.subs[0], 1<<i) != 0) != t.not
		}
		if here {
			to |= 1 << i
		}
	}
	return to
}

func TestSyntax(t *testing.T) {
	for _, c := range []struct{ pattern, yes, no string }{ // texts are between blanks; · is a blank, and ε the empty text
		{`^a$`, "a", "ε b aa ba ab"},
		{`a`, "a ba ab", "ε b"},
		{`^(?!.*--)[a-z-]+$`, "a-b a-", "a--b ε --"},
		{`^((?!foo).)*$`, "ε fo f·o fofo bar", "foo xfoo foox"},
		{`\d\d`, "12 a123", "1 1a2 ١٢"},
		{`^\s$`, "· \u00a0 \u2003 \ufeff", "a ε \u200b"},
		{`^\S$`, "a é", "· \u00a0"},
		{`^.$`, "a é 😀", "\n \r \u2028 \u2029 ab"},
		{`(?s)^.$`, "a \n", "ε"},
		{`^\p{L}+$`, "aé Ωж", "1 a1"},
		{`^\p{Letter}$`, "a", "1"},
		{`^\p{digit}+$`, "42 ४२", "-%# a"},
		{`^\p{Script=Greek}+$`, "αβγ", "a"},
		{`^\p{sc=Grek}+$`, "αβγ", "a"},
		{`^\P{L}$`, "1", "a é"},
		{`^\p{^L}$`, "1", "a é"},
		{`^\pL$`, "é", "1"},
		{`^[\p{Lu}\d]+$`, "A1É", "a"},
		{`^[^\p{Lu}\d]+$`, "a", "A 1"},
		{`^\u00e9\x41\u{1F600}\uD83D\uDE00\cJ$`, "éA😀😀\n", "a"},
		{`(?i)^straße$`, "STRAßE straße", "STRASSE"},
		{`(?i)^[k]$`, "k K K", "s"},
		{`(?i)^[^k]$`, "s", "k K K"},
		{`^(?i:a)b$`, "ab Ab", "AB aB"},
		{`^a(?i)b$`, "ab aB", "AB Ab"},
		{`(?i)^a(?-i:b)$`, "ab Ab", "AB aB"},
		{`^[a-]$`, "a -", "b"},
		{`^[\w-]+$`, "a-b", "a.b"},
		{`^[\w-.]+$`, "a-.b", "a,b"},
		{`^[a-\d]+$`, "a-1", "b"},
		{`^[]$`, "", "ε a ]"},
		{`^[^]$`, "a \n é", "ε ab"},
		{`^[[a-z]*]$`, "[a] a] ]", "a ε"},
		{`^{{x}}$`, "{{x}}", "x"},
		{`^a{2}$`, "aa", "a aaa"},
		{`^a{2,}$`, "aa aaa", "a"},
		{`^a{,x}$`, "a{,x}", "a"},
		{`^\/\.\-\_\#\"$`, `/.-_#"`, "a"},
		{`a|^b|c$|^$`, "xa b bx xc ε", "xb cx"},
		{`^(?:a|b$)*c?$`, "ε a ab aac", "ba bc"},
		{`\bfoo\b`, "foo a·foo foo,", "afoo foob foo_"},
		{`\Bfoo`, "afoo", "foo ·foo"},
		{`^(?<year>\d{4})-(?P<month>\d\d)$`, "2024-01", "2024-1"},
		{`^(?=.{2,3}$)[a-z]+$`, "ab abc", "a abcd"},
		{`^(?:(?=a)\w|b){2}$`, "ab ba aa bb", "ca a"},
		{`x^`, "", "x ε"},
		{`$x`, "", "x ε"},
		{`^\A^a\z$`, "a", "ba"},
		{`(?=a)b|(?!a)a`, "", "a b ab"},
		{`[\b]`, "\b", "b"},
		{`^([^,]|$)`, "ε a ab", ","},
		{`^(.{1,63}\.){1,127}x$`, "a.x a.b.x ..x", ".x x"},
	} {
		s := NewSet()
		r := parse(t, s, c.pattern, Syntax{})
		check := func(list string, want bool) {
			for _, text := range strings.Split(list, " ") {
				if list == "" {
					continue
				}
				text = strings.NewReplacer("·", " ", "ε", "").Replace(text)
				if matches(s, r, text) != want {
					t.Errorf("%q in %q: want %t", c.pattern, text, want)
				}
			}
		}
		check(c.yes, true)
		check(c.no, false)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		pattern  string
		position int
		reason   string
	}{
		{`(`, 0, "not closed"}, {`a)`, 1, "closes nothing"}, {`[a`, 0, "not closed"}, {`a\`, 1, "backslash"}, {`*a`, 0, "nothing comes before"},
		{`a|+`, 2, "nothing comes before"}, {`{2}`, 0, "nothing comes before"}, {`a**`, 2, "repetition of a repetition"}, {`a{2}{3}`, 4, "repetition of a repetition"},
		{`a++`, 1, "possessive"}, {`(a)\1`, 3, "back references"}, {`(?<n>a)\k<n>`, 7, "back references"}, {`(?P<n>a)(?P=n)`, 8, "back references"},
		{`(?<=a)b`, 0, "look-behind"}, {`a(?<!a)b`, 1, "look-behind"}, {`(?>a)`, 0, "atomic"}, {`(?(1)a|b)`, 0, "conditions"}, {`(?m)^a`, 0, "line ends"},
		{`(?x)a`, 0, "not known"}, {`a{2,1}`, 1, "least count"}, {`a{,3}`, 1, "least count"}, {`a{1,99999999999999999999}`, 1, "counts"},
		{`[b-a]`, 1, "range"}, {`[[:alpha:]]`, 1, "POSIX"}, {`\012`, 0, "octal"}, {`[\1]`, 1, "octal"}, {`\y`, 0, "not known"}, {`\Z`, 0, "different meanings"},
		{`\p{Foo}`, 0, "called"}, {`\p{L`, 0, "not closed"}, {`\x4`, 0, "hexadecimal"}, {`\u12`, 0, "hexadecimal"}, {`\u{110000}`, 0, "no character"},
		{`\u{}`, 0, "hexadecimal"}, {`\ud800`, 0, "surrogate"}, {`\c1`, 0, "letter"}, {`^*`, 1, "place"}, {`(?=a)+`, 5, "place"}, {`(?<>a)`, 0, "no name"},
		{"\xff", 0, "UTF-8"},
		{strings.Repeat("(", 300) + strings.Repeat(")", 300), 201, "deep"},
		{strings.Repeat("a", maxPattern+1), maxPattern, "at most"},
		{`((?=a)b){100000}`, 1, "too large"},
	} {
		_, err := NewSet().Parse(c.pattern, Syntax{})
		refused, ok := err.(*Error)
		if !ok || refused.Position != c.position || !strings.Contains(refused.Reason, c.reason) {
			t.Errorf("%.40q: got %v, want position %d and %q", c.pattern, err, c.position, c.reason)
		}
	}
}
