package tokenizer

import (
	"slices"
	"testing"
	"unicode/utf8"
)

// byteIDs are the tokens of single bytes.
func byteIDs(tokenizer *Tokenizer, text string) []int32 {
	var ids []int32
	for _, b := range []byte(text) {
		ids = append(ids, tokenizer.model.bytes[b])
	}
	return ids
}

func TestBrokenBytesAreReplaced(t *testing.T) {
	cases := []struct{ name, bytes, want string }{
		{"qwen3", "a\xffb", "a\uFFFDb"},
		{"qwen3", "\xe2\x82\xac\xe2\x82", "€\uFFFD"},
		{"qwen3", "\xe2\x82A\x82", "\uFFFDA\uFFFD"},
		{"qwen3", "\xf0\x9f\x99\xf0\x9f\x99\x82", "\uFFFD🙂"},
		{"qwen3", "\xed\xa0\x80\xc0\xaf", "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD"}, // a surrogate, an overlong form
		{"llama2", "\xe2\x82", "\uFFFD\uFFFD"},
		{"llama2", "\xe2\x82\xac", "€"},
		{"llama2", "\xf0\x9f\x99\x82\xf0\x9f", "🙂\uFFFD\uFFFD"},
	}
	for _, c := range cases {
		tokenizer := open(t, c.name)
		ids := byteIDs(tokenizer, c.bytes)
		if got := tokenizer.Decode(ids, false); got != c.want {
			t.Errorf("%s: Decode(%q) = %+q, want %+q", c.name, c.bytes, got, c.want)
		}
		d := tokenizer.NewDetokenizer(false)
		if got := pushAll(d, ids); got != c.want {
			t.Errorf("%s: pushed %q, got %+q, want %+q", c.name, c.bytes, got, c.want)
		}
	}
}

func TestDetokenizerReturnsWholeCodePoints(t *testing.T) {
	tokenizer := open(t, "qwen3")
	d := tokenizer.NewDetokenizer(true)
	special, _ := tokenizer.ID("<|im_end|>")
	think, _ := tokenizer.ID("<think>")
	ids := slices.Concat(byteIDs(tokenizer, "\xf0\x9f"), []int32{special}, byteIDs(tokenizer, "\x99\x82!"), []int32{think, -1, 1 << 30})
	want := []string{"", "", "", "", "🙂", "!", "<think>", "", ""}
	for i, id := range ids {
		if got := d.Push(id); got != want[i] {
			t.Errorf("Push(%d), number %d, = %q, want %q", id, i, got, want[i])
		}
	}
	if got := d.Flush(); got != "" {
		t.Errorf("Flush() = %q, want nothing", got)
	}
}

func TestLeadingBlankOfSentencePieceGoes(t *testing.T) {
	cases := []struct {
		name string
		want string
	}{{"llama2", "Hello"}, {"gemma3", " Hello"}}
	for _, c := range cases {
		tokenizer := open(t, c.name)
		id, ok := tokenizer.ID("▁Hello")
		if !ok {
			t.Fatalf("%s has no token ▁Hello", c.name)
		}
		d := tokenizer.NewDetokenizer(true)
		if got := d.Push(id); got != c.want {
			t.Errorf("%s: the first Push = %q, want %q", c.name, got, c.want)
		}
		if got := d.Push(id); got != " Hello" {
			t.Errorf("%s: the second Push = %q, want %q", c.name, got, " Hello")
		}
		if got := string(tokenizer.TokenBytes(id)); got != " Hello" {
			t.Errorf("%s: TokenBytes = %q, want %q", c.name, got, " Hello")
		}
	}
}

func TestTokenBytesOfEveryByte(t *testing.T) {
	for _, name := range []string{"qwen3", "llama2"} {
		tokenizer := open(t, name)
		for b := range 256 {
			id := tokenizer.model.bytes[b]
			if got := tokenizer.TokenBytes(id); len(got) != 1 || int(got[0]) != b {
				t.Errorf("%s: TokenBytes(%d) = %q, want byte %#x", name, id, got, b)
			}
		}
		if got := tokenizer.TokenBytes(int32(tokenizer.VocabSize())); got != nil {
			t.Errorf("%s: TokenBytes(VocabSize()) = %q, want nil", name, got)
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	for _, seed := range []string{"Hello, world!", "<|im_end|> <think>", "e\u0301 한글 🙂\u200d", "\r\n \t'LL 123456", "\xff\xe2\x82", "▁▁ <0x0A>"} {
		f.Add(seed, 1, 3)
	}
	byteLevel, fallback := open(f, "llama3"), open(f, "llama2")
	f.Fuzz(func(t *testing.T, text string, start, end int) {
		data := []Range{{start, end}}
		for _, tokenizer := range []*Tokenizer{byteLevel, fallback} {
			for _, ids := range [][]int32{tokenizer.Encode(text, true), tokenizer.Encode(text, false), tokenizer.encodePrompt(text, data)} {
				decoded := tokenizer.Decode(ids, false)
				if pushed := pushAll(tokenizer.NewDetokenizer(false), ids); pushed != decoded || !utf8.ValidString(decoded) {
					t.Fatalf("%q: pushed %q, decoded %q", text, pushed, decoded)
				}
				if tokenizer == byteLevel && utf8.ValidString(text) && decoded != text {
					t.Fatalf("Decode(Encode(%q)) = %q", text, decoded)
				}
			}
			for _, id := range tokenizer.Encode(text, false) {
				if tokenizer.IsSpecial(id) && id != tokenizer.model.unknown {
					t.Fatalf("Encode(%q, false) has the special token %d", text, id)
				}
			}
		}
	})
}
