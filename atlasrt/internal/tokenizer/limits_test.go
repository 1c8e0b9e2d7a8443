package tokenizer

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/internal/cputime"
)

// small is a file with nothing in it but what a case replaces.
const small = `{"added_tokens": [], "normalizer": null, "pre_tokenizer": null, "post_processor": null,
	"decoder": {"type": "Fuse"}, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}`

func TestHostileFilesAreRefused(t *testing.T) {
	cases := []struct{ name, old, new, want string }{
		{"not JSON", "{", "[", "invalid character"},
		{"not UTF-8", `"a"`, "\"\xff\"", "not UTF-8"},
		{"no model", `"model"`, `"modell"`, "vocab: want an object"},
		{"model type", `"BPE"`, `"Unigram"`, `type "Unigram" is not supported`},
		{"dropout", `"type": "BPE"`, `"type": "BPE", "dropout": 0.1`, "dropout"},
		{"id too large", `"ab": 2`, `"ab": 1000000000`, "ids are 0 to 1999999"},
		{"id negative", `"ab": 2`, `"ab": -1`, "ids are 0 to 1999999"},
		{"id fraction", `"ab": 2`, `"ab": 2.5`, `token "ab"`},
		{"ids not dense", `"ab": 2`, `"ab": 1999999`, "dense"},
		{"token too long", `"ab": 2`, `"ab": 2, "` + strings.Repeat("x", 70_000) + `": 3`, "at most 65536"},
		{"merge of one", `"a b"`, `"ab"`, "not two tokens"},
		{"merge of three", `"a b"`, `"a b a"`, "not two tokens"},
		{"merge of numbers", `"a b"`, `[1, 2]`, "number 0"},
		{"merges no list", `["a b"]`, `{"a": "b"}`, "want a list"},
		{"vocabulary no object", `{"a": 0, "b": 1, "ab": 2}`, `["a"]`, "want an object"},
		{"added id", `"added_tokens": []`, `"added_tokens": [{"id": 4000000000, "content": "x"}]`, "ids are 0 to 1999999"},
		{"added token long", `"added_tokens": []`, `"added_tokens": [{"id": 3, "content": "` + strings.Repeat("x", 5000) + `"}]`, "more than 4096 bytes"},
		{"normalizer", `"normalizer": null`, `"normalizer": {"type": "Precompiled"}`, `normalizer: type "Precompiled" is not supported`},
		{"nested normalizer", `"normalizer": null`, `"normalizer": {"type": "Sequence", "normalizers": [{"type": "Nmt"}]}`, `type "Nmt"`},
		{"pre-tokenizer", `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "UnicodeScripts"}`, `pre_tokenizer: type "UnicodeScripts"`},
		{"behavior", `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "X"}`, `behavior "X"`},
		{"pattern", `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"}`, `pattern "(a"`},
		{"no pattern", `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Split", "behavior": "Isolated"}`, "pattern: want"},
		{"pattern too long", `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "` + strings.Repeat("a", 20_000) + `"}, "behavior": "Isolated"}`, "at most 16384"},
		{"post-processor", `"post_processor": null`, `"post_processor": {"type": "Spliced"}`, `post_processor: type "Spliced"`},
		{"frame", `"post_processor": null`, `"post_processor": {"type": "BertProcessing", "sep": ["b", 9], "cls": ["a", 0]}`, "BertProcessing: ids 0 and 9"},
		{"frame of no ids", `"post_processor": null`, `"post_processor": {"type": "RobertaProcessing"}`, "RobertaProcessing: cls and sep"},
		{"bytes twice", `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "ByteLevel"}]}`, "ByteLevel is there twice"},
		{"blanks behind bytes", `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Metaspace", "replacement": "▁"}]}`, "Metaspace: it stands behind ByteLevel"},
		{"foreign class", `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "[[:alpha:]]"}, "behavior": "Isolated"}`, "POSIX class"},
		{"template", `"post_processor": null`, `"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x"}}, {"Sequence": {}}]}`, "has no ids"},
		{"decoder", `{"type": "Fuse"}`, `{"type": "CTC"}`, `decoder: type "CTC"`},
		{"no decoder", `{"type": "Fuse"}`, `null`, "decoder: there is none"},
		{"strip", `{"type": "Fuse"}`, `{"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 0, "stop": 1}]}`, "Strip"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			file := strings.Replace(small, c.old, c.new, 1)
			if _, err := FromJSON([]byte(file), nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("FromJSON(%.200s)\n got %v\nwant an error with %q", file, err, c.want)
			}
		})
	}
	if _, err := FromJSON([]byte(small), nil); err != nil {
		t.Errorf("FromJSON(%s): %v", small, err)
	}
}

func TestHostileGGUFIsRefused(t *testing.T) {
	three := []string{"a", "b", "ab"}
	cases := []struct {
		name string
		meta GGUF
		want string
	}{
		{"model", GGUF{Model: "t5"}, `model "t5" is not supported`},
		{"pre", GGUF{Model: "gpt2", Pre: "nobodys"}, `pre "nobodys" is not known`},
		{"types", GGUF{Model: "gpt2", Tokens: three, TokenTypes: []int32{1}}, "want as many of each"},
		{"long token", GGUF{Model: "llama", Tokens: []string{strings.Repeat("x", 5000)}, Scores: make([]float32, 1)}, "at most 1024"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := FromGGUF(c.meta); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

// A run of one letter, of marks or of blanks, must not take quadratic time (T087).
func TestLongRunsTakeLittleTime(t *testing.T) {
	for _, c := range published {
		tokenizer := open(t, c.name)
		for _, run := range []string{"a", "ab", " ", "\n", "\u0301", "<", "中", "1", "\U0001f642", "あA", "'"} {
			text := strings.Repeat(run, 200_000/len(run))
			var ids []int32
			if took := cputime.Of(func() { ids = tokenizer.Encode(text, true) }); took > 10*time.Second {
				t.Errorf("%s: %d bytes of %q take %v", c.name, len(text), run, took)
			}
			if got := tokenizer.Decode(ids, false); got != text && c.name != "qwen3" { // which composes
				t.Errorf("%s: %d bytes of %q come back as %d bytes", c.name, len(text), run, len(got))
			}
		}
	}
}

// A pattern that takes exponential time is stopped. That ends what strangers asked for with an error; what the program asks for
// itself gets the text as one word.
func TestBacktrackingHasABound(t *testing.T) {
	file := strings.Replace(small, `"pre_tokenizer": null`,
		`"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+(?!a)c"}, "behavior": "Isolated"}`, 1)
	tokenizer, err := FromJSON([]byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := `regexp2 "(a+)+(?!a)c"`; tokenizer.splitter != want {
		t.Errorf("splitter %q, want %q", tokenizer.splitter, want)
	}
	text := strings.Repeat("a", 64) + "b"
	took := cputime.Of(func() {
		if ids := tokenizer.Encode(text, true); len(ids) != 64 {
			t.Errorf("got %d tokens, want 64: 63 times a, then ab", len(ids))
		}
		for _, text := range []string{text, text + strings.Repeat(" b", longSearch/2)} { // found at once, and one by one
			ids, err := tokenizer.EncodeWithin(t.Context(), text, true, math.MaxInt)
			if e, ok := errors.AsType[*Intractable](err); !ok || ids != nil || e.Pattern != "(a+)+(?!a)c" || e.Bytes != len(text) {
				t.Errorf("%d bytes: got %d tokens and %v, want an *Intractable", len(text), len(ids), err)
			}
		}
	})
	if took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestManyGoroutinesShareATokenizer(t *testing.T) {
	tokenizer := open(t, "llama2")
	all := references(t, "llama2")[100:600]
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for _, want := range all {
				if got := tokenizer.Encode(want.Text, true); len(got) != len(want.IDs) {
					t.Errorf("Encode(%q) has %d tokens, want %d", want.Text, len(got), len(want.IDs))
				}
			}
		})
	}
	group.Wait()
}
