package tokenizer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/internal/testdata"
)

// published are the tokenizers that tools/testdata/tokenizers.py records.
var published = []struct{ name, splitter string }{
	{"qwen3", "qwen2"},
	{"gemma3", `string " "`},
	{"llama3", "llama-3"},
	{"llama2", "none"},
	{"deepseek_v3", "digits, han-kana, deepseek-v3"},
	{"gptoss", "o200k"},
}

// reference is what HuggingFace's library makes of a text.
type reference struct {
	Text    string  `json:"text"`
	IDs     []int32 `json:"ids"`
	Decoded *string `json:"decoded"`
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(testdata.Cache(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func open(t testing.TB, name string) *Tokenizer {
	t.Helper()
	tokenizer, err := FromJSON(read(t, "tokenizers/"+name+"/tokenizer.json"), read(t, "tokenizers/"+name+"/tokenizer_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

func references(t testing.TB, name string) []reference {
	t.Helper()
	var all []reference
	lines := bufio.NewScanner(bytes.NewReader(read(t, "tokenizers/"+name+"/corpus.jsonl")))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r reference
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.Decoded == nil {
			r.Decoded = &r.Text
		}
		all = append(all, r)
	}
	if len(all) < 10_000 {
		t.Fatalf("%s: %d texts, want 10,000 (run `make testdata`)", name, len(all))
	}
	return all
}

func TestPublishedTokenizersAgreeWithHuggingFace(t *testing.T) {
	for _, c := range published {
		t.Run(c.name, func(t *testing.T) {
			tokenizer := open(t, c.name)
			if got := tokenizer.Splitter(); got != c.splitter {
				t.Errorf("Splitter() = %q, want %q", got, c.splitter)
			}
			wrong := 0
			check := func(ok bool, format string, args ...any) {
				if ok {
					return
				}
				if wrong++; wrong <= 10 {
					t.Errorf(format, args...)
				}
			}
			all := references(t, c.name)
			for _, want := range all {
				got := tokenizer.Encode(want.Text, true)
				check(slices.Equal(got, want.IDs), "Encode(%+.200q)\n got %v\nwant %v", want.Text, short(got), short(want.IDs))
				text := tokenizer.Decode(want.IDs, false)
				check(text == *want.Decoded, "Decode(%v)\n got %+.200q\nwant %+.200q", short(want.IDs), text, *want.Decoded)
				pushed := pushAll(tokenizer.NewDetokenizer(false), want.IDs)
				check(pushed == text, "Detokenizer(%v)\n got %+.200q\nwant %+.200q", short(want.IDs), pushed, text)
			}
			t.Logf("%d of %d texts differ", wrong, len(all))
		})
	}
}

// pushAll is what a detokenizer returns, piece by piece.
func pushAll(d *Detokenizer, ids []int32) string {
	var out strings.Builder
	for _, id := range ids {
		out.WriteString(d.Push(id))
	}
	out.WriteString(d.Flush())
	return out.String()
}

func short(ids []int32) []int32 { return ids[:min(len(ids), 60)] }
