package parse

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/match"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// realTokenizer is a published tokenizer and its vocabulary.
func realTokenizer(t testing.TB, name string) (*tokenizer.Tokenizer, *match.Vocabulary) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(testdata.Cache(t, "tokenizers"), name, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.FromFiles(tokenizer.Files{Tokenizer: file})
	if err != nil {
		t.Fatal(err)
	}
	return tok, match.NewVocabulary(tok.Bytes(tok.VocabSize()), tok.IsSpecial)
}

// TestCallsInRealTokens holds calls to forms in the tokens that a model writes, of which a mark may be a part or have several.
func TestCallsInRealTokens(t *testing.T) {
	tok, v := realTokenizer(t, "qwen3")
	each(t, func(t *testing.T, w written, config Config) {
		config.Declared = strictTools(t)
		answer := w.call("f", "a") + w.joint + w.call("g", "b")
		if w.tools == "minimax" {
			answer = w.call("f", "a")
		}
		for _, c := range []Choice{{}, {Required: true}} {
			g, err := grammar.Compile(context.Background(), config.Tools.Form(config.Declared, c), v, grammar.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			s, mask := g.Start(), make([]uint32, v.Words())
			for i, id := range tok.Encode(answer, true) {
				if err := s.Mask(mask); err != nil {
					t.Fatal(err)
				}
				next, ok := s.Next(id)
				if !ok || mask[id/32]&(1<<(id%32)) == 0 {
					t.Fatalf("%+v: token %d, %q, of %q may come: %v, and by its mask %v", c, i, tok.TokenBytes(id), answer, ok, !ok)
				}
				s = next
			}
			if !s.Done() {
				t.Errorf("%+v: the answer may not end behind %q", c, answer)
			}
		}
	})
}

// BenchmarkForm compiles the form of calls of 20 tools up to the first mask, with a vocabulary of 151,000 tokens.
func BenchmarkForm(b *testing.B) {
	schema, err := jsontree.Decode([]byte(weather), jsontree.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	var tools []chat.Tool
	for i := range 20 {
		tools = append(tools, chat.Tool{Name: "weather_" + string(rune('a'+i)), Parameters: schema, Strict: true})
	}
	_, v := realTokenizer(b, "qwen3")
	mask := make([]uint32, v.Words())
	for _, name := range ToolFormats() {
		for choice, c := range map[string]Choice{"auto": {}, "required": {Required: true}} {
			b.Run(name+"/"+choice, func(b *testing.B) {
				for b.Loop() {
					g, err := grammar.Compile(context.Background(), FindTools(name).Form(tools, c), v, grammar.Limits{})
					if err != nil {
						b.Fatal(err)
					}
					if err := g.Start().Mask(mask); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
