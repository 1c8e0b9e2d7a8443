package jinja

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/internal/testdata"
)

// goldenNow is the time that the expected texts were made with.
var goldenNow = time.Date(2026, 11, 21, 9, 5, 7, 0, time.UTC)

type goldenResult struct {
	OK    *string `json:"ok"`
	Error string  `json:"err"`
}

// golden reads the published templates, the conversations and what Python renders for each pair.
func golden(t testing.TB) (templates map[string]*Template, cases *Dict, want map[string]map[string]goldenResult) {
	t.Helper()
	folder := testdata.Shared(t, "templates")
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	if err := json.Unmarshal(read("expected.json"), &want); err != nil {
		t.Fatal(err)
	}
	cases = decode(t, string(read("cases.json")))
	templates = map[string]*Template{}
	for id := range want {
		template, err := Parse(string(read(id + ".jinja")))
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		templates[id] = template
	}
	return templates, cases, want
}

func TestGoldenTemplates(t *testing.T) {
	templates, cases, want := golden(t)
	renders, rendersWant, raises, raisesWant, words := 0, 0, 0, 0, 0
	for id, template := range templates {
		for conversation, expected := range want[id] {
			variables, _ := cases.Get(conversation)
			got, err := template.Render(variables.(*Dict), Options{Now: goldenNow})
			if expected.OK != nil {
				rendersWant++
				switch {
				case err != nil:
					t.Errorf("%s × %s: got error %v, want text", id, conversation, err)
				case got != *expected.OK:
					t.Errorf("%s × %s:\n got %q\nwant %q", id, conversation, got, *expected.OK)
				default:
					renders++
				}
				continue
			}
			raisesWant++
			if err == nil {
				t.Errorf("%s × %s: got %q, want error %s", id, conversation, got, expected.Error)
				continue
			}
			raises++
			if e := err.(*Error); e.Message == expected.Error && e.Line > 0 {
				words++
			} else {
				t.Errorf("%s × %s: got line %d error %q, want %q", id, conversation, e.Line, e.Message, expected.Error)
			}
		}
	}
	t.Logf("renders %d/%d, errors %d/%d, %d of them with Python's words", renders, rendersWant, raises, raisesWant, words)
}

func BenchmarkParse(b *testing.B) {
	folder := testdata.Shared(b, "templates")
	files, _ := filepath.Glob(filepath.Join(folder, "*.jinja"))
	var sources []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		sources = append(sources, string(data))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := Parse(sources[i%len(sources)]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	templates, cases, want := golden(b)
	type job struct {
		template  *Template
		variables *Dict
	}
	var jobs []job
	for id, results := range want {
		for conversation, expected := range results {
			if expected.OK != nil {
				v, _ := cases.Get(conversation)
				jobs = append(jobs, job{templates[id], v.(*Dict)})
			}
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		j := jobs[i%len(jobs)]
		if _, err := j.template.Prompt(j.variables, Options{Now: goldenNow}); err != nil {
			b.Fatal(err)
		}
	}
}
