package weights

import (
	"strings"
	"testing"
)

func TestGGUFSampling(t *testing.T) {
	vocabulary := map[string]any{"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": []string{"a"}}
	cases := []struct {
		name       string
		keys       map[string]any
		want, note string
	}{
		{"none", nil, "", ""},
		{"all", map[string]any{"general.sampling.temp": float32(0.6), "general.sampling.top_k": 20, "general.sampling.top_p": float32(0.95), "general.sampling.min_p": float32(0),
			"general.sampling.penalty_repeat": float32(1.1)}, `{"min_p":0,"repetition_penalty":1.1,"temperature":0.6,"top_k":20,"top_p":0.95}`, ""},
		{"without effect", map[string]any{"general.sampling.mirostat": 0}, "", ""},
		{"text", map[string]any{"general.sampling.temp": "hot", "general.sampling.top_k": 5}, `{"top_k":5}`, "general.sampling.temp is string, wanted a float: it was left out"},
	}
	for _, c := range cases {
		checkpoint, err := Open(writeGGUF(t, with(llamaKeys, with(vocabulary, c.keys)), embedding))
		if err != nil {
			t.Fatal(err)
		}
		a, err := checkpoint.Assets()
		notes := strings.Join(checkpoint.Notes(), "\n")
		if err != nil || string(a.GenerationConfig) != c.want || !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
			t.Errorf("%s: got %s, %q, %v; want %s, %q", c.name, a.GenerationConfig, notes, err, c.want, c.note)
		}
		checkpoint.Close()
	}
}
