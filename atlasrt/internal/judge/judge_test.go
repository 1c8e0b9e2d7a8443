package judge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// published is a judge with a published tokenizer.
func published(t *testing.T, name string) *Judge {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testdata.Cache(t, "tokenizers"), name, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.FromFiles(tokenizer.Files{Tokenizer: text})
	if err != nil {
		t.Fatal(err)
	}
	return &Judge{Vocabulary: NewVocabulary(tok), Tokenizer: tok}
}

func TestVerdicts(t *testing.T) {
	const lines = `{"name": "A---one", "schema": {"properties": {"a": {"type": "integer"}, "b": {}}, "additionalProperties": false, "unknown": 1}, "tests": [
{"valid": true, "data": {"a": 1}}, {"valid": true, "data": {"b": 1.50, "a": 1}}, {"valid": true, "data": {"a": "x"}},
{"valid": false, "data": {"c": 1}}, {"valid": false, "data": {"a": 2}}]}
{"name": "B_two", "schema": {"items": {"uniqueItems": true}}, "tests": [{"valid": true, "data": []}]}
{"name": "B_three", "schema": false, "tests": []}`
	cases, err := Read(strings.NewReader(strings.ReplaceAll(lines, "\n{\"valid\"", `{"valid"`)))
	if err != nil {
		t.Fatal(err)
	}
	j := published(t, "qwen3")
	var verdicts []*Verdict
	for i := range cases {
		v, err := j.Try(&cases[i], 2)
		if err != nil {
			t.Fatal(err)
		}
		verdicts = append(verdicts, v)
	}
	want := []struct {
		accepted bool
		stopped  int
		order    bool
	}{{true, 7, false}, {false, 8, true}, {false, 5, false}, {false, 2, false}, {true, 7, false}}
	for i, o := range verdicts[0].Tests {
		if w := want[i]; o.Accepted != w.accepted || o.Stopped != w.stopped || o.Order != w.order || o.Error != "" {
			t.Errorf("instance %d %s: got %+v, want %+v", i, o.Text, o, w)
		}
		if (len(o.Masks) > 0) != o.Valid {
			t.Errorf("instance %d has %d masks", i, len(o.Masks))
		}
	}
	if notes := verdicts[0].Notes; len(notes) != 1 || !strings.Contains(notes[0], `the keyword "unknown"`) {
		t.Errorf("got notes %q", notes)
	}
	if r := verdicts[1].Refused; r == nil || r.Path != "#/items" || r.Keyword != "uniqueItems" || r.Reason == "" {
		t.Errorf("got refusal %+v", r)
	}
	if r := verdicts[2].Refused; r == nil || r.Path != "#" || r.Keyword != "" {
		t.Errorf("got refusal %+v", r)
	}
	all := Summarise(verdicts)
	if len(all) != 3 || all[0].Source != "A" || all[1].Source != "B" || all[1].Refused != 2 || all[1].Percent != 100 {
		t.Errorf("got %+v", all)
	}
	if s := all[2]; s.Schemas != 3 || s.Instances != 5 || s.Stopped != 1 || s.Order != 1 || s.Passed != 1 || s.Masks.Count == 0 || s.Compile.Count != 1 {
		t.Errorf("got %+v", s)
	}
}

func TestQuantiles(t *testing.T) {
	var all []Microseconds
	for i := 1000; i > 0; i-- {
		all = append(all, Microseconds(i))
	}
	if got, want := times(all), (Times{Count: 1000, Mean: 500.5, Half: 500, P99: 990, Most: 1000}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestBadCases(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"{}", "line 1: there is no schema"},
		{"\n{\"schema\": {}, \"tests\": [{}]}", "line 2: test 0 has no data"},
		{"nonsense", "line 1: invalid character"},
	} {
		if _, err := Read(strings.NewReader(c.text)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.text, err, c.want)
		}
	}
}
