package tokenizer

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzTokenizerJSON(f *testing.F) {
	f.Add([]byte(small), "ab ba")
	for _, replace := range [][2]string{
		{`"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+b"}, "behavior": "MergedWithNext"}`},
		{`"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "ByteLevel"}]}`},
		{`"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true}`},
		{`"normalizer": null`, `"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Prepend", "prepend": "▁"}]}`},
		{`"added_tokens": []`, `"added_tokens": [{"id": 3, "content": "<s>", "special": true, "lstrip": true, "normalized": true}]`},
		{`"type": "BPE"`, `"type": "BPE", "byte_fallback": true, "unk_token": "a", "ignore_merges": true`},
		{`"pre_tokenizer": null`, `"pre_tokenizer": {"type": "ByteLevel"}`},
		{`"normalizer": null`, `"normalizer": {"type": "Sequence", "normalizers": [{"type": "Lowercase"}, {"type": "Replace", "pattern": {"String": "bb"}, "content": "a"}]}`},
		{`["a b"]`, `[["a", "b"], ["\u0061", "b"]]`},
		{`"ab": 2`, `"ab": 1000000000`},
		{`{"type": "Fuse"}`, `{"type": "ByteLevel"}`},
	} {
		f.Add([]byte(strings.Replace(small, replace[0], replace[1], 1)), "ab <s> ab")
	}
	f.Fuzz(func(t *testing.T, file []byte, text string) {
		tokenizer, err := FromJSON(file, nil)
		if err != nil {
			return
		}
		text = text[:min(len(text), 64)]
		ids := tokenizer.Encode(text, true)
		for _, id := range append(ids, tokenizer.encodePrompt(text, []Range{{1, 5}})...) {
			if id < 0 || int(id) >= tokenizer.VocabSize() {
				t.Fatalf("Encode(%q) has the id %d of no token", text, id)
			}
		}
		if problem := checkBound(tokenizer, text, ids); problem != "" {
			t.Fatal(problem)
		}
		if decoded := tokenizer.Decode(ids, false); !utf8.ValidString(decoded) {
			t.Fatalf("Decode(%v) = %q, which is not UTF-8", ids, decoded)
		}
	})
}

func TestWrongTypesAreNamed(t *testing.T) {
	cases := []struct{ name, file, want string }{
		{"a list", `[]`, "tokenizer.json: the whole is of type array"},
		{"a vocabulary of numbers", `{"added_tokens": {"a": 1}}`, "tokenizer.json: added_tokens is of type object"},
		{"a number for a name", `{"model": {"type": 5}}`, "tokenizer.json: model.type is of type number"},
		{"cut off", `{"model": {`, "tokenizer.json: unexpected end"},
	}
	for _, c := range cases {
		if _, err := FromJSON([]byte(c.file), nil); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}
