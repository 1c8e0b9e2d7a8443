package match

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// realVocabulary is a published tokenizer's.
func realVocabulary(t testing.TB, name string) (*Vocabulary, *tokenizer.Tokenizer) {
	t.Helper()
	tokens, tok := realTokens(t, name)
	return NewVocabulary(tokens, tok.IsSpecial), tok
}

func realTokens(t testing.TB, name string) ([][]byte, *tokenizer.Tokenizer) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(testdata.Cache(t, "tokenizers"), name, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.FromFiles(tokenizer.Files{Tokenizer: file})
	if err != nil {
		t.Fatal(err)
	}
	return tok.Bytes(tok.VocabSize()), tok
}

// realSchema is a schema with its valid instances, without white space.
type realSchema struct {
	name   string
	schema []byte
	valid  [][]byte
}

func schemas(t testing.TB) []realSchema {
	t.Helper()
	file, err := os.Open(testdata.Shared(t, "jsonschema/maskbench.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []realSchema
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var line struct {
			Name   string
			Schema json.RawMessage
			Tests  []struct {
				Valid bool
				Data  json.RawMessage
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		one := realSchema{name: line.Name, schema: line.Schema}
		for _, test := range line.Tests {
			if test.Valid {
				one.valid = append(one.valid, test.Data)
			}
		}
		all = append(all, one)
	}
	return all
}

// jsonRules builds grammars of JSON.
type jsonRules struct {
	*rules.Builder
	text   func() regex.Ref // of a string between its quotes
	number rules.Symbol
	value  rules.Symbol
	keys   func(names []string) rules.Symbol // a key that is none of some, with its colon
}

func newJSONRules() *jsonRules {
	b := rules.NewBuilder()
	s := b.Regexes
	digit := s.Bytes('0', '9')
	digits := s.Repeat(digit, 1, -1)
	optional := func(r regex.Ref) regex.Ref { return s.Or(r, regex.Empty) }
	number := s.Concat(optional(s.Literal("-")), s.Or(s.Literal("0"), s.Concat(s.Bytes('1', '9'), s.Repeat(digit, 0, -1))),
		optional(s.Concat(s.Literal("."), digits)),
		optional(s.Concat(s.Or(s.Literal("e"), s.Literal("E")), optional(s.Or(s.Literal("+"), s.Literal("-"))), digits)))
	j := &jsonRules{Builder: b}
	j.text = func() regex.Ref { return s.Repeat(j.character(), 0, -1) }
	j.keys = func(names []string) rules.Symbol {
		var words []regex.Ref
		for _, name := range names {
			words = append(words, s.Literal(name))
		}
		return b.Match(s.Concat(s.Literal(`"`), s.And(s.Repeat(j.character(), 0, -1), s.Not(s.Or(words...))), s.Literal(`":`)))
	}
	j.number = b.Match(number)
	value := b.Declare("value")
	j.value = value
	member := b.Sequence(j.keys(nil), value)
	object := b.Sequence(b.Literal("{"), b.Repeat(member, b.Literal(","), 0, -1), b.Literal("}"))
	array := b.Sequence(b.Literal("["), b.Repeat(value, b.Literal(","), 0, -1), b.Literal("]"))
	b.Define(value, object, array, j.string(), j.number, b.Literal("true"), b.Literal("false"), b.Literal("null"))
	return j
}

// character is one character of a string, as JSON spells it.
func (j *jsonRules) character() regex.Ref {
	s := j.Regexes
	hex := s.Or(s.Bytes('0', '9'), s.Bytes('a', 'f'), s.Bytes('A', 'F'))
	short := s.Or(s.Literal(`\"`), s.Literal(`\\`), s.Literal(`\/`), s.Literal(`\b`), s.Literal(`\f`), s.Literal(`\n`), s.Literal(`\r`), s.Literal(`\t`))
	return s.Or(s.NotRunes(0, 0x1F, '"', '"', '\\', '\\'), short, s.Concat(s.Literal(`\u`), s.Repeat(hex, 4, 4)))
}

func (j *jsonRules) string() rules.Symbol {
	s := j.Regexes
	return j.Match(s.Concat(s.Literal(`"`), j.text(), s.Literal(`"`)))
}

// shape is what an instance looks like: an object has the keys of the instance, all of them optional, and others.
func (j *jsonRules) shape(t testing.TB, data []byte) rules.Symbol {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return j.next(t, decoder)
}

func (j *jsonRules) next(t testing.TB, decoder *json.Decoder) rules.Symbol {
	token, err := decoder.Token()
	if err != nil {
		t.Fatal(err)
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			var parts []rules.Symbol
			for decoder.More() {
				parts = append(parts, j.next(t, decoder))
			}
			_, _ = decoder.Token()
			return j.Sequence(j.Literal("["), j.Repeat(j.Either(parts...), j.Literal(","), 0, -1), j.Literal("]"))
		}
		return j.object(t, decoder)
	case string:
		return j.string()
	case json.Number:
		return j.number
	case bool:
		return j.Either(j.Literal("true"), j.Literal("false"))
	}
	return j.Literal("null")
}

func (j *jsonRules) object(t testing.TB, decoder *json.Decoder) rules.Symbol {
	var names []string
	var members []rules.Symbol
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			t.Fatal(err)
		}
		name := quote(t, token.(string))
		names = append(names, strings.Trim(name, `"`))
		members = append(members, j.Sequence(j.Literal(name+":"), j.next(t, decoder)))
	}
	_, _ = decoder.Token()
	// rest[i] is what may come behind one of the first i members.
	more := j.Repeat(j.Sequence(j.Literal(","), j.keys(names), j.value), rules.Empty, 0, -1)
	rest := more
	first := []rules.Symbol{j.Sequence(j.keys(names), j.value, more)}
	for i := len(members) - 1; i >= 0; i-- {
		first = append(first, j.Sequence(members[i], rest))
		rest = j.Either(j.Sequence(j.Literal(","), members[i], rest), rest)
	}
	return j.Sequence(j.Literal("{"), j.Optional(j.Either(first...)), j.Literal("}"))
}

// quote spells a string as Python does.
func quote(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
