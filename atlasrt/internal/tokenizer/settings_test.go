package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// bytesFile is a tokenizer.json whose first 256 tokens are the bytes; added is the list of its added tokens.
func bytesFile(added string) []byte {
	var vocab strings.Builder
	for b := range 256 {
		if b > 0 {
			vocab.WriteByte(',')
		}
		fmt.Fprintf(&vocab, "%q: %d", toAlphabet(string([]byte{byte(b)})), b)
	}
	return []byte(`{"added_tokens": [` + added + `], "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"},
		"model": {"type": "BPE", "vocab": {` + vocab.String() + `}, "merges": []}}`)
}

// flags is an added token as tokenizer_config.json writes it.
func flags(content, rest string) string {
	return `{"content": "` + content + `", "lstrip": false, "rstrip": false, "normalized": false, "single_word": false, "special": true` + rest + `}`
}

const endOfText = `{"id": 256, "content": "<|endoftext|>", "special": true}`

// The ids and flags are those that transformers 5.24 gives for the same files.
func TestTokensOfOtherFilesAreAdded(t *testing.T) {
	const text = "<|a|> <|b|>x"
	cases := []struct {
		name, added, config, names, more string
		ids                              []int32
		special                          string // ids of control tokens
		note                             string
	}{
		{"decoder alone", endOfText, `{"added_tokens_decoder": {"256": ` + flags("<|a|>", `, "lstrip": true`) + `, "257": ` + flags("<|b|>", `, "special": false, "rstrip": true`) + `}}`, "", "",
			[]int32{257, 32, 258, 120}, "[256 257]", `added_tokens_decoder gives "<|a|>" the id 256: it has 257`},
		{"ids far apart", endOfText, `{"added_tokens_decoder": {"300": ` + flags("<|a|>", "") + `, "290": ` + flags("<|b|>", "") + `}}`, "", "",
			[]int32{258, 32, 257, 120}, "[256 257 258]", "290"},
		{"other flags", `{"id": 256, "content": "<|a|>", "special": true}`, `{"added_tokens_decoder": {"256": ` + flags("<|a|>", `, "special": false`) + `, "257": ` + flags("<|b|>", "") + `}}`, "", "",
			[]int32{256, 32, 257, 120}, "[257]", "other flags"},
		{"another token of the id", `{"id": 256, "content": "<|a|>", "special": true}`, `{"added_tokens_decoder": {"256": ` + flags("<|z|>", "") + `, "257": ` + flags("<|b|>", "") + `}}`, "", "",
			[]int32{256, 32, 258, 120}, "[256 257 258]", `"<|z|>" the id 256: it has 257`},
		{"another id of the token", `{"id": 256, "content": "<|a|>", "special": true}`, `{"added_tokens_decoder": {"260": ` + flags("<|a|>", `, "lstrip": true, "rstrip": true`) + `, "257": ` + flags("<|b|>", "") + `}}`, "", "",
			[]int32{256, 257, 120}, "[256 257]", "the ids 256 and 260"},
		{"flags left out", endOfText, `{"added_tokens_decoder": {"257": {"content": "<|a|>"}}}`, "", "", []int32{257, 32, 60, 124, 98, 124, 62, 120}, "[256]", ""},
		{"names", endOfText, `{"pad_token": "<|a|>", "bos_token": "<|b|>", "unk_token": "zz", "image_token": "<|img|>"}`, "", "",
			[]int32{259, 32, 257, 120}, "[256 257 258 259 260]", `pad_token is "<|a|>", which the vocabulary lacks: it gets the id 259`},
		{"list", endOfText, `{"additional_special_tokens": ["<|a|>", ` + flags("<|b|>", `, "lstrip": true`) + `]}`, "", "", []int32{257, 258, 120}, "[256 257 258]", ""},
		{"object", endOfText, `{"extra_special_tokens": {"image_token": "<|b|>", "audio_token": "<|a|>"}}`, "", "", []int32{258, 32, 257, 120}, "[256 257 258]", ""},
		{"object by its other name", endOfText, `{"model_specific_special_tokens": {"image_token": "<|b|>", "audio_token": "<|a|>"}}`, "", "", []int32{258, 32, 257, 120}, "[256 257 258]", "image_token"},
		{"map outweighs", endOfText, `{"pad_token": "<|a|>"}`, `{"pad_token": "<|b|>"}`, "", []int32{60, 124, 97, 124, 62, 32, 257, 120}, "[256 257]", `pad_token is "<|b|>", tokenizer_config.json "<|a|>"`},
		{"map beside a decoder", endOfText, `{"added_tokens_decoder": {"257": ` + flags("<|a|>", "") + `}}`, `{"pad_token": "<|b|>"}`, "", []int32{257, 32, 60, 124, 98, 124, 62, 120}, "[256 257]", ""},
		{"added_tokens.json", endOfText, `{"pad_token": "<|a|>"}`, "", `{"<|a|>": 257, "<|b|>": 258}`, []int32{257, 32, 258, 120}, "[256 257]", ""},
		{"added_tokens.json beside a decoder", endOfText, `{"added_tokens_decoder": {"257": ` + flags("<|a|>", "") + `}}`, "", `{"<|b|>": 258}`, []int32{257, 32, 60, 124, 98, 124, 62, 120}, "[256 257]", ""},
		{"order of names", endOfText, `{"x_token": "<|b|>", "cls_token": "<|a|>", "bos_token": "<|c|>"}`, `{"z_token": "<|d|>"}`, "", []int32{258, 32, 260, 120}, "[256 257 258 259 260]", `z_token is "<|d|>", which the vocabulary lacks: it gets the id 259`},
		{"flags of the last name", endOfText, `{"pad_token": {"content": "<|b|>", "lstrip": true, "normalized": false}, "image_token": "<|b|>"}`, "", "", []int32{60, 124, 97, 124, 62, 32, 257, 120}, "[256 257]", "pad_token"},
		{"added_tokens.json with a taken id", endOfText, `{}`, "", `{"<|a|>": 256, "<|b|>": 257}`, []int32{60, 124, 97, 124, 62, 32, 257, 120}, "[256]", `gives "<|a|>" the id 256, which tokenizer.json gives "<|endoftext|>"`},
		{"letter", endOfText, `{"pad_token": "x"}`, "", "", []int32{60, 124, 97, 124, 62, 32, 60, 124, 98, 124, 62, 120}, "[256]", `pad_token is "x", a letter`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := Files{Tokenizer: bytesFile(c.added), Config: []byte(c.config)}
			if c.names != "" {
				f.SpecialTokensMap = []byte(c.names)
			}
			if c.more != "" {
				f.AddedTokens = []byte(c.more)
			}
			tokenizer, err := FromFiles(f)
			if err != nil {
				t.Fatal(err)
			}
			if got := tokenizer.Encode(text, true); !slices.Equal(got, c.ids) {
				t.Errorf("Encode(%q) = %v, want %v", text, got, c.ids)
			}
			var special []int
			for id := range tokenizer.VocabSize() {
				if tokenizer.IsSpecial(int32(id)) {
					special = append(special, id)
				}
			}
			if got := fmt.Sprint(special); got != c.special {
				t.Errorf("control tokens %s, want %s", got, c.special)
			}
			if notes := strings.Join(tokenizer.Notes(), "\n"); !strings.Contains(notes, c.note) || c.note == "" && notes != "" && c.name != "list" && c.name != "object" && c.name != "flags left out" {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
		})
	}
}

// A file with the same to say of many tokens gets one line.
func TestOneLineForManyTokens(t *testing.T) {
	var list, decoder, listed strings.Builder
	for i := range 200 {
		fmt.Fprintf(&list, `"<|n%d|>",`, i)
		fmt.Fprintf(&decoder, `"%d": %s,`, 256+i, flags(fmt.Sprintf("<|n%d|>", i), `, "special": false`))
		fmt.Fprintf(&listed, `{"id": %d, "content": "<|n%d|>", "special": true},`, 256+i, i)
	}
	cases := []struct{ name, added, config, want string }{
		{"new names", endOfText, `{"pad_token": "<|p|>", "additional_special_tokens": [` + list.String() + `"<|z|>"]}`, "pad_token is \"<|p|>\", which the vocabulary lacks: it gets the id 257\n" +
			"additional_special_tokens is \"<|n0|>\", which the vocabulary lacks: it gets the id 258 (and so for 200 more)"},
		{"flags", listed.String() + `{"id": 456, "content": "<|z|>", "special": true}`, `{"added_tokens_decoder": {` + decoder.String() + `"456": ` + flags("<|z|>", "") + `}}`,
			"\"<|n0|>\" has other flags in the tokenizer's configuration than in tokenizer.json: those of the first count (and so for 199 more)"},
		{"moved", endOfText, `{"added_tokens_decoder": {` + decoder.String() + `"456": ` + flags("<|z|>", "") + `}}`, "added_tokens_decoder gives \"<|n0|>\" the id 256: it has 257 (and so for 200 more)"},
		{"no text", endOfText, "{\"eos_token\": [\n  \"x\"\n]}", `eos_token is ["x"], no token, and is not used`},
	}
	for _, c := range cases {
		tokenizer, err := FromFiles(Files{Tokenizer: bytesFile(c.added), Config: []byte(c.config)})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := strings.Join(tokenizer.Notes(), "\n"); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

func TestTokensBeyondTheModelAreLeftOut(t *testing.T) {
	tokenizer, err := FromFiles(Files{Tokenizer: bytesFile(endOfText), Config: []byte(`{"pad_token": "<|a|>", "sep_token": "<|b|>"}`), Rows: 258})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tokenizer.Encode("<|a|><|b|>", true), []int32{60, 124, 97, 124, 62, 257}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: the model has 258 ids, one is free", got, want)
	}
	if notes := strings.Join(tokenizer.Notes(), "\n"); !strings.Contains(notes, `"<|a|>" is left out: the model has 258 ids`) {
		t.Errorf("notes %q do not say that <|a|> is left out", notes)
	}
}

func TestTemplatesGetEverySpecialToken(t *testing.T) {
	cases := []struct{ name, config, names, want string }{
		{"strings and objects", `{"bos_token": "<|endoftext|>", "pad_token": {"content": "<|p|>"}, "unk_token": null, "add_bos_token": false}`, "",
			"[{bos_token [<|endoftext|>] false} {pad_token [<|p|>] false}]"},
		{"lists", `{"additional_special_tokens": ["<|a|>", {"content": "<|b|>"}]}`, "", "[{additional_special_tokens [<|a|> <|b|>] true}]"},
		{"objects of names", `{"extra_special_tokens": {"image_token": "<|i|>"}, "boi_token": "<|j|>"}`, "", "[{boi_token [<|j|>] false} {image_token [<|i|>] false}]"},
		{"map", `{}`, `{"eos_token": {"content": "<|e|>"}, "cls_token": "<|c|>"}`, "[{eos_token [<|e|>] false} {cls_token [<|c|>] false}]"},
		{"class", `{"tokenizer_class": "Qwen2TokenizerFast", "pad_token": null}`, "", "[{eos_token [<|endoftext|>] false} {unk_token [<|endoftext|>] false}]"},
		{"foreign class", `{"tokenizer_class": "LlamaTokenizer"}`, "", "[]"},
	}
	for _, c := range cases {
		f := Files{Tokenizer: bytesFile(endOfText), Config: []byte(c.config)}
		if c.names != "" {
			f.SpecialTokensMap = []byte(c.names)
		}
		tokenizer, err := FromFiles(f)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := fmt.Sprint(tokenizer.SpecialTokens()); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestChatTemplateSpellings(t *testing.T) {
	cases := []struct{ name, template, want, note string }{
		{"object", `{"tool_use": "t", "default": "d"}`, "d", ""},
		{"list", `[{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]`, "d", ""},
		{"only one", `{"chatml": "c"}`, "c", `the only one, "chatml", is used`},
		{"no default", `{"rag": "r", "tool_use": "t"}`, "", "none of the chat templates rag, tool_use is the default"},
		{"empty", `{}`, "", ""},
	}
	for _, c := range cases {
		file := []byte(`{"chat_template": ` + c.template + `}`)
		tokenizer, err := FromJSON(bytesFile(""), file)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got, note := tokenizer.ChatTemplate(); got != c.want || !strings.Contains(note, c.note) || c.note == "" && note != "" {
			t.Errorf("%s: tokenizer_config.json gives %q, %q; want %q, %q", c.name, got, note, c.want, c.note)
		}
		if got, note, err := ParseTemplateFile(file); got != c.want || !strings.Contains(note, c.note) || err != nil {
			t.Errorf("%s: chat_template.json gives %q, %q, %v; want %q, %q", c.name, got, note, err, c.want, c.note)
		}
	}
}

func FuzzFiles(f *testing.F) {
	f.Add([]byte(`{"pad_token": {"content": "<|a|>"}, "added_tokens_decoder": {"256": {"content": "<|b|>"}}}`), []byte(`{}`), []byte(`{}`))
	f.Add([]byte(`{"extra_special_tokens": {"image_token": "<|i|>"}, "additional_special_tokens": ["x", null, {}]}`), []byte(`{"unk_token": "u"}`), []byte(`{"v": 300}`))
	f.Add([]byte(`{"chat_template": {"a": "b"}, "bos_token": 1, "tokenizer_class": []}`), []byte(`[]`), []byte(`{"v": -1}`))
	file := bytesFile(endOfText)
	f.Fuzz(func(t *testing.T, config, names, more []byte) {
		tokenizer, err := FromFiles(Files{Tokenizer: file, Config: config, SpecialTokensMap: names, AddedTokens: more, Rows: 300})
		if err != nil {
			return
		}
		for _, id := range tokenizer.Encode("<|a|> <|b|>", true) {
			if id < 0 || id >= 300 {
				t.Fatalf("id %d, and the model has 300", id)
			}
		}
	})
}
