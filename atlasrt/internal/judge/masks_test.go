package judge

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// TestMasksOfLLGuidance compares allowed tokens with those of the Python package llguidance.
func TestMasksOfLLGuidance(t *testing.T) {
	file, err := os.Open(testdata.Shared(t, "jsonschema/maskbench.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cases, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	recorded := testdata.Cache(t, "masks")
	schemas := map[string]string{}
	for _, c := range cases {
		schemas[c.Name] = string(c.Schema)
	}
	explained := map[string]int{}
	for _, name := range []string{"qwen3", "llama3"} {
		t.Run(name, func(t *testing.T) { compareMasks(t, recorded, name, schemas, explained) })
	}
	for _, d := range differences {
		t.Logf("%d states: %s", explained[d.why], d.why)
		if explained[d.why] == 0 {
			t.Errorf("no state has this difference: %s", d.why)
		}
	}
}

// compareMasks counts states by what explains their differences from those recorded in a folder. A difference that nothing explains is an error.
func compareMasks(t *testing.T, folder, name string, schemas map[string]string, explained map[string]int) {
	text, err := os.ReadFile(filepath.Join(testdata.Cache(t, "tokenizers"), name, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.FromFiles(tokenizer.Files{Tokenizer: text})
	if err != nil {
		t.Fatal(err)
	}
	v := NewVocabulary(tok)
	sets := readSets(t, filepath.Join(folder, name+".sets.json"))
	file, err := os.Open(filepath.Join(folder, name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, mostLine)
	ours := make([]uint32, v.Words())
	added := int32(0) // the first token that is special
	for !tok.IsSpecial(added) {
		added++
	}
	states, equal, equalIn := 0, 0, map[string]bool{}
	for lines.Scan() {
		var line struct {
			Name   string
			Tokens []int32
			Masks  []string
			Done   []bool
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		g, err := grammar.Compile(t.Context(), grammar.Spec{Kind: grammar.Schema, Text: schemas[line.Name]}, v, grammar.Limits{})
		if err != nil {
			t.Errorf("%s: %v", line.Name, err)
			continue
		}
		s := g.Start()
		var before []byte
		for i, token := range line.Tokens {
			states++
			if err := s.Mask(ours); err != nil {
				t.Errorf("%s: behind %s: %v", line.Name, before, err)
				break
			}
			theirs := sets[line.Masks[i]]
			seen := map[string]bool{}
			for id := range int32(tok.VocabSize()) {
				a, b := ours[id/32]>>(id%32)&1 == 1, theirs[id/8]>>(id%8)&1 == 1
				if a == b || tok.IsSpecial(id) {
					continue
				}
				piece := tok.TokenBytes(id)
				why := explain(&difference{line.Name, string(before), string(piece), id >= added, a})
				if !seen[why] {
					seen[why] = true
					explained[why]++
				}
				if why == "" {
					t.Errorf("%s: behind %s: %q: here %t, there %t", line.Name, before, piece, a, b)
					break
				}
			}
			if s.Done() != line.Done[i] {
				t.Errorf("%s: behind %s: may end: here %t, there %t", line.Name, before, s.Done(), line.Done[i])
			}
			if len(seen) == 0 {
				equal++
				equalIn[line.Name] = true
			}
			next, ok := s.Next(token)
			if !ok {
				break
			}
			s, before = next, append(before, tok.TokenBytes(token)...)
		}
	}
	t.Logf("%d of %d states allow the same tokens, of %d schemas; all others differ as explained", equal, states, len(equalIn))
	if equal < 2000 || len(equalIn) < 60 {
		t.Error("there are less than 2,000 equal states, or less than 60 schemas that have some")
	}
}

// difference is a token that one side allows and the other does not.
type difference struct {
	schema string // the case's name
	before string // the text in front of it
	piece  string // the token's text
	added  bool   // it is none of the model's own cutting
	here   bool   // it is allowed here, and not by llguidance; otherwise the other way round
}

// inString tells whether the text in front ends within a string, and whether that is a key.
func (d *difference) inString() (string, key bool) {
	begin := 0
	for i := 0; i < len(d.before); i++ {
		switch {
		case string && d.before[i] == '\\':
			i++
		case d.before[i] == '"':
			string, begin = !string, i
		}
	}
	if !string {
		return false, false
	}
	return true, !strings.HasSuffix(d.before[:begin], ":") && inObject(d.before[:begin])
}

// mayBeginName tells whether the piece ends behind the comma of an object, or goes on there.
func (d *difference) mayBeginName() bool {
	in, key := d.inString()
	return in && key || strings.Contains(d.piece, ",") || strings.HasSuffix(d.before, ",")
}

// inObject tells whether the innermost bracket that is open is one of an object.
func inObject(text string) bool {
	inString := false
	var open []byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			open = append(open, c)
		case (c == '}' || c == ']') && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	return len(open) > 0 && open[len(open)-1] == '{'
}

// differences are why the two sides differ. Each explains the tokens that its test is true for.
var differences = []struct {
	why  string
	test func(d *difference) bool
}{
	{"JSON allows U+007F in strings; llguidance does not", func(d *difference) bool {
		return d.here && strings.Contains(d.piece, "\x7f")
	}},
	{"JSON allows \\/ in strings; llguidance does not", func(d *difference) bool {
		return d.here && (strings.Contains(d.piece, `\/`) || strings.HasPrefix(d.piece, "/") && strings.HasSuffix(d.before, `\`))
	}},
	{"added tokens that are not special are text here; llguidance takes them for control tokens", func(d *difference) bool {
		return d.here && d.added
	}},
	{"strings of no pattern, length or format may escape any character with \\u here; llguidance allows that of control characters alone", func(d *difference) bool {
		return d.here && (strings.Contains(d.piece, `\u`) || strings.HasPrefix(d.piece, "u") && strings.HasSuffix(d.before, `\`))
	}},
	{"names that a schema does not list are not escaped with \\u here, so that they cannot spell one that it lists", func(d *difference) bool {
		_, key := d.inString()
		return !d.here && strings.Contains(d.piece, `\u`) && key
	}},
	{"minus zero is no integer here, as programs have it", func(d *difference) bool {
		return !d.here && (strings.HasPrefix(d.piece, "0") && strings.HasSuffix(d.before, "-") || strings.HasSuffix(d.piece, "-0"))
	}},
	{"bounds hold for numbers in any spelling here; llguidance allows digits alone", func(d *difference) bool {
		in, key := d.inString()
		return d.here && numeric.MatchString(d.piece) && (!in || key && strings.Contains(d.piece, `":`))
	}},
	{"a quoted name of an email address may have quoted pairs here, as RFC 5321 has it", func(d *difference) bool {
		return d.here && strings.HasSuffix(d.before, `"email":"`) && strings.HasPrefix(d.piece, `\`)
	}},
	{"labels of hosts in email addresses have at most 63 characters here, as RFC 1123 has it", func(d *difference) bool {
		return !d.here && len(d.piece) >= 63 && strings.Contains(d.before, "@")
	}},
	{"this schema requires a property that it does not list: it may come anywhere behind the listed ones here, in llguidance only first", func(d *difference) bool {
		return d.here && d.schema == "Github_easy---o73983" && d.mayBeginName()
	}},
	{"the V of an address of a later version is of either case here, as RFC 3986 has it", func(d *difference) bool {
		return d.here && strings.HasPrefix(d.piece, "[V") && strings.HasSuffix(d.before, "://")
	}},
	{"a leap second is one in UTC here, as RFC 3339 has it", func(d *difference) bool {
		return !d.here && strings.HasPrefix(d.piece, "6")
	}},
}

var numeric = regexp.MustCompile(`^["\[{}\],:]*[-+.eE0-9]`)

func explain(d *difference) string {
	for _, e := range differences {
		if e.test(d) {
			return e.why
		}
	}
	return ""
}

func readSets(t *testing.T, path string) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var packed map[string]string
	if err := json.Unmarshal(text, &packed); err != nil {
		t.Fatal(err)
	}
	sets := map[string][]byte{}
	for key, text := range packed {
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		r, err := zlib.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if sets[key], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	return sets
}
