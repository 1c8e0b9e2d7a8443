package weights

import "testing"

// A GGUF file's own name of its model is kept; one that is no text is none.
func TestGGUFModelName(t *testing.T) {
	vocabulary := map[string]any{"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": []string{"a", "b"}, "tokenizer.ggml.scores": []float32{0, -1},
		"tokenizer.ggml.token_type": []int32{1, 3}}
	cases := []struct {
		more map[string]any
		want string
	}{{map[string]any{"general.name": "Tiny 2.5 Instruct"}, "Tiny 2.5 Instruct"}, {map[string]any{"general.name": 3}, ""}, {nil, ""}}
	for _, c := range cases {
		checkpoint, err := Open(writeGGUF(t, with(llamaKeys, with(vocabulary, c.more)), embedding))
		if err != nil {
			t.Fatal(err)
		}
		assets, err := checkpoint.Assets()
		if err != nil || assets.Name != c.want {
			t.Errorf("%v: got %q, %v, want %q", c.more, assets.Name, err, c.want)
		}
		if err := checkpoint.Close(); err != nil {
			t.Error(err)
		}
	}
}
