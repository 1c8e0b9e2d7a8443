package regex

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
)

// language is the texts of an expression up to a length, over a few bytes.
type language map[string]bool

const (
	shortest = 5
	bytesOf  = "ab\xff"
)

var everyText = func() []string { return texts(strings.Split("a b \xff", " "), shortest) }()

func (l language) concat(m language) language {
	both := language{}
	for x := range l {
		for y := range m {
			if len(x)+len(y) <= shortest {
				both[x+y] = true
			}
		}
	}
	return both
}

// sample makes random expressions, and what they match.
type sample struct {
	*rand.Rand
	set *Set
}

func (g sample) text(most int) string {
	text := make([]byte, g.IntN(most+1))
	for i := range text {
		text[i] = bytesOf[g.IntN(len(bytesOf))]
	}
	return string(text)
}

func (g sample) expression(depth int) (Ref, language) {
	s := g.set
	if depth == 0 {
		switch g.IntN(6) {
		case 0:
			return Empty, language{"": true}
		case 1:
			return s.Bytes('a', 'b'), language{"a": true, "b": true}
		case 2:
			words, texts := language{}, []string{}
			for range 1 + g.IntN(5) {
				w := g.text(3)
				words[w] = true
				texts = append(texts, w)
			}
			return s.Words(texts...), words
		case 3:
			return s.Repeat(s.Bytes(0, 255), 0, -1), filter(func(string) bool { return true })
		}
		text := g.text(2)
		return s.Literal(text), language{text: true}
	}
	a, la := g.expression(g.IntN(depth))
	b, lb := g.expression(g.IntN(depth))
	switch g.IntN(10) {
	case 0, 1:
		union := maps.Clone(la)
		maps.Copy(union, lb)
		return s.Or(a, b), union
	case 2:
		return s.And(a, b), filter(func(t string) bool { return la[t] && lb[t] })
	case 3:
		return s.Not(a), filter(func(t string) bool { return !la[t] })
	case 4, 5, 6:
		return s.Concat(a, b), la.concat(lb)
	case 7:
		return s.NonEmpty(a), filter(func(t string) bool { return t != "" && la[t] })
	}
	least, most := g.IntN(4), g.IntN(5)-1
	counted, power := language{}, language{"": true}
	for n := 0; n <= max(most, least+shortest+1); n++ {
		if n >= least && (n <= most || most < 0) {
			maps.Copy(counted, power)
		}
		power = power.concat(la)
	}
	return s.Repeat(a, least, most), counted
}

func filter(keep func(string) bool) language {
	l := language{}
	for _, t := range everyText {
		if keep(t) {
			l[t] = true
		}
	}
	return l
}

// Expressions match what sets of texts say, whatever laws make them simpler.
func TestAlgebra(t *testing.T) {
	g := sample{Rand: rand.New(rand.NewPCG(5, 6))}
	for i := range 800 {
		if i%20 == 0 {
			g.set = NewSet() // else expressions meet those of others
		}
		r, want := g.expression(1 + g.IntN(5))
		for _, text := range everyText {
			if matches(g.set, r, text) != want[text] {
				t.Fatalf("case %d, %q: want %t", i, text, want[text])
			}
		}
		if g.set.Nullable(r) != want[""] {
			t.Fatalf("case %d: nullable is not %t", i, want[""])
		}
	}
}

// The bytes of a class have one derivative.
func TestClasses(t *testing.T) {
	g := sample{Rand: rand.New(rand.NewPCG(7, 8)), set: NewSet()}
	for range 300 {
		r, _ := g.expression(4)
		o, _ := g.expression(3)
		s := g.set
		both := s.Classes(r, o)
		for b := range 256 {
			first := both.Members[both.Of[b]]
			if s.step(r, byte(b)) != s.Derive(r, first) || s.step(o, byte(b)) != s.Derive(o, first) {
				t.Fatalf("bytes %#x and %#x are of one class and have different derivatives", b, first)
			}
		}
		if s.Classes(r, o) != both || s.Classes(o, r) != both {
			t.Fatal("equal classes are two pointers")
		}
	}
}

// Questions are answered as by going through all pairs of derivatives.
func TestQuestions(t *testing.T) {
	g := sample{Rand: rand.New(rand.NewPCG(9, 10))}
	counts := map[string]int{}
	for i := range 800 {
		g.set = NewSet()
		a, _ := g.expression(1 + g.IntN(4))
		b, _ := g.expression(1 + g.IntN(4))
		met := map[[2]Ref]bool{{a, b}: true}
		queue := [][2]Ref{{a, b}}
		some, within, apart := false, true, true
		for len(queue) > 0 {
			p := queue[0]
			queue = queue[1:]
			x, y := g.set.Nullable(p[0]), g.set.Nullable(p[1])
			some, within, apart = some || y, within && (x || !y), apart && !(x && y)
			for _, c := range g.set.Classes(p[0], p[1]).Members {
				d := [2]Ref{g.set.Derive(p[0], c), g.set.Derive(p[1], c)}
				if !met[d] {
					met[d] = true
					queue = append(queue, d)
				}
			}
		}
		check := func(name string, got bool, err error, want bool) {
			if err != nil || got != want {
				t.Fatalf("case %d, %s: got %t, %v, want %t", i, name, got, err, want)
			}
			if want {
				counts[name]++
			}
		}
		got, err := g.set.Alive(b)
		check("alive", got, err, some)
		got, err = g.set.Covers(a, b)
		check("covers", got, err, within)
		got, err = g.set.Alive(g.set.And(a, b))
		check("alive in common", got, err, !apart)
	}
	for name, n := range counts {
		if n < 40 || n > 790 {
			t.Errorf("%s was true %d times: the cases say little", name, n)
		}
	}
}

// Expressions that are equal by the laws are one.
func TestLaws(t *testing.T) {
	s := NewSet()
	a, b, c := s.Literal("abc"), s.Runes('a', 'z', 0xE0, 0xFF), s.Literal("x")
	digit := s.Bytes('0', '9')
	text := s.Text()
	for name, pair := range map[string][2]Ref{
		"or commutes":              {s.Or(a, b, c), s.Or(c, s.Or(b, a), a)},
		"or of nothing":            {s.Or(a, Nothing), a},
		"and of nothing":           {s.And(a, Nothing), Nothing},
		"not not":                  {s.Not(s.Not(a)), a},
		"or of a complement":       {s.Or(a, s.Not(a)), s.Not(Nothing)},
		"and of a complement":      {s.And(a, s.Not(a)), Nothing},
		"concat associates":        {s.Concat(s.Concat(a, b), c), s.Concat(a, s.Concat(b, c))},
		"literals join":            {s.Concat(s.Literal("ab"), s.Literal("c")), a},
		"words join":               {s.Or(a, s.Literal("abd")), s.Words("abd", "abc")},
		"classes join":             {s.Or(s.Bytes('a', 'c'), s.Bytes('b', 'f')), s.Bytes('a', 'f')},
		"classes meet":             {s.And(s.Bytes('a', 'c'), s.Bytes('b', 'f')), s.Bytes('b', 'c')},
		"counts add":               {s.Concat(s.Repeat(digit, 1, 2), s.Repeat(digit, 2, -1)), s.Repeat(digit, 3, -1)},
		"counts join":              {s.Or(s.Repeat(b, 1, 4), s.Repeat(b, 3, 9), Empty), s.Repeat(b, 0, 9)},
		"counts multiply":          {s.Repeat(s.Repeat(b, 1, 100), 1, 100), s.Repeat(b, 1, 10000)},
		"star of star":             {s.Repeat(s.Repeat(b, 0, -1), 0, -1), s.Repeat(b, 0, -1)},
		"star of nullable":         {s.Repeat(s.Or(b, Empty), 3, -1), s.Repeat(b, 0, -1)},
		"endings join":             {s.Or(s.Concat(a, digit), s.Concat(b, digit), digit), s.Concat(s.Or(a, b, Empty), digit)},
		"text holds text":          {s.And(text, s.Concat(a, text, b)), s.Concat(a, text, b)},
		"text takes up text":       {s.Or(text, s.Concat(text, a, text)), text},
		"text takes up characters": {s.Or(s.Concat(text, c), s.Concat(b, text, c)), s.Concat(text, c)},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: two expressions", name)
		}
	}
}

// Without is what contains no word.
func TestWithout(t *testing.T) {
	s := NewSet()
	words := []string{"aba", "bb", "\xffa\xff"}
	r := s.Without(words...)
	for _, text := range everyText {
		want := true
		for _, w := range words {
			want = want && !strings.Contains(text, w)
		}
		if matches(s, r, text) != want {
			t.Errorf("%q: want %t", text, want)
		}
	}
	if s.Without("a", "") != Nothing {
		t.Error("the empty word is in every text")
	}
}
