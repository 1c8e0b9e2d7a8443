package schema

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/internal/testdata"
)

type instance struct {
	Valid bool            `json:"valid"`
	Data  json.RawMessage `json:"data"`
}

// maskBenchRefusals are how many schemas are refused, by keyword.
var maskBenchRefusals = map[string]int{"uniqueItems": 2, "unsatisfiable": 1}

// TestMaskBench judges by a sample of MaskBench: no valid instance may stop, no invalid one pass, and few schemas be refused. Properties come
// in the schema's order here; some instances have another, and are tried in the schema's.
func TestMaskBench(t *testing.T) {
	file, err := os.Open(testdata.Shared(t, "jsonschema/maskbench.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	schemas, stopped, reordered, passed := 0, 0, 0, 0
	keywords := map[string]int{}
	refusals := 0
	for lines.Scan() {
		var line struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"schema"`
			Tests  []instance      `json:"tests"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		schemas++
		m, err := machine(string(line.Schema), Options{})
		if err != nil {
			refusals++
			keywords[refused(err)]++
			t.Logf("%s: %v", line.Name, err)
			continue
		}
		d := &document{}
		root, err := jsontree.Decode(line.Schema, jsontree.Limits{Depth: 256})
		if err != nil {
			t.Fatal(err)
		}
		d.open(root)
		for _, test := range line.Tests {
			value, err := jsontree.Decode(test.Data, jsontree.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			text := string(jsontree.AppendDumps(nil, value, jsontree.Compact))
			whole, at := accepts(m, text)
			switch {
			case whole && !test.Valid:
				passed++
				t.Errorf("%s: an invalid instance passes: %.300s", line.Name, text)
			case !whole && test.Valid:
				if whole, _ := accepts(m, string(jsontree.AppendDumps(nil, ordered(d, d.root, value, 0), jsontree.Compact))); whole {
					reordered++
					t.Logf("%s: the properties of a valid instance are not in the schema's order: %s", line.Name, around(text, at))
					continue
				}
				stopped++
				t.Errorf("%s: a valid instance stops at byte %d: %s", line.Name, at, around(text, at))
			}
		}
	}
	t.Logf("%d schemas, %d refused %v, %d valid instances stopped, %d for their order alone, %d invalid ones passed", schemas, refusals, keywords, stopped, reordered, passed)
	if !maps.Equal(keywords, maskBenchRefusals) {
		t.Errorf("refused are %v, recorded are %v", keywords, maskBenchRefusals)
	}
}

// around is a text near a byte.
func around(text string, at int) string {
	from, to := max(at-60, 0), min(at+20, len(text))
	return strings.ToValidUTF8(text[from:at]+" >>> "+text[at:to], "?")
}
