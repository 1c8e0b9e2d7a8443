package weights

import (
	"slices"
	"strings"
	"testing"
)

func TestVocabularyNotes(t *testing.T) {
	good := map[string]any{"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": []string{"a", "b", "c"}, "tokenizer.ggml.bos_token_id": 0}
	cases := []struct {
		name string
		keys map[string]any
		want string // notes
		ends []int
	}{
		{"nothing", nil, "", nil},
		{"ends", map[string]any{"tokenizer.ggml.eos_token_ids": []int32{2, 1}}, "", []int{2, 1}},
		{"ends beyond", map[string]any{"tokenizer.ggml.eos_token_ids": []int32{2, 3, -4}}, "eos_token_ids has 2 ids of no token, there are 3: they were left out", []int{2}},
		{"no ends", map[string]any{"tokenizer.ggml.eos_token_ids": []int32{}}, "", nil},
		{"beyond", map[string]any{"tokenizer.ggml.seperator_token_id": 7, "tokenizer.ggml.padding_token_id": 3},
			"padding_token_id is 3, there are 3 tokens: it was left out; tokenizer.ggml.seperator_token_id is 7, there are 3 tokens: it was left out", nil},
		{"-1 without a sign", map[string]any{"tokenizer.ggml.padding_token_id": -1}, "", nil},
		{"scores that nobody needs", map[string]any{"tokenizer.ggml.scores": []float32{1}}, "scores has 1 elements, tokenizer.ggml.tokens 3: what does not fit was left out", nil},
		{"types beyond", map[string]any{"tokenizer.ggml.token_type": []int32{1, 1, 3, 3}}, "token_type has 4 elements, tokenizer.ggml.tokens 3: what does not fit", nil},
	}
	for _, c := range cases {
		checkpoint, err := Open(writeGGUF(t, with(llamaKeys, with(good, c.keys)), embedding))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		notes := strings.Join(checkpoint.Notes(), "; ")
		if c.want == "" && notes != "" || !strings.Contains(notes, c.want) {
			t.Errorf("%s: notes %q, want %q", c.name, notes, c.want)
		}
		a, err := checkpoint.Assets()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if v := a.Vocabulary; !slices.Equal(v.EndTokens, c.ends) || v.BOS != 0 || v.Padding != -1 || v.Separator != -1 || v.Scores != nil || len(v.Types) > 3 {
			t.Errorf("%s: got %+v, want ends %v", c.name, v, c.ends)
		}
		checkpoint.Close()
	}
}
