package bundle

import (
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// What a set is made of, and which one a checkpoint's name chooses.
func TestSet(t *testing.T) {
	made, exact, last := "", false, op.Kernel(0)
	set := func(name string) func([]op.Kernel, func(string) bool) Set {
		return func(kernels []op.Kernel, has func(string) bool) Set {
			made, exact, last = name, has("exact") && !has("amx"), kernels[len(kernels)-1]
			return nil
		}
	}
	b := &Bundle{Kernels: []Kernel{{Name: "a"}, {Name: "bc"}}, New: set(""), Models: map[string]func([]op.Kernel, func(string) bool) Set{}}
	for _, name := range []string{"qwen3-8b", "qwen3-8", "smollm2-1.7b", "smollm2"} {
		b.Models[name] = set(name)
	}
	cases := []struct{ checkpoint, want string }{
		{"", ""},
		{"Qwen/Qwen3-8B", "qwen3-8b"},
		{"Qwen/Qwen3-8B-FP8", "qwen3-8b"},
		{"/models/Qwen3_8B/", "qwen3-8b"},
		{"qwen3-8b.gguf", "qwen3-8b"},
		{"Qwen/Qwen3-80B", ""},
		{"Qwen/Qwen3", ""},
		{"smollm2", "smollm2"},
		{"SmolLM2-1.7B-Instruct.Q4_1.gguf", "smollm2-1.7b"},
		{"SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2"},
		{"my-qwen3-8b", ""},
	}
	for _, c := range cases {
		made = "nothing"
		if b.Set(c.checkpoint, b.Unloaded(), []string{"avx2", "exact"}); made != c.want || b.Model(c.checkpoint) != c.want || !exact || last != 2 {
			t.Errorf("%q: got set %q, model %q, exact %v, last kernel %d, want %q, true and 2", c.checkpoint, made, b.Model(c.checkpoint), exact, last, c.want)
		}
	}
}

func TestMissing(t *testing.T) {
	b := &Bundle{Needs: []string{"avx512f", "avx2"}}
	if got, want := b.Missing([]string{"avx2", "fma"}), []string{"avx512f"}; !slices.Equal(got, want) {
		t.Errorf("missing: got %q, want %q", got, want)
	}
}
