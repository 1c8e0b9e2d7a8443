package schema

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// ordered is a value with the properties that a schema names first, in the schema's order: the suite's data have their own order.
func ordered(d *document, p place, v jsontree.Value, depth int) jsontree.Value {
	if depth > 12 {
		return v
	}
	switch v := v.(type) {
	case jsontree.Array:
		list := slices.Clone(v)
		for _, s := range neighbours(d, p, 0) {
			for i := range list {
				for _, item := range itemPlaces(d, s, i) {
					list[i] = ordered(d, item, list[i], depth+1)
				}
			}
		}
		return list
	case *jsontree.Object:
		sorted := jsontree.NewObject()
		places := neighbours(d, p, 0)
		move := func(name string) {
			if member, ok := v.Get(name); ok {
				if _, done := sorted.Get(name); !done {
					sorted.Set(name, member)
				}
			}
		}
		for _, s := range places {
			o, _ := s.schema.(*jsontree.Object)
			for _, keyword := range []string{"properties", "const"} {
				named, _ := o.Get(keyword)
				properties, _ := named.(*jsontree.Object)
				for name := range properties.All() {
					move(name)
				}
			}
		}
		for name := range v.All() {
			move(name)
		}
		for _, s := range places {
			o, _ := s.schema.(*jsontree.Object)
			for name, member := range sorted.All() {
				patterned, _ := o.Get("patternProperties")
				patterns, _ := patterned.(*jsontree.Object)
				for pattern, below := range patterns.All() {
					if matched, err := regexp.MatchString(pattern, name); err == nil && matched {
						sorted.Set(name, ordered(d, d.at(s, below, "patternProperties", pattern), member, depth+1))
						member, _ = sorted.Get(name)
					}
				}
				for _, keyword := range []string{"properties", "additionalProperties", "unevaluatedProperties"} {
					below, _ := o.Get(keyword)
					child := d.at(s, below, keyword)
					if keyword == "properties" {
						properties, _ := below.(*jsontree.Object)
						below, _ = properties.Get(name)
						child = d.at(child, below, name)
					}
					if _, ok := below.(*jsontree.Object); ok {
						sorted.Set(name, ordered(d, child, member, depth+1))
						member, _ = sorted.Get(name)
					}
				}
			}
		}
		return sorted
	}
	return v
}

// neighbours are a schema and those that apply to the same value, in the order of reading.
func neighbours(d *document, p place, depth int) (places []place) {
	o, ok := p.schema.(*jsontree.Object)
	if !ok || depth > 8 {
		return nil
	}
	places = []place{p}
	for _, keyword := range []string{"$ref", "$dynamicRef"} {
		if uri, ok := text(o, keyword); ok {
			if to, reason := d.find(p, uri); reason == "" {
				places = append(places, neighbours(d, to, depth+1)...)
			}
		}
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := o.Get(keyword)
		schemas, _ := list.(jsontree.Array)
		for i, s := range schemas {
			places = append(places, neighbours(d, d.at(p, s, keyword, strconv.Itoa(i)), depth+1)...)
		}
	}
	for _, keyword := range []string{"if", "then", "else", "dependentSchemas"} {
		s, _ := o.Get(keyword)
		if keyword == "dependentSchemas" {
			schemas, _ := s.(*jsontree.Object)
			for name, s := range schemas.All() {
				places = append(places, neighbours(d, d.at(p, s, keyword, name), depth+1)...)
			}
		} else {
			places = append(places, neighbours(d, d.at(p, s, keyword), depth+1)...)
		}
	}
	return places
}

func itemPlaces(d *document, p place, i int) (places []place) {
	o, _ := p.schema.(*jsontree.Object)
	for _, keyword := range []string{"prefixItems", "items"} {
		prefix, _ := o.Get(keyword)
		if list, _ := prefix.(jsontree.Array); i < len(list) {
			return []place{d.at(p, list[i], keyword, strconv.Itoa(i))}
		}
	}
	for _, keyword := range []string{"items", "additionalItems", "contains", "unevaluatedItems"} {
		if s, ok := o.Get(keyword); ok {
			places = append(places, d.at(p, s, keyword))
		}
	}
	return places
}

// plain is a value with its whole numbers without a point: those of type integer are written so alone.
func plain(v jsontree.Value) jsontree.Value {
	switch v := v.(type) {
	case jsontree.Number:
		if d, ok := parseDecimal(v); ok && d.behind() == "" {
			return jsontree.Number(d.plain())
		}
	case jsontree.Array:
		list := slices.Clone(v)
		for i := range list {
			list[i] = plain(list[i])
		}
		return list
	case *jsontree.Object:
		o := jsontree.NewObject()
		for name, member := range v.All() {
			o.Set(name, plain(member))
		}
		return o
	}
	return v
}

type suiteGroup struct {
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Tests       []struct {
		Description string          `json:"description"`
		Data        json.RawMessage `json:"data"`
		Valid       bool            `json:"valid"`
	} `json:"tests"`
}

// verdicts of a part of the suite.
type verdicts struct {
	groups, served, tests int
	refusals              map[string]int // by keyword
}

// judge tries the groups of a file. Exceptions are tests, as "group: test", whose verdict differs for a reason that is written beside them.
func judge(t *testing.T, file string, exceptions map[string]string, v *verdicts) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var groups []suiteGroup
	if err := json.Unmarshal(content, &groups); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		v.groups++
		name := filepath.Base(file) + ": " + g.Description
		m, err := machine(string(g.Schema), Options{})
		if nothing := (*Unsatisfiable)(nil); err != nil && !errors.As(err, &nothing) {
			v.refusals[refused(err)]++
			t.Logf("%s: %v", name, err)
			continue
		}
		v.served++
		d := &document{}
		root, err := jsontree.Decode(g.Schema, jsontree.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		d.open(root)
		for _, test := range g.Tests {
			v.tests++
			value, err := jsontree.Decode(test.Data, jsontree.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			value = ordered(d, d.root, value, 0)
			text := string(jsontree.AppendDumps(nil, value, jsontree.Compact))
			whole, at := false, 0
			if m != nil {
				whole, at = accepts(m, text)
			}
			if m != nil && !whole {
				whole, _ = accepts(m, string(jsontree.AppendDumps(nil, plain(value), jsontree.Compact)))
			}
			_, excepted := exceptions[g.Description+": "+test.Description]
			switch {
			case excepted && whole == test.Valid:
				t.Errorf("%s: %s is an exception without need", name, test.Description)
			case excepted:
			case whole && !test.Valid:
				t.Errorf("%s: %s: an invalid instance passes: %.200s\n\tschema %s", name, test.Description, text, g.Schema)
			case !whole && test.Valid:
				t.Errorf("%s: %s: a valid instance stops at byte %d: %s\n\tschema %s", name, test.Description, at, around(text, at), g.Schema)
			}
		}
	}
}

// suiteRefusals are how many groups are refused, by keyword. Those of $ref are to other documents, which the suite serves beside it.
var suiteRefusals = map[string]int{"$ref": 22, "$dynamicRef": 10, "uniqueItems": 2, "multipleOf": 1, "too much work": 1}

var suiteExceptions = map[string]string{
	"schema that uses custom metaschema with with no validation vocabulary: no validation: invalid number, but it still validates": "metaschemas are not fetched, so that no vocabulary is left out",
}

// TestSuite judges by the public test suite of draft 2020-12. In its own order data would stop for that alone, so that properties that a
// schema names are put in its order first, and what stops then is tried with whole numbers as integers are written. Formats are held here, so that format.json, in which they are only noted, is left out.
func TestSuite(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testdata.Shared(t, "jsonschema/suite"), "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal("no suite", err)
	}
	v := &verdicts{refusals: map[string]int{}}
	for _, file := range files {
		if filepath.Base(file) != "format.json" {
			judge(t, file, suiteExceptions, v)
		}
	}
	t.Logf("%d groups, %d served with %d tests; refused: %v", v.groups, v.served, v.tests, v.refusals)
	if !maps.Equal(v.refusals, suiteRefusals) {
		t.Errorf("refused are %v, recorded are %v", v.refusals, suiteRefusals)
	}
}

var formatExceptions = func() map[string]string {
	exceptions := map[string]string{}
	for _, name := range []string{
		"validation of date-time strings: a valid date-time with a leap second, with minus offset",
		"validation of time strings: valid leap second, positive time-offset",
		"validation of time strings: valid leap second, large positive time-offset",
		"validation of time strings: valid leap second, negative time-offset",
		"validation of time strings: valid leap second, large negative time-offset",
	} {
		exceptions[name] = "leap seconds are written in UTC"
	}
	for _, name := range []string{
		"a valid host name (example.test in Hangul)", "Exceptions that are PVALID, left-to-right chars", "Exceptions that are PVALID, right-to-left chars",
		"MIDDLE DOT with surrounding 'l's", "Greek KERAIA followed by Greek", "Hebrew GERESH preceded by Hebrew", "Hebrew GERSHAYIM preceded by Hebrew",
		"KATAKANA MIDDLE DOT with Hiragana", "KATAKANA MIDDLE DOT with Katakana", "KATAKANA MIDDLE DOT with Han",
		"Arabic-Indic digits not mixed with Extended Arabic-Indic digits", "Extended Arabic-Indic digits not mixed with Arabic-Indic digits",
		"ZERO WIDTH JOINER preceded by Virama", "ZERO WIDTH NON-JOINER preceded by Virama", "ZERO WIDTH NON-JOINER not preceded by Virama but matches regexp",
	} {
		exceptions["validation of A-label (punycode) host names: "+name] = "no expression tells valid encoded labels from others"
	}
	return exceptions
}()

// TestFormats judges by the suite's tests of formats.
func TestFormats(t *testing.T) {
	v := &verdicts{refusals: map[string]int{}}
	files, _ := filepath.Glob(filepath.Join(testdata.Shared(t, "jsonschema/suite"), "optional", "format", "*.json"))
	for _, file := range files {
		judge(t, file, formatExceptions, v)
	}
	t.Logf("%d groups, %d served with %d tests; refused: %v", v.groups, v.served, v.tests, v.refusals)
	if len(files) == 0 || v.served < 19 {
		t.Errorf("%d groups are served", v.served)
	}
}
