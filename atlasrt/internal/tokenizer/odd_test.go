package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

func TestOddVocabulariesOfGGUF(t *testing.T) {
	types := func(kinds ...int32) []int32 { return kinds }
	cases := []struct {
		name, text, note string
		meta             GGUF
		ids              []int32
		decoded          map[int32]string
	}{
		{"empty tokens", "ab", "tokens that are empty: 2", GGUF{Tokens: []string{"", "a", "b", ""}}, []int32{1, 2}, map[int32]string{0: "", 1: "a", 3: ""}},
		{"doubled tokens", "ab", "tokens that have two ids: 1", GGUF{Tokens: []string{"a", "b", "a"}}, []int32{2, 1}, map[int32]string{0: "a", 2: "a"}},
		{"doubled as control", "ab", "two ids: 1", GGUF{Tokens: []string{"a", "b", "ab", "ab"}, TokenTypes: types(1, 1, 1, 3), Merges: []string{"a b"}}, []int32{3}, map[int32]string{2: "ab", 3: "ab"}},
		{"control tokens twice", "<s>a", "two ids: 1", GGUF{Tokens: []string{"a", "<s>", "<s>"}, TokenTypes: types(1, 3, 3)}, []int32{2, 0}, map[int32]string{1: "<s>", 2: "<s>"}},
		{"not UTF-8", "ab", "tokens that are not UTF-8: 2", GGUF{Tokens: []string{"a", "\xff\xfe", "b", "\xe2\x96"}, TokenTypes: types(1, 1, 1, 3)}, []int32{0, 2}, map[int32]string{1: "\uFFFD\uFFFD", 2: "b"}},
		{"merges of no token", "ab", "merges of what is no token: 3", GGUF{Tokens: []string{"a", "b", "ab"}, Merges: []string{"a c", "b a", "ab", "a b"}}, []int32{2}, nil},
		{"ids of no token", "a", "", GGUF{Tokens: []string{"a"}, EOS: new(uint32(9)), Mask: new(uint32(1 << 31))}, []int32{0}, map[int32]string{9: ""}},
		{"turn's end of type normal", "a<|im_end|>", `as control tokens by their text: "<|im_end|>" (1)`, GGUF{Tokens: []string{"a", "<|im_end|>"}, TokenTypes: types(1, 1)}, []int32{0, 1}, map[int32]string{1: "<|im_end|>"}},
		{"turn's end without types", "a<|eot_id|>", `by their text: "<|eot_id|>" (1)`, GGUF{Tokens: []string{"a", "<|eot_id|>"}}, []int32{0, 1}, nil},
		{"turn's beginning of type normal", "<|im_start|>a", `"<|im_start|>" (1)`, GGUF{Tokens: []string{"a", "<|im_start|>"}, TokenTypes: types(1, 1)}, []int32{1, 0}, map[int32]string{1: "<|im_start|>"}},
		{"named token of type normal", "a<end>", `"<end>" (1)`, GGUF{Tokens: []string{"a", "<end>"}, EOT: new(uint32(1))}, []int32{0, 1}, map[int32]string{1: "<end>"}},
		{"named text", "ab", "", GGUF{Tokens: []string{"a", "b"}, EOT: new(uint32(1))}, []int32{0, 1}, map[int32]string{1: "b"}},
		{"empty control token", "a", "empty: 1", GGUF{Tokens: []string{"a", ""}, TokenTypes: types(1, 3)}, []int32{0}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.meta.Model, c.meta.Pre = "gpt2", "gpt-2"
			tokenizer, err := FromGGUF(c.meta)
			if err != nil {
				t.Fatal(err)
			}
			if got := tokenizer.Encode(c.text, true); !slices.Equal(got, c.ids) {
				t.Errorf("Encode(%q) = %v, want %v", c.text, got, c.ids)
			}
			for id, want := range c.decoded {
				if got := tokenizer.Decode([]int32{id}, false); got != want {
					t.Errorf("Decode(%d) = %q, want %q", id, got, want)
				}
			}
			if notes := strings.Join(tokenizer.Notes(), "\n"); !strings.Contains(notes, c.note) {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
			if _, ok := tokenizer.EOS(); ok {
				t.Error("EOS() is a token; want none")
			}
		})
	}
}

// Text that a doubled control token spells stays text where it is data.
func TestDoubledTokensStayApart(t *testing.T) {
	tokenizer, err := FromGGUF(GGUF{Model: "gpt2", Pre: "gpt-2", Tokens: []string{"a", "b", "ab", "ab"}, TokenTypes: []int32{1, 1, 1, 3}, Merges: []string{"a b"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tokenizer.Encode("ab", false), []int32{2}; !slices.Equal(got, want) {
		t.Errorf("data: got %v, want %v, the plain one of the two", got, want)
	}
}

func TestOddVocabulariesOfJSON(t *testing.T) {
	cases := []struct {
		name, old, new, note string
		ids                  []int32
		decoded              map[int32]string
	}{
		{"id of two tokens", `"ab": 2`, `"ab": 2, "ba": 2`, "ids that have two tokens: 1", []int32{2}, map[int32]string{2: "ab"}},
		{"letter with the id of another", `"b": 1, "ab": 2`, `"x": 1, "b": 1, "ab": 2`, "ids that have two tokens: 1", []int32{2}, map[int32]string{1: "x"}},
		{"token of two ids", `"ab": 2`, `"a": 2, "ab": 3`, "tokens that have two ids: 1", []int32{3}, map[int32]string{0: "a", 2: "a"}},
		{"empty token", `"ab": 2`, `"ab": 2, "": 3`, "empty: 1", []int32{2}, map[int32]string{3: ""}},
		{"hole", `"ab": 2`, `"ab": 7`, "", []int32{7}, map[int32]string{4: ""}},
		{"merges of no token", `"a b"`, `"a c", "b a", "a b"`, "merges of what is no token: 2", []int32{2}, nil},
		{"added id taken", `"added_tokens": []`, `"added_tokens": [{"id": 1, "content": "x"}]`, `tokenizer.json gives "x" the id 1: it has 3`, []int32{2}, map[int32]string{1: "b", 3: "x"}},
		{"unknown token is none", `"type": "BPE"`, `"type": "BPE", "unk_token": "<unk>"`, `unk_token "<unk>" is no token`, []int32{2}, nil},
		{"no decoder", `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"}`, "Metaspace is assumed", []int32{2}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			file := strings.Replace(small, c.old, c.new, 1)
			if c.name == "no decoder" {
				file = strings.Replace(file, `{"type": "Fuse"}`, "null", 1)
			}
			tokenizer, err := FromJSON([]byte(file), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := tokenizer.Encode("ab", true); !slices.Equal(got, c.ids) {
				t.Errorf("Encode(ab) = %v, want %v", got, c.ids)
			}
			for id, want := range c.decoded {
				if got := tokenizer.Decode([]int32{id}, false); got != want {
					t.Errorf("Decode(%d) = %q, want %q", id, got, want)
				}
			}
			if notes := strings.Join(tokenizer.Notes(), "\n"); !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
		})
	}
}

// A text fits by the longest token that its ids stand for, also where an id stands for two.
func TestLongTokensOfSharedIDsFit(t *testing.T) {
	file := strings.Replace(small, `"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]`,
		`"vocab": {"x": 0, "y": 1, "xx": 2, "yyyy": 1, "xxxx": 0}, "merges": ["x x", "xx xx"]`, 1)
	file = strings.Replace(file, `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}`, 1)
	tokenizer, err := FromJSON([]byte(strings.Replace(file, `"Fuse"`, `"ByteLevel"`, 1)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tokenizer.EncodeWithin(t.Context(), "xxxx", true, 1); !slices.Equal(got, []int32{0}) || err != nil {
		t.Errorf("got %v, %v; want the one token 0", got, err)
	}
}

func TestTokensBeforeAText(t *testing.T) {
	cases := []struct {
		name, processor string
		want            []int32
		eos             int32
	}{
		{"two", `{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "a"}}, {"SpecialToken": {"id": "b"}}, {"Sequence": {}}],
			"special_tokens": {"a": {"ids": [0]}, "b": {"ids": [1]}}}`, []int32{0, 1}, -1},
		{"two ids of one", `{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "a"}}, {"Sequence": {}}], "special_tokens": {"a": {"ids": [2, 0]}}}`, []int32{2, 0}, -1},
		{"Roberta", `{"type": "RobertaProcessing", "sep": ["b", 1], "cls": ["a", 0]}`, []int32{0}, 1},
		{"Bert", `{"type": "BertProcessing", "sep": ["ab", 2], "cls": ["b", 1]}`, []int32{1}, 2},
		{"none", `{"type": "ByteLevel"}`, nil, -1},
	}
	for _, c := range cases {
		tokenizer, err := FromJSON([]byte(strings.Replace(small, `"post_processor": null`, `"post_processor": `+c.processor, 1)), nil)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if eos, _ := tokenizer.EOS(); !slices.Equal(tokenizer.Before(), c.want) || eos != c.eos {
			t.Errorf("%s: before a text %v, eos %d; want %v, %d", c.name, tokenizer.Before(), eos, c.want, c.eos)
		}
	}
}
