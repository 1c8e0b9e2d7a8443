package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/match"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/schema"
	"github.com/atlas-inference/atlas/internal/testdata"
)

func TestPageIsCurrent(t *testing.T) {
	var want bytes.Buffer
	if err := run(testdata.Shared(t, "jsonschema/maskbench.jsonl"), &want); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "SCHEMAS.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("docs/SCHEMAS.md is not current (run make schemas)")
	}
}

// No keyword of the page is one that nobody knows.
func TestKeywordsAreKnown(t *testing.T) {
	for _, group := range keywords {
		for _, k := range group.list {
			for name := range strings.FieldsSeq(k.names) {
				if unread := schema.FindUnread([]byte(`{"`+name+`":{}}`), schema.Limits{}); len(unread) > 0 {
					t.Error(unread[0])
				}
			}
		}
	}
}

// Formats are refused or held as the page says.
func TestFormats(t *testing.T) {
	v := match.NewVocabulary(nil, nil)
	for _, k := range formats {
		for name := range strings.FieldsSeq(k.names) {
			g, err := grammar.Compile(context.Background(), grammar.Spec{Kind: grammar.Schema, Text: `{"type": "string", "format": "` + name + `"}`}, v, grammar.Limits{})
			var unsupported *schema.Unsupported
			if refused := errors.As(err, &unsupported); refused != (k.held != "") {
				t.Errorf("%s: got %v", name, err)
			}
			if err != nil {
				continue
			}
			if len(g.Notes()) > 0 {
				t.Errorf("%s: noted is %v", name, g.Notes())
			}
			if end, n := g.Start().NextBytes([]byte("\"\\n\"")); n == 4 && end.Done() {
				t.Errorf("%s: it may be a line end", name)
			}
		}
	}
}
