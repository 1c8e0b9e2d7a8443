// Command schemas writes docs/SCHEMAS.md: which keywords of JSON Schema are held to, and how many schemas of a file of cases have them:
//
//	go run ./atlasrt/internal/judge/schemas CASES.jsonl > docs/SCHEMAS.md
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/match"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/schema"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/judge"
)

func main() {
	err := errors.New("usage: schemas CASES.jsonl")
	if len(os.Args) == 2 {
		err = run(os.Args[1], os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "schemas:", err)
		os.Exit(1)
	}
}

// run writes the page about the cases in a file.
func run(path string, to io.Writer) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	cases, err := judge.Read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	c := counts{having: map[string]int{}, refused: map[string]int{}}
	for i := range cases {
		if err := c.add(&cases[i]); err != nil {
			return fmt.Errorf("%s: %s: %w", path, cases[i].Name, err)
		}
	}
	_, err = io.WriteString(to, c.page())
	return err
}

// counts are of schemas.
type counts struct {
	schemas, refusals int
	having            map[string]int // by keyword; formats as format/NAME
	refused           map[string]int // likewise, by the keyword that the error names
}

func (c *counts) add(one *judge.Case) error {
	root, err := jsontree.Decode(one.Schema, jsontree.Limits{Depth: 256})
	if err != nil {
		return err
	}
	found := map[string]bool{}
	keywordsOf(root, found)
	for keyword := range found {
		c.having[keyword]++
	}
	c.schemas++
	_, err = grammar.Compile(context.Background(), grammar.Spec{Kind: grammar.Schema, Text: string(one.Schema)}, match.NewVocabulary(nil, nil), grammar.Limits{})
	if err != nil {
		c.refusals++
		var unsupported *schema.Unsupported
		if errors.As(err, &unsupported) {
			c.refused[unsupported.Keyword]++
		}
	}
	return nil
}

// keywordsOf adds what a schema and those within it have.
func keywordsOf(v jsontree.Value, found map[string]bool) {
	o, _ := v.(*jsontree.Object)
	for name, value := range o.All() {
		found[name] = true
		if format, ok := value.(jsontree.String); ok && name == "format" {
			found["format/"+string(format)] = true
		}
		switch {
		case slices.Contains(maps, name):
			members, _ := value.(*jsontree.Object)
			for _, member := range members.All() {
				keywordsOf(member, found)
			}
		case slices.Contains(schemas, name):
			keywordsOf(value, found)
			list, _ := value.(jsontree.Array)
			for _, item := range list {
				keywordsOf(item, found)
			}
		}
	}
}

// Keywords that hold schemas: by name, or one or a list.
var (
	maps    = strings.Fields("properties patternProperties dependencies dependentSchemas definitions $defs")
	schemas = strings.Fields(`items prefixItems additionalItems unevaluatedItems contains additionalProperties unevaluatedProperties propertyNames
		allOf anyOf oneOf not if then else`)
)
