package tokenizer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/atlas-inference/atlas/internal/testdata"
)

// published are the tokenizers that tools/testdata/tokenizers.py records.
var published = []struct {
	name, splitter string
	notes          int
}{
	{"qwen3", "qwen2", 0},
	{"gemma3", `string " "`, 0},
	{"llama3", "llama-3", 0},
	{"llama2", "none", 0},
	{"deepseek_v3", "digits, han-kana, deepseek-v3", 0},
	{"gptoss", "o200k", 0},
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

// opened holds the published tokenizers that some test has read.
var opened sync.Map

func open(t testing.TB, name string) *Tokenizer {
	t.Helper()
	if tokenizer, ok := opened.Load(name); ok {
		return tokenizer.(*Tokenizer)
	}
	tokenizer, err := FromJSON(read(t, "tokenizers/"+name+"/tokenizer.json"), read(t, "tokenizers/"+name+"/tokenizer_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	opened.Store(name, tokenizer)
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
	return all
}

func TestPublishedTokenizersAgreeWithHuggingFace(t *testing.T) {
	for _, c := range published {
		t.Run(c.name, func(t *testing.T) {
			tokenizer := open(t, c.name)
			if got := tokenizer.splitter; got != c.splitter {
				t.Errorf("splitter %q, want %q", got, c.splitter)
			}
			if notes := tokenizer.Notes(); len(notes) != c.notes {
				t.Errorf("notes %q, want %d", notes, c.notes)
			}
			all := references(t, c.name)
			if len(all) < 10_000 {
				t.Fatalf("%d texts, want 10,000 (run `make testdata`)", len(all))
			}
			compare(t, tokenizer, all)
		})
	}
}

// TestVariantsAgreeWithHuggingFace goes over the parts of files that none of the published ones has.
func TestVariantsAgreeWithHuggingFace(t *testing.T) {
	bases := map[string]map[string]json.RawMessage{}
	for _, name := range []string{"deepseek_v3", "llama2"} {
		var base map[string]json.RawMessage
		if err := json.Unmarshal(read(t, "tokenizers/"+name+"/tokenizer.json"), &base); err != nil {
			t.Fatal(err)
		}
		bases[name] = base
	}
	for _, name := range variants {
		t.Run(name, func(t *testing.T) {
			tokenizer, err := FromJSON(variant(t, bases, name), nil)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, tokenizer, references(t, name))
		})
	}
}

var variants = []string{
	"behind_bytes", "between_delimiters", "blanks", "contiguous", "digit_cuts", "digit_groups", "digits_from_end", "flags", "flags_nfkc", "gpt2",
	"inverted", "metaspace_always", "metaspace_first", "metaspace_never", "nested_class", "nfc", "nfd", "nfkc", "possessive", "punctuation", "qwen35",
	"removed", "smollm", "tekken", "unknown_apart", "unknown_fused", "with_previous", "without_han", "words", "words_in_groups",
}

// variant is a published tokenizer.json with some parts replaced, those of the model one by one.
func variant(t *testing.T, bases map[string]map[string]json.RawMessage, name string) []byte {
	t.Helper()
	var changes map[string]json.RawMessage
	var base string
	if err := json.Unmarshal(read(t, "tokenizers/"+name+"/tokenizer.json"), &changes); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(changes["base"], &base); err != nil {
		t.Fatal(err)
	}
	file := maps.Clone(bases[base])
	for key, value := range changes {
		if key == "model" {
			var model, some map[string]json.RawMessage
			if err := errors.Join(json.Unmarshal(file[key], &model), json.Unmarshal(value, &some)); err != nil {
				t.Fatal(err)
			}
			maps.Copy(model, some)
			value, _ = json.Marshal(model)
		}
		file[key] = value
	}
	data, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// compare reports the first few texts that the tokenizer and HuggingFace's library see differently.
func compare(t *testing.T, tokenizer *Tokenizer, all []reference) {
	t.Helper()
	wrong := 0
	check := func(ok bool, format string, args ...any) {
		t.Helper()
		if ok {
			return
		}
		if wrong++; wrong <= 5 {
			t.Errorf(format, args...)
		}
	}
	for _, want := range all {
		got := tokenizer.Encode(want.Text, true)
		check(slices.Equal(got, want.IDs), "Encode(%+.200q)\n got %v\nwant %v", want.Text, short(got), short(want.IDs))
		text := tokenizer.Decode(want.IDs, false)
		check(text == *want.Decoded, "Decode(%v)\n got %+.200q\nwant %+.200q", short(want.IDs), text, *want.Decoded)
		pushed := pushAll(tokenizer.NewDetokenizer(false), want.IDs)
		check(pushed == text, "Detokenizer(%v)\n got %+.200q\nwant %+.200q", short(want.IDs), pushed, text)
	}
	t.Logf("%d of %d texts differ", wrong, len(all))
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
