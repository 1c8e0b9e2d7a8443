package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/match"
	"github.com/atlas-inference/atlas/atlasrt/internal/judge"
	"github.com/atlas-inference/atlas/atlasrt/internal/server"
	"github.com/atlas-inference/atlas/internal/testdata"
	"github.com/atlas-inference/atlas/internal/validate"
)

var schemaAnswers = flag.Int("answers", 100, "answers of TestAnswersFollowTheirSchemas")

// heldSchema is a schema and what judges its answers.
type heldSchema struct {
	name   string
	text   json.RawMessage
	judges *validate.Schema
}

// casesOf reads a file of schemas with instances.
func casesOf(t *testing.T, path string) []judge.Case {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cases, err := judge.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// ownSchemas have all keywords that are held. All that they allow is short.
func ownSchemas(t *testing.T) (all []heldSchema) {
	t.Helper()
	for _, c := range casesOf(t, filepath.Join("testdata", "structured", "schemas.jsonl")) {
		judges, err := validate.Compile(string(c.Schema))
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		all = append(all, heldSchema{c.Name, c.Schema, judges})
	}
	return all
}

// mostInstance bounds the shortest instance of schemas that are drawn, in bytes: answers to others would mostly be cut.
const mostInstance = 60

// drawnSchemas are those of MaskBench that have a short instance, in an order that is drawn once for all.
func drawnSchemas(t *testing.T) (all []heldSchema) {
	t.Helper()
	cases := casesOf(t, testdata.Shared(t, "jsonschema/maskbench.jsonl"))
	nothing := match.NewVocabulary(nil, nil)
	long, refused, unread := 0, 0, 0
	for _, at := range rand.New(rand.NewPCG(1, 2)).Perm(len(cases)) {
		c := cases[at]
		if !short(&c) {
			long++
			continue
		}
		if _, err := grammar.Compile(context.Background(), grammar.Spec{Kind: grammar.Schema, Text: string(c.Schema)}, nothing, grammar.Limits{}); err != nil {
			refused++
			continue
		}
		judges, err := validate.Compile(string(c.Schema))
		if err != nil {
			unread++
			continue
		}
		all = append(all, heldSchema{c.Name, c.Schema, judges})
	}
	t.Logf("of %d schemas of MaskBench %d have no short instance, %d are refused, %d cannot be read by the validator, %d remain", len(cases), long, refused, unread, len(all))
	return all
}

// short tells whether a case has a short valid instance.
func short(c *judge.Case) bool {
	for _, test := range c.Tests {
		var text bytes.Buffer
		if test.Valid && json.Compact(&text, test.Data) == nil && text.Len() <= mostInstance {
			return true
		}
	}
	return false
}

// A small model that knows nothing of schemas writes what they allow, in all dialects and notations and however wild it is: another validator
// judges its answers. What is cut is the beginning of an answer, also where
// white space could go on.
func TestAnswersFollowTheirSchemas(t *testing.T) {
	schemas := append(ownSchemas(t), drawnSchemas(t)...)
	withHeld(t, func(t *testing.T, m *heldModel) {
		var servers []*server.Server
		notations := []grammar.Notation{grammar.Compact, grammar.Spaced, grammar.Flexible}
		for _, notation := range notations {
			servers = append(servers, m.serve(t, "hermes", notation))
		}
		untilEnded(t, *schemaAnswers, func(i int) *heldRequest {
			s := schemas[i%len(schemas)]
			r := schemaRequest(i, s.text)
			r.name, r.server = s.name, servers[i%len(servers)]
			r.judge = func(a *heldAnswer) error { return s.judges.Check(a.written()) }
			r.begins = func(text string) bool { return begins(s.text, notations[i%len(servers)], text) }
			return r
		})
	})
}

// begins tells whether a text is the beginning of a value of a schema.
func begins(schema json.RawMessage, notation grammar.Notation, text string) bool {
	g, err := grammar.Compile(context.Background(), grammar.Spec{Kind: grammar.Schema, Text: string(schema), Notation: notation}, match.NewVocabulary(nil, nil), grammar.Limits{})
	if err != nil {
		return false
	}
	_, n := g.Start().NextBytes([]byte(text))
	return n == len(text)
}

// schemaRequest asks for a value of a schema: the number decides the dialect, the temperature and the seed.
func schemaRequest(i int, schema json.RawMessage) *heldRequest {
	const question, most = "Describe something that you know, as an example.", 100
	conversation := []any{map[string]any{"role": "user", "content": question}}
	form := map[string]any{"type": "json_schema", "name": "example", "strict": true, "schema": schema}
	temperature := float64(i%7) / 4
	body := map[string]any{"seed": i, "temperature": temperature}
	add := func(fields map[string]any) map[string]any {
		maps.Copy(body, fields)
		return body
	}
	switch i / 7 % 4 {
	case 0:
		return &heldRequest{path: "/v1/chat/completions", body: add(map[string]any{"messages": conversation, "max_tokens": most, "response_format": map[string]any{"type": "json_schema", "json_schema": form}})}
	case 1:
		return &heldRequest{path: "/v1/completions", body: add(map[string]any{"prompt": question, "max_tokens": most, "guided_json": schema})}
	case 2:
		return &heldRequest{path: "/v1/responses", body: add(map[string]any{"input": question, "max_output_tokens": most, "store": false, "text": map[string]any{"format": form}})}
	default:
		return &heldRequest{path: "/v1/messages", body: add(map[string]any{"messages": conversation, "max_tokens": most, "temperature": min(temperature, 1), // more is refused
			"output_config": map[string]any{"format": map[string]any{"type": "json_schema", "schema": schema}}})}
	}
}

// The schemas of this test have each keyword and each format that docs/SCHEMAS.md says is held.
func TestOwnSchemasHaveAllKeywords(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "SCHEMAS.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, s := range ownSchemas(t) {
		all.Write(s.text)
	}
	keywords, formats, _ := strings.Cut(string(page), "## Formats")
	named := regexp.MustCompile("(?m)^\\| `(\\S+)` .*\\| (.*) \\|$")
	for _, row := range named.FindAllStringSubmatch(keywords, -1) {
		if !strings.Contains(all.String(), fmt.Sprintf(`"%s":`, row[1])) {
			t.Errorf("no schema has the keyword %s", row[1])
		}
	}
	for _, row := range named.FindAllStringSubmatch(formats, -1) {
		if held := strings.Contains(all.String(), fmt.Sprintf(`"format": "%s"`, row[1])); held != (row[2] == "yes") {
			t.Errorf("a schema has the format %s: %t, which is held: %s", row[1], held, row[2])
		}
	}
}
