package weights

import (
	"errors"
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
)

// Vocabulary is the tokenizer that a GGUF file carries, with the format's defaults filled in.
type Vocabulary struct {
	Model  string    // "gpt2": byte-level BPE with merges; "llama": SentencePiece BPE with scores and byte tokens
	Pre    string    // the pre-tokenizer's name; "default" when the file has none
	Tokens []string  // by token id; need not be UTF-8
	Scores []float32 // by token id, or nil
	// Types gives what a token is, by token id, or nil: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte.
	Types  []int64
	Merges []string // "left right", best first, or nil
	// Special token ids; -1 where the file has none.
	BOS, EOS, EOT, EOM, Unknown, Padding int
	AddBOS, AddEOS, AddSpacePrefix       bool
	ChatTemplate                         string
}

// readVocabulary reads the tokenizer of a GGUF file. Ids are below the number of tokens, lists are as long as Tokens.
func readVocabulary(file *gguf.File) (*Vocabulary, error) {
	r := &vocabularyReader{file: file}
	v := &Vocabulary{
		Model:        r.text("tokenizer.ggml.model", ""),
		Pre:          r.text("tokenizer.ggml.pre", "default"),
		Tokens:       read(r, file.Strings, "tokenizer.ggml.tokens", nil),
		Scores:       read(r, file.Floats, "tokenizer.ggml.scores", nil),
		Types:        read(r, file.Ints, "tokenizer.ggml.token_type", nil),
		Merges:       read(r, file.Strings, "tokenizer.ggml.merges", nil),
		ChatTemplate: r.text("tokenizer.chat_template", ""),
	}
	if r.err == nil && (v.Model == "" || len(v.Tokens) == 0) {
		return nil, errors.New("the file carries no tokenizer (tokenizer.ggml.model and tokenizer.ggml.tokens)")
	}
	for key, length := range map[string]int{"scores": len(v.Scores), "token_type": len(v.Types)} {
		if length != 0 && length != len(v.Tokens) {
			r.fail(fmt.Errorf("tokenizer.ggml.%s has %d elements, tokenizer.ggml.tokens %d", key, length, len(v.Tokens)))
		}
	}
	ids := map[string]*int{"bos": &v.BOS, "eos": &v.EOS, "eot": &v.EOT, "eom": &v.EOM, "unknown": &v.Unknown, "padding": &v.Padding}
	for name, id := range ids {
		key := "tokenizer.ggml." + name + "_token_id"
		n := read(r, file.Int, key, -1)
		if n != -1 && (n < 0 || n >= int64(len(v.Tokens))) {
			r.fail(fmt.Errorf("%s is %d, there are %d tokens", key, n, len(v.Tokens)))
		}
		*id = int(n)
	}
	// Defaults of llama.cpp: SentencePiece adds both, and Llama 3's pre-tokenizer adds the first token.
	pieces := v.Model == "llama"
	v.AddBOS = read(r, file.Bool, "tokenizer.ggml.add_bos_token", pieces || v.Pre == "llama-bpe")
	v.AddEOS = read(r, file.Bool, "tokenizer.ggml.add_eos_token", false)
	v.AddSpacePrefix = read(r, file.Bool, "tokenizer.ggml.add_space_prefix", pieces)
	return v, r.err
}

// vocabularyReader keeps the first error.
type vocabularyReader struct {
	file *gguf.File
	err  error
}

func (r *vocabularyReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *vocabularyReader) text(key, otherwise string) string {
	return read(r, r.file.String, key, otherwise)
}

// read gives the key's value, or otherwise where the file has none.
func read[T any](r *vocabularyReader, get func(string) (T, error), key string, otherwise T) T {
	value, err := get(key)
	if errors.Is(err, gguf.ErrAbsent) {
		return otherwise
	}
	if err != nil {
		r.fail(err)
	}
	return value
}
