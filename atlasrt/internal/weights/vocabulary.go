package weights

import (
	"errors"
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
)

// Vocabulary is the tokenizer that a GGUF file carries.
type Vocabulary struct {
	Model  string    // "gpt2": byte-level BPE with merges; "llama": SentencePiece BPE with scores and byte tokens
	Pre    string    // the pre-tokenizer's name; "default" when the file has none
	Tokens []string  // by token id; need not be UTF-8
	Scores []float32 // by token id, or nil
	// Types gives what a token is, by token id, or nil: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte.
	Types  []int64
	Merges []string // "left right", best first, or nil
	// Special token ids; -1 where the file has none, or names one that is no token's.
	BOS, EOS, EOT, EOM, Unknown, Padding, Separator, Class, Mask int
	EndTokens                                                    []int // tokenizer.ggml.eos_token_ids
	AddBOS, AddEOS, AddSpacePrefix                               *bool // nil where the file does not say: the tokenizer knows
	ChatTemplate                                                 string
}

// namedID is the metadata key of a special token, and where its id goes.
type namedID struct {
	key string
	id  *int
}

// ids are the special tokens of v.
func (v *Vocabulary) ids() []namedID {
	return []namedID{
		{idKey("bos"), &v.BOS}, {idKey("eos"), &v.EOS}, {idKey("eot"), &v.EOT}, {idKey("eom"), &v.EOM}, {idKey("unknown"), &v.Unknown},
		{idKey("padding"), &v.Padding}, {idKey("seperator"), &v.Separator}, {idKey("cls"), &v.Class}, {idKey("mask"), &v.Mask}, // the format spells it so
	}
}

// readVocabulary reads the tokenizer of a GGUF file. Ids are below the number of tokens, lists are as long as Tokens; what was
// left out for that, vocabularyNotes says.
func readVocabulary(file *gguf.File) (*Vocabulary, error) {
	r := &vocabularyReader{file: file}
	v := &Vocabulary{
		Model:        r.text("tokenizer.ggml.model", ""),
		Pre:          r.text("tokenizer.ggml.pre", "default"),
		Tokens:       read(r, file.Strings, "tokenizer.ggml.tokens", nil),
		Types:        read(r, file.Ints, "tokenizer.ggml.token_type", nil),
		Merges:       read(r, file.Strings, "tokenizer.ggml.merges", nil),
		ChatTemplate: r.text("tokenizer.chat_template", ""),
	}
	if r.err == nil && (v.Model == "" || len(v.Tokens) == 0) {
		return nil, errors.New("the file carries no tokenizer (tokenizer.ggml.model and tokenizer.ggml.tokens)")
	}
	if v.Model != "gpt2" || file.Len("tokenizer.ggml.scores") == len(v.Tokens) { // merges have ranks in place of scores
		v.Scores = fit(r, "scores", read(r, file.Floats, "tokenizer.ggml.scores", nil), len(v.Tokens))
	}
	v.Types = fit(r, "token_type", v.Types, len(v.Tokens))
	for _, t := range v.ids() {
		*t.id = -1
		if n := read(r, file.Int, t.key, -1); n >= 0 && n < int64(len(v.Tokens)) {
			*t.id = int(n)
		}
	}
	for _, n := range read(r, file.Ints, endsKey, nil) {
		if n >= 0 && n < int64(len(v.Tokens)) {
			v.EndTokens = append(v.EndTokens, int(n))
		}
	}
	v.AddBOS = r.flag("tokenizer.ggml.add_bos_token")
	v.AddEOS = r.flag("tokenizer.ggml.add_eos_token")
	v.AddSpacePrefix = r.flag("tokenizer.ggml.add_space_prefix")
	begins := v.AddBOS != nil && *v.AddBOS || v.AddBOS == nil && v.Model == "llama" // SentencePiece adds it
	ends := v.AddEOS != nil && *v.AddEOS
	if begins && v.BOS < 0 && file.Has(idKey("bos")) || ends && v.EOS < 0 && file.Has(idKey("eos")) {
		r.fail(fmt.Errorf("texts are to begin or end with a token that is none of the %d: %s or %s is wrong", len(v.Tokens), idKey("bos"), idKey("eos")))
	}
	return v, r.err
}

// fit makes a list as long as the tokens: what is beyond belongs to no token, and what is missing cannot be made up.
func fit[T any](r *vocabularyReader, key string, list []T, tokens int) []T {
	if len(list) != 0 && len(list) < tokens {
		r.fail(fmt.Errorf("tokenizer.ggml.%s has %d elements, tokenizer.ggml.tokens %d", key, len(list), tokens))
	}
	return list[:min(len(list), tokens)]
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

// flag is nil for an absent key.
func (r *vocabularyReader) flag(key string) *bool {
	if !r.file.Has(key) {
		return nil
	}
	return new(read(r, r.file.Bool, key, false))
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
