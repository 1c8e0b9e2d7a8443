package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

// wordsOf are the pieces that a named pre-tokenizer cuts a text into.
func wordsOf(t *testing.T, meta GGUF, text string) []string {
	t.Helper()
	meta.Model, meta.Tokens = "gpt2", append([]string{"a"}, meta.Tokens...)
	tokenizer, err := FromGGUF(meta)
	if err != nil {
		t.Fatalf("pre %q: %v", meta.Pre, err)
	}
	return slices.Collect(words(tokenizer.stages, text, true, nil))
}

// The pieces are those that HuggingFace's library makes with the same patterns.
func TestNamedPreTokenizersCutWords(t *testing.T) {
	const text = "It's 12345 naïve（好）words!?\n\n x"
	cases := []struct{ names, want string }{
		{"gpt-2 phi-2 jina-es jina-de jina-v1-en jina-v2-es jina-v2-de jina-v2-code roberta-bpe gigachat a.x-4.0 mellum modern-bert jais trillion granite-docling exaone4 mpt olmo",
			"It|'s| 12345| naïve|（|好|）|words|!?|\n\n| x"},
		{"smollm smollm2 starcoder refact command-r codeshell exaone minerva-7b mellum2", "It|'s| |1|2|3|4|5| naïve|（|好|）|words|!?|\n\n| x"},
		{"qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2", "It|'s| |1|2|3|4|5| naïve|（好|）words|!?\n\n| x"},
		{"qwen35", "It|'s| |1|2|3|4|5| naïve|（好|）words|!?\n\n| x"},
		{"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano dbrx smaug-bpe chatglm-bpe glm4 glm5", "It|'s| |123|45| naïve|（好|）words|!?\n\n| x"},
		{"tekken", "It|'s| |1|2|3|4|5| naïve|（好|）words|!?\n\n| x"},
		{"gpt-4o llama4 kanana2 talkie minimax-m2", "It's| |123|45| naïve|（好|）words|!?\n\n| x"},
		{"deepseek-v3 hunyuan-dense joyai-llm hy_v4", "It|'s| |123|45| naïve|（|好|）|words|!?\n\n| x"},
		{"deepseek-llm", "It|'|s| |12345| na|ï|ve|（|好|）|words|!?|\n|\n| x"},
		{"deepseek-coder", "It|'|s| |1|2|3|4|5| naïve|（|好|）|words|!?|\n|\n| x"},
		{"falcon", "It|'|s| |123|45| naïve|（|好|）|words|!?|\n\n| x"},
		{"default", "It|'|s| |123|45| naïve|（|好|）|words|!?|\n\n| x"},
		{"bloom gpt3-finnish poro-chat", "It's| 12345| naïve（好）words|!?\n\n| x"},
		{"viking", "It's| |1|2|3|4|5| naïve（好）words|!?\n\n| x"},
		{"superbpe", "It's |12|345| naïve（好）words!?\n\n x"},
		{"tiny_aya cohere2moe", "It's| |12|345| naïve|（好|）words|!?\n\n| x"},
		{"bailingmoe bailingmoe2 llada-moe", "It|'s| |1|2|3|4|5| naïve|（好|）words|!?\n\n| x"},
		{"kimi-k2", "It's| |123|45| naïve|（|好|）words|!?\n\n| x"},
		{"afmoe", "It|'s| |12|345| naïve|（|好|）|words|!?\n\n| x"},
	}
	for _, c := range cases {
		for name := range strings.FieldsSeq(c.names) {
			if got := strings.Join(wordsOf(t, GGUF{Pre: name}, text), "|"); got != c.want {
				t.Errorf("pre %q cuts %q into\n got %q\nwant %q", name, text, got, c.want)
			}
		}
	}
}

func TestEveryNamedPreTokenizerOpens(t *testing.T) {
	seen := map[string]bool{}
	for _, pre := range preTokenizers() {
		for _, name := range pre.names {
			if seen[name] {
				t.Errorf("pre %q is there twice", name)
			}
			seen[name] = true
			if got := strings.Join(wordsOf(t, GGUF{Pre: name}, "a b"), ""); got != "a b" {
				t.Errorf("pre %q makes %q of \"a b\"", name, got)
			}
		}
	}
}

func TestFlagsOfNamedPreTokenizers(t *testing.T) {
	cases := []struct {
		pre                       string
		ignoreMerges, addBOS, nfc bool
	}{
		{"llama3", true, true, false}, {"pixtral", true, true, false}, {"tekken", true, true, false}, {"chameleon", false, true, false},
		{"glm4", true, false, false}, {"chatglm-bpe", false, false, false}, {"qwen2", false, false, true}, {"kormo", false, false, true}, {"gpt-2", false, false, false},
	}
	for _, c := range cases {
		tokenizer, err := FromGGUF(GGUF{Model: "gpt2", Pre: c.pre, Tokens: []string{"a", "<s>"}, BOS: new(uint32(1))})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(tokenizer.normalizers) > 0; tokenizer.model.ignoreMerges != c.ignoreMerges || tokenizer.AddBOS() != c.addBOS || got != c.nfc {
			t.Errorf("pre %q: ignore merges %t, add bos %t, NFC %t; want %t, %t, %t", c.pre, tokenizer.model.ignoreMerges, tokenizer.AddBOS(), got, c.ignoreMerges, c.addBOS, c.nfc)
		}
	}
	tokenizer, err := FromGGUF(GGUF{Model: "gpt2", Pre: "llama3", Tokens: []string{"a", "<s>"}, BOS: new(uint32(1)), AddBOS: new(false)})
	if err != nil || tokenizer.AddBOS() {
		t.Errorf("llama3 with add_bos_token false: AddBOS() is %t, %v; want what the file says", tokenizer.AddBOS(), err)
	}
}

func TestMissingPreTokenizerIsAssumed(t *testing.T) {
	cases := []struct {
		pre    string
		tokens []string
		want   string // the pre-tokenizer that the note names
	}{
		{"", nil, `"default" is assumed`},
		{"default", []string{"<|begin_of_text|>", "<|eot_id|>"}, `"llama-bpe" is assumed`},
		{"", append(slices.Repeat([]string{"b"}, 150_000), "<|im_start|>", "<|endoftext|>"), `"qwen2" is assumed`},
	}
	for _, c := range cases {
		tokenizer, err := FromGGUF(GGUF{Model: "gpt2", Pre: c.pre, Tokens: append([]string{"a"}, c.tokens...)})
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(tokenizer.Notes(), "\n"); !strings.Contains(notes, c.want) {
			t.Errorf("pre %q with %d tokens: notes %q, want %q", c.pre, len(c.tokens), notes, c.want)
		}
	}
}

func TestPatternsInTheOtherDialect(t *testing.T) {
	cases := []struct{ pattern, want string }{
		{`a?+b`, `(?>a?)b`},
		{`[^\s\p{L}]++[\r\n]*`, `(?>[^\s\p{L}]+)[\r\n]*`},
		{`(?:ab|c)*+d`, `(?>(?:ab|c)*)d`},
		{`\p{L}+?x`, `\p{L}+?x`},
		{`[\p{Lo}\p{M}&&[^\p{Han}]]+`, `[\p{Lo}\p{M}-[\p{Han}]]+`},
		{`[^(\s|[.,!?])]+`, `[^(\s|.,!?)]+`},
		{`(?i:'s)|[^\]a]`, `(?i:'s)|[^\]a]`},
	}
	for _, c := range cases {
		if got, err := toRegexp2(c.pattern); got != c.want || err != nil {
			t.Errorf("toRegexp2(%q) = %q, %v; want %q", c.pattern, got, err, c.want)
		}
	}
	for _, pattern := range []string{`[[:alpha:]]`, `[a&&b]`, `[a[^b]]`, `[a&&[^b]&&[^c]]`, `[a`} {
		if got, err := toRegexp2(pattern); err == nil {
			t.Errorf("toRegexp2(%q) = %q, want an error: the engines read it differently", pattern, got)
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, pre := range preTokenizers() {
		for _, pattern := range pre.patterns {
			f.Add(pattern, "It's 12345 好 x")
		}
	}
	f.Add(`(a?+)++[b&&[^c]]`, "ab")
	f.Add(`(?=b)`, "abb")
	f.Add(`a|(?=b)`, "ab bab")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		var p pipeline
		m, _, err := p.regex(pattern)
		if err != nil {
			return
		}
		text = text[:min(len(text), 32)]
		found := m.matches(text)
		if e, ok := m.(expression); ok && found != nil {
			if got := e.oneByOne(text); !slices.Equal(got, found) {
				t.Fatalf("%q on %q: got %v one by one, want %v", pattern, text, got, found)
			}
		}
		end := 0
		for _, s := range found {
			if s.start < end || s.end < s.start || s.end > len(text) {
				t.Fatalf("%q on %q: match %v behind %d", pattern, text, s, end)
			}
			end = s.end
		}
	})
}
