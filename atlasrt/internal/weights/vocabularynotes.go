package weights

import (
	"errors"
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
)

// endsKey is a list of tokens that end an answer, which Ollama writes.
const endsKey = "tokenizer.ggml.eos_token_ids"

func idKey(name string) string { return "tokenizer.ggml." + name + "_token_id" }

// noID is how -1 is written where an id has no sign.
const noID = 1<<32 - 1

// vocabularyNotes says what of a vocabulary is left out. It reads no list but that of the ends.
func vocabularyNotes(file *gguf.File) (notes []string) {
	tokens := int64(file.Len("tokenizer.ggml.tokens"))
	if tokens == 0 {
		return nil
	}
	for _, t := range new(Vocabulary).ids() {
		n, err := file.Int(t.key)
		if err == nil && (n < 0 || n >= tokens) && n != -1 && n != noID {
			notes = append(notes, fmt.Sprintf("%s is %d, there are %d tokens: it was left out", t.key, n, tokens))
		}
	}
	ends, err := file.Ints(endsKey)
	if err != nil && !errors.Is(err, gguf.ErrAbsent) {
		return notes // reading the vocabulary says so
	}
	wrong := 0
	for _, n := range ends {
		if n < 0 || n >= tokens {
			wrong++
		}
	}
	if wrong > 0 {
		notes = append(notes, fmt.Sprintf("%s has %d ids of no token, there are %d: they were left out", endsKey, wrong, tokens))
	}
	for _, key := range []string{"tokenizer.ggml.scores", "tokenizer.ggml.token_type"} {
		if n := int64(file.Len(key)); n != 0 && n != tokens {
			notes = append(notes, fmt.Sprintf("%s has %d elements, tokenizer.ggml.tokens %d: what does not fit was left out", key, n, tokens))
		}
	}
	return notes
}
