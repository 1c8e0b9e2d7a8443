package tokenizer

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestVocabAndMergesWithoutTokenizerJSON(t *testing.T) {
	const vocab = `{"a": 0, "b": 1, "1": 2, "2": 3, "Ġ": 4, "ab": 5, "12": 6, "<|endoftext|>": 7, "Ċ": 8}`
	const merges = "#version: 0.2\na b\r\n1 2\nx y\n\n"
	cases := []struct {
		name, config, added, modelType string
		text                           string
		ids                            []int32
		note                           string
	}{
		{"GPT-2", `{"tokenizer_class": "GPT2Tokenizer"}`, "", "llama", "ab12<|endoftext|>", []int32{5, 6, 7}, "taken as a GPT2Tokenizer, words are cut as gpt-2 does"},
		{"Qwen2 cuts digits", `{"tokenizer_class": "Qwen2TokenizerFast"}`, "", "llama", "ab12<|endoftext|>", []int32{5, 2, 3, 7}, "taken as a Qwen2Tokenizer, words are cut as qwen2 does"},
		{"by family", `{}`, "", "qwen3", "12", []int32{2, 3}, "taken as a Qwen2Tokenizer"},
		{"class that says nothing", `{"tokenizer_class": "PreTrainedTokenizerFast"}`, "", "qwen2", "12", []int32{2, 3}, "taken as a Qwen2Tokenizer"},
		{"no family", "", "", "mistral", "12", []int32{6}, "taken as a GPT2Tokenizer"},
		{"added_tokens.json", `{"eos_token": "<|im_end|>"}`, `{"<|im_end|>": 9, "zzz": 10}`, "qwen2", "a<|im_end|>zzz", []int32{0, 9, 10}, ""},
		{"added_tokens_decoder", `{"added_tokens_decoder": {"9": {"content": "<|im_end|>", "special": true}}}`, "", "qwen2", "a<|im_end|>", []int32{0, 9}, ""},
		{"prefix", `{"add_prefix_space": true}`, "", "llama", "ab", []int32{4, 5}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := Files{Vocab: []byte(vocab), Merges: []byte(merges), ModelType: c.modelType}
			if c.config != "" {
				f.Config = []byte(c.config)
			}
			if c.added != "" {
				f.AddedTokens = []byte(c.added)
			}
			tokenizer, err := FromFiles(f)
			if err != nil {
				t.Fatal(err)
			}
			if got := tokenizer.Encode(c.text, true); !slices.Equal(got, c.ids) {
				t.Errorf("Encode(%q) = %v, want %v", c.text, got, c.ids)
			}
			if got := tokenizer.Decode(c.ids, false); got != c.text && c.name != "prefix" {
				t.Errorf("Decode(%v) = %q, want %q", c.ids, got, c.text)
			}
			notes := strings.Join(tokenizer.Notes(), "\n")
			if !strings.Contains(notes, c.note) || !strings.Contains(notes, "merges of what is no token: 1") {
				t.Errorf("notes %q, want %q and the merge of no token", notes, c.note)
			}
		})
	}
	for want, f := range map[string]Files{
		"vocab.json: vocabulary: ":  {Vocab: []byte(`{"a": 0, "b": 1999999}`), Merges: []byte(merges)},
		"needs merges.txt":          {Vocab: []byte(vocab)},
		"no tokenizer.json":         {},
		"vocab.json is not JSON":    {Vocab: []byte("{"), Merges: []byte(merges)},
		"not UTF-8":                 {Vocab: []byte(vocab), Merges: []byte("\xff")},
		"vocab.json: vocab: want":   {Vocab: []byte("[]"), Merges: []byte(merges)},
		"added_tokens.json":         {Vocab: []byte(vocab), Merges: []byte(merges), AddedTokens: []byte(`{"x": -1}`)},
		"special_tokens_map.json: ": {Vocab: []byte(vocab), Merges: []byte(merges), SpecialTokensMap: []byte(`[]`)},
	} {
		if _, err := FromFiles(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

// field is a field of a protocol buffer's message.
func field(number int, value any) []byte {
	key := uint64(number) << 3
	switch v := value.(type) {
	case int:
		return binary.AppendUvarint(binary.AppendUvarint(nil, key), uint64(v))
	case float32:
		return binary.LittleEndian.AppendUint32(binary.AppendUvarint(nil, key|5), math.Float32bits(v))
	case []byte:
		return append(binary.AppendUvarint(binary.AppendUvarint(nil, key|2), uint64(len(v))), v...)
	}
	panic(fmt.Sprintf("no field of %T", value))
}

// sentencePieceFile is a tokenizer.model with a vocabulary.
func sentencePieceFile(meta GGUF, trainer, normalizer []byte) []byte {
	var file []byte
	for id, token := range meta.Tokens {
		piece := slices.Concat(field(1, []byte(token)), field(2, meta.Scores[id]), field(3, int(meta.TokenTypes[id])))
		file = append(file, field(1, piece)...)
	}
	return slices.Concat(file, field(2, trainer), field(3, normalizer))
}

func bpeTrainer() []byte {
	return slices.Concat(field(3, bpeModel), field(40, 0), field(41, 1), field(42, 2))
}

func TestSentencePieceAgreesWithTokenizerJSON(t *testing.T) {
	file := sentencePieceFile(sentencePiece(t), bpeTrainer(), slices.Concat(field(1, []byte("identity")), field(4, 0)))
	tokenizer, err := FromFiles(Files{SentencePiece: file, Config: []byte(`{"legacy": true, "add_bos_token": true}`)})
	if err != nil {
		t.Fatal(err)
	}
	var all []reference
	for _, r := range references(t, "llama2") {
		if !strings.Contains(r.Text, "<unk>") { // which is no control piece
			all = append(all, r)
		}
	}
	compare(t, tokenizer, all)
	bos, _ := tokenizer.BOS()
	eos, _ := tokenizer.EOS()
	if bos != 1 || eos != 2 || !tokenizer.AddBOS() {
		t.Errorf("bos %d, eos %d, add bos %t; want 1, 2, true", bos, eos, tokenizer.AddBOS())
	}
}

func TestForeignSentencePieceIsRefused(t *testing.T) {
	one := GGUF{Tokens: []string{"a"}, Scores: []float32{0}, TokenTypes: []int32{1}}
	plain := field(4, 0)
	cases := []struct {
		name string
		file []byte
		want string
	}{
		{"unigram", sentencePieceFile(one, field(3, unigramModel), plain), "of kind 1, and only BPE"},
		{"kind left out", sentencePieceFile(one, field(40, 0), plain), "of kind 1, and only BPE"},
		{"charsmap", sentencePieceFile(one, bpeTrainer(), slices.Concat(plain, field(2, []byte("x")))), "rewrites text"},
		{"blanks joined", sentencePieceFile(one, bpeTrainer(), nil), "rewrites text"},
		{"cut short", sentencePieceFile(one, bpeTrainer(), plain)[:5], "no SentencePiece model"},
		{"pointer", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0000"), "no SentencePiece model"},
		{"tiktoken", []byte("IQ== 0\nIg== 1\n"), "as of tiktoken"},
	}
	for _, c := range cases {
		if _, err := FromFiles(Files{SentencePiece: c.file}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
}

func FuzzSentencePiece(f *testing.F) {
	meta := GGUF{Tokens: []string{"<unk>", "▁", "a", "▁a", "<0x41>"}, Scores: []float32{0, -1, -2, -3, 0}, TokenTypes: []int32{2, 1, 1, 1, 6}}
	f.Add(sentencePieceFile(meta, bpeTrainer(), field(4, 0)), "a A")
	f.Add([]byte{10, 255, 255, 255, 255, 15}, "a")
	f.Fuzz(func(t *testing.T, file []byte, text string) {
		tokenizer, err := FromFiles(Files{SentencePiece: file})
		if err != nil {
			return
		}
		for _, id := range tokenizer.Encode(text[:min(len(text), 64)], true) {
			if id < 0 || int(id) >= tokenizer.VocabSize() {
				t.Fatalf("the id %d of no token", id)
			}
		}
	})
}
