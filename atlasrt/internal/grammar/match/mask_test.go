package match

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
)

// maskCases are grammars whose masks are made in different ways, and texts of them.
var maskCases = []struct {
	name  string
	build func(j *jsonRules) rules.Symbol
	texts []string
}{
	{"any value", func(j *jsonRules) rules.Symbol { return j.value }, []string{
		`{"name":["café \"quoted\"",-12.5e-3,{"日本":null}],"b":[[],{}]}`,
	}},
	{"a string of at most 300 characters", func(j *jsonRules) rules.Symbol { return j.counted(0, 300) }, []string{
		`"some text, as it comes: é日本𝄞\n"`, `"` + strings.Repeat("a ", 149) + `"`,
	}},
	{"a string of 3 to 20 characters", func(j *jsonRules) rules.Symbol { return j.counted(3, 20) }, []string{`"twenty characters aé"`}},
	{"a string of at most 5 characters", func(j *jsonRules) rules.Symbol { return j.counted(0, 5) }, []string{`"日本é\nb"`}},
	{"keys but some", func(j *jsonRules) rules.Symbol {
		return j.Sequence(j.Literal("{"), j.keys([]string{"id", "identity", "name", "na"}), j.value, j.Literal("}"))
	}, []string{`{"ide":1}`, `{"names":1}`, `{"x":1}`}},
	{"keys of a list and others", func(j *jsonRules) rules.Symbol {
		return j.Sequence(j.Literal("{"), j.Either(
			j.Sequence(j.Literal(`"id":`), j.number), j.Sequence(j.Literal(`"identity":`), j.string()),
			j.Sequence(j.keys([]string{"id", "identity", "name"}), j.value)), j.Literal("}"))
	}, []string{`{"id":1}`, `{"identity":"x"}`, `{"ide":[1]}`, `{"names":{"id":2}}`}},
	{"keys of a list and two kinds of others", func(j *jsonRules) rules.Symbol {
		return j.Either(
			j.Sequence(j.Literal(`"name":`), j.number), j.Sequence(j.keys([]string{"id", "name"}), j.number),
			j.Sequence(j.keys([]string{"na", "name", "type"}), j.string()))
	}, []string{`"name":1`, `"na":2`, `"id":"x"`, `"types":"y"`, `"type":3`}},
	{"a key or a word that it ends with", func(j *jsonRules) rules.Symbol {
		return j.Either(j.Sequence(j.Literal(`"a":`), j.value), j.Sequence(j.Literal(`"a":"b`), j.Literal(`!`)), j.keys([]string{"a"}))
	}, []string{`"a":"b"`, `"a":"b!`, `"ab":`}},
	{"characters and marks", func(j *jsonRules) rules.Symbol {
		list := j.Declare("list")
		j.Define(list, rules.Empty, j.Sequence(j.Either(j.Match(j.Regexes.NotRunes('<', '<')), j.Literal("<mark>")), list))
		return list
	}, []string{"a<mark>b é"}},
	{"keys but some, of at most 9 characters", func(j *jsonRules) rules.Symbol {
		s := j.Regexes
		return j.Match(s.Concat(s.Literal(`"`), s.And(s.Repeat(j.character(), 0, 9), s.Not(s.Or(s.Literal("id"), s.Literal("name")))), s.Literal(`":`)))
	}, []string{`"namesakes":`, `"i":`}},
	{"patterns", func(j *jsonRules) rules.Symbol {
		s := j.Regexes
		lower := s.Repeat(s.Bytes('a', 'z'), 1, -1)
		word := s.Repeat(s.Or(s.Bytes('a', 'z'), s.Bytes('A', 'Z'), s.Bytes('0', '9'), s.Literal("_")), 2, 7)
		return j.Match(s.Or(s.Concat(lower, s.Literal("@"), word, s.Literal(".com")), s.Repeat(s.NotRunes('/', '/'), 0, 30)))
	}, []string{"me@Some_1.com", "any text 日本"}},
	{"words, counted as a whole", func(j *jsonRules) rules.Symbol {
		return j.pattern(`(?=[^]{0,60}$)(?:\S+\s+){0,9}\S+`)
	}, []string{"some words\u3000as they come \u00e9t\u00e9 日本"}},
	{"names of hosts", func(j *jsonRules) rules.Symbol {
		return j.pattern(`(?=[^]{0,40}$)(?!(?:[^]*\.)?[^.]{2}--)[a-z0-9](?:[a-z0-9-]{0,20}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,20}[a-z0-9])?)*`)
	}, []string{"www.some-name.example.com"}},
	{"no slash", func(j *jsonRules) rules.Symbol { return j.pattern(`[^/]{2,40}`) }, []string{"any text but one 日本 character"}},
	{"a capital somewhere", func(j *jsonRules) rules.Symbol { return j.pattern(`.*[A-Z].{0,3}`) }, []string{"some text with One"}},
	{"a rule of letters", func(j *jsonRules) rules.Symbol {
		s := j.Regexes
		letter := j.Match(s.Or(s.Bytes('a', 'z'), s.Literal(" ")))
		return j.Sequence(j.Repeat(letter, rules.Empty, 1, rules.Unbounded), j.Literal("!"))
	}, []string{"just letters!"}},
	{"a counted rule of letters", func(j *jsonRules) rules.Symbol {
		return j.Repeat(j.Match(j.Regexes.NotRunes('x', 'x')), rules.Empty, 2, 6)
	}, []string{"abé日\"d"}},
	{"text without words", func(j *jsonRules) rules.Symbol {
		return j.Sequence(j.Match(j.Regexes.And(j.Regexes.Text(), j.Regexes.Without("<tool>", "the end"))), j.Literal("<tool>"))
	}, []string{"say the word\n<tool>"}},
	{"either of two strings", func(j *jsonRules) rules.Symbol {
		return j.Either(j.Sequence(j.string(), j.Literal(":1")), j.Sequence(j.counted(0, 3), j.Literal(":2")))
	}, []string{`"abc":2`, `"abcd":1`}},
	{"with control tokens", func(j *jsonRules) rules.Symbol {
		control := j.Regexes.Concat(j.Regexes.Bytes(ControlBegin, ControlBegin), j.Regexes.Text(), j.Regexes.Bytes(ControlEnd, ControlEnd))
		return j.Repeat(j.Match(j.Regexes.Or(control, j.Regexes.NotRunes())), rules.Empty, 0, rules.Unbounded)
	}, []string{"a\xff<|im_end|>\xfeb"}},
}

func (j *jsonRules) pattern(text string) rules.Symbol {
	r, err := j.Regexes.Parse(text, regex.Syntax{Anchored: true})
	if err != nil {
		panic(err)
	}
	return j.Match(r)
}

func (j *jsonRules) counted(least, most int) rules.Symbol {
	s := j.Regexes
	return j.Match(s.Concat(s.Literal(`"`), s.Repeat(j.character(), least, most), s.Literal(`"`)))
}

// TestMasksOfARealVocabulary compares masks with what becomes of every token.
func TestMasksOfARealVocabulary(t *testing.T) {
	for _, name := range []string{"qwen3", "llama2"} {
		v, tok := realVocabulary(t, name)
		r := rand.New(rand.NewPCG(1, 1))
		for _, c := range maskCases {
			j := newJSONRules()
			g, err := j.Grammar(c.build(j))
			if err != nil {
				t.Fatal(err)
			}
			m, err := New(g, v, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range c.texts {
				s := m.Start()
				for at := 0; at <= len(text); {
					compareMask(t, s, v, name, c.name, text[:at])
					if at == len(text) {
						break
					}
					step := min(1+r.IntN(max(4, len(text)/3)), len(text)-at)
					next, n := s.NextBytes([]byte(text[at : at+step]))
					if n < step {
						t.Fatalf("%s: %q stops at byte %d", c.name, text, at+n)
					}
					s, at = next, at+step
				}
				if !s.Done() {
					t.Errorf("%s: %q is not done", c.name, text)
				}
			}
		}
		_ = tok
	}
}

// TestRealInstances makes every mask of instances of real schemas, token by token.
func TestRealInstances(t *testing.T) {
	v, tok := realVocabulary(t, "qwen3")
	mask := make([]uint32, v.Words())
	for at, line := range schemas(t) {
		if at%8 != 0 || len(line.valid) == 0 {
			continue
		}
		data := line.valid[0]
		j := newJSONRules()
		if at%16 == 0 {
			j.text = func() regex.Ref { return j.Regexes.Repeat(j.character(), 0, 100000) }
		}
		shape := j.shape(t, data)
		g, err := j.Grammar(shape)
		if err != nil {
			t.Fatal(err)
		}
		m, err := New(g, v, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		s := m.Start()
		for at, id := range tok.Encode(string(data), false) {
			if err := s.Mask(mask); err != nil {
				t.Fatal(err)
			}
			next, ok := s.Next(id)
			if !ok || mask[id/32]>>(id%32)&1 == 0 {
				t.Fatalf("%s: token %d %q may not come", data, at, v.text(id))
			}
			s = next
		}
		if !s.Done() {
			t.Errorf("%s: not done", data)
		}
	}
}
