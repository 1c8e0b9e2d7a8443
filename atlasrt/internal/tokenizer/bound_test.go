package tokenizer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// checkBound says what is wrong with limits around the ids of a text, "" where nothing is.
func checkBound(tokenizer *Tokenizer, text string, ids []int32) string {
	got, err := tokenizer.EncodeWithin(context.Background(), text, true, len(ids))
	if err != nil || !slices.Equal(got, ids) {
		return fmt.Sprintf("at most %d tokens of %.60q (%d bytes): got %d tokens, %v, want all", len(ids), text, len(text), len(got), err)
	}
	for limit := len(ids) - 1; limit >= 0; limit = limit*2/3 - 1 {
		got, err := tokenizer.EncodeWithin(context.Background(), text, true, limit)
		long, ok := errors.AsType[*TooLong](err)
		if !ok || got != nil && len(got) <= limit || long.Limit != limit || long.AtLeast <= limit || long.AtLeast > len(ids) {
			return fmt.Sprintf("at most %d of %d tokens of %.60q: got %d tokens, %v, want an error that tells from %d to %d", limit, len(ids), text, len(got), err, limit+1, len(ids))
		}
	}
	return ""
}

// No text that fits is refused, whatever rewrites it, and none that does not fit goes through.
func TestLimitOfTokens(t *testing.T) {
	for _, c := range published {
		tokenizer := open(t, c.name)
		texts := []string{"", "a", strings.Repeat("\u1fbe\u0308\u0301", 50), strings.Repeat("\u212a", 50), strings.Repeat("\x04\x16", 50), strings.Repeat(" ", 3000)}
		longest := slices.MaxFunc(tokenizer.vocabulary.tokens, func(a, b string) int { return len(a) - len(b) })
		texts = append(texts, strings.Repeat(tokenizer.Decode([]int32{tokenizer.vocabulary.ids[longest]}, false), 40))
		for i, r := range references(t, c.name) {
			if i%10 == 0 {
				texts = append(texts, r.Text)
			}
		}
		for _, text := range texts {
			if problem := checkBound(tokenizer, text, tokenizer.Encode(text, true)); problem != "" {
				t.Errorf("%s: %s", c.name, problem)
			}
		}
	}
}

// Bytes without a token make nothing of a text of any length, so their number must not count.
func TestLimitOfBytesThatAreLost(t *testing.T) {
	file := strings.NewReplacer(`"pre_tokenizer": null`, `"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}`, `"Fuse"`, `"ByteLevel"`).Replace(small)
	tokenizer, err := FromJSON([]byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		text string
		want int // tokens; -1: too long
	}{
		{strings.Repeat("x", 1000), 0}, {strings.Repeat("x", 1000) + "ab", 1}, {strings.Repeat("xab", 4), 4}, {strings.Repeat("xab", 5), -1}, {strings.Repeat("ab", 500), -1},
	}
	for _, c := range cases {
		ids, err := tokenizer.EncodeWithin(context.Background(), c.text, true, 4)
		if _, long := errors.AsType[*TooLong](err); long != (c.want < 0) || !long && (err != nil || len(ids) != c.want) {
			t.Errorf("%.20q (%d bytes): got %d tokens, %v, want %d", c.text, len(c.text), len(ids), err, c.want)
		}
	}
}

// What does not fit by its bytes is not scanned at all, and else the scan ends with the limit (T027, T087).
func TestScanEndsWithTheLimit(t *testing.T) {
	cases := []struct {
		name, text string
		bounded    bool // bytes say something about tokens
		most       int  // bytes that may be scanned
	}{
		{"by bytes", strings.Repeat("ab ", 100_000), true, 0},
		{"by tokens", strings.Repeat("ab ", 100_000), false, 3 * 101},
		{"one word that is too long", strings.Repeat("a", 300_000), true, 0},
	}
	for _, c := range cases {
		tokenizer, err := FromJSON([]byte(strings.Replace(small, `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\p{N}"}, "behavior": "Isolated"}`, 1)), nil)
		if err != nil {
			t.Fatal(err)
		}
		scanned := 0
		tokenizer.stages = []stage{splitStage{behavior: isolated, pattern: scanner(func(text string) int {
			n := strings.IndexByte(text, ' ') + 1
			scanned += n
			return n
		})}}
		tokenizer.model.unknown = 1 // so that nothing is lost
		if tokenizer.bound = tokenizer.newBound(); !c.bounded {
			tokenizer.bound = bound{}
		}
		_, err = tokenizer.EncodeWithin(context.Background(), c.text, true, 100)
		if _, ok := errors.AsType[*TooLong](err); !ok || scanned > c.most {
			t.Errorf("%s: %v after %d bytes of %d, want TooLong after %d at most", c.name, err, scanned, len(c.text), c.most)
		}
	}
}

// fading is a context that is done once it was looked at so often.
type fading struct {
	context.Context
	looks int
}

func (f *fading) Err() error {
	if f.looks--; f.looks < 0 {
		return context.Canceled
	}
	return nil
}

// Work ends with the request: between words, within a long word, and within the search of a pattern.
func TestEncodingEndsWithItsContext(t *testing.T) {
	pattern, err := FromJSON([]byte(strings.Replace(small, `"pre_tokenizer": null`,
		`"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a)b?"}, "behavior": "MergedWithNext"}`, 1)), nil)
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name      string
		tokenizer *Tokenizer
		text      string
	}{
		{"words", open(t, "qwen3"), strings.Repeat("some words ", 50_000)},
		{"one word", open(t, "llama3"), strings.Repeat(" ", 500_000)},
		{"one word in code points", open(t, "llama2"), strings.Repeat("x", 500_000)},
		{"pattern", pattern, strings.Repeat("ab", longSearch/2)},
	}
	for _, c := range cases {
		for _, looks := range []int{0, 1, 5} {
			ctx := &fading{context.Background(), looks}
			if ids, err := c.tokenizer.EncodeWithin(ctx, c.text, true, 1<<30); !errors.Is(err, context.Canceled) || ids != nil {
				t.Errorf("%s: got %d tokens, %v after %d looks, want context.Canceled", c.name, len(ids), err, looks)
			}
			if ctx.looks < -2 { // once more for the cause
				t.Errorf("%s: the context was looked at %d times more after its end, want 1", c.name, -1-ctx.looks)
			}
		}
	}
	cause := errors.New("the client left")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	if _, err := open(t, "qwen3").EncodePromptWithin(ctx, "a", nil, 10); !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause %v", err, cause)
	}
}

// lastDecomposed is behind the last code point that decomposes, composes or has another case.
const lastDecomposed = rune(0x30000)

// Every code point of a normal form stems from code points of the text; none of those is longer than assumed.
func TestUnicodeShrinksAsAssumed(t *testing.T) {
	for _, form := range []norm.Form{norm.NFC, norm.NFD, norm.NFKC, norm.NFKD} {
		decomposed := norm.NFD
		if form == norm.NFKC || form == norm.NFKD {
			decomposed = norm.NFKD
		}
		share := map[rune]float64{} // by code point without a decomposition: the most bytes of text that one stands for
		for r := range lastDecomposed {
			if !utf8.ValidRune(r) {
				continue
			}
			parts := []rune(decomposed.String(string(r)))
			for _, part := range parts {
				share[part] = max(share[part], float64(utf8.RuneLen(r))/float64(len(parts)))
			}
		}
		worst, at := 0.0, rune(0)
		for r := range lastDecomposed {
			if !utf8.ValidRune(r) || form.String(string(r)) != string(r) {
				continue // it is not in the result
			}
			total := 0.0
			for _, part := range decomposed.String(string(r)) {
				total += share[part]
			}
			if factor := total / float64(utf8.RuneLen(r)); factor > worst {
				worst, at = factor, r
			}
		}
		if got := shrinkOf(unicodeNormalizer(form)); worst > float64(got) {
			t.Errorf("form %d: up to %.2f bytes become one (%U), assumed are %d", form, worst, at, got)
		}
	}
	lower := lowercaseNormalizer{}
	for r := range lastDecomposed {
		if text, _ := lower.normalize(string(r), nil); utf8.RuneLen(r) > shrinkOf(lower)*len(text) {
			t.Errorf("%U becomes %q, which is more than %d times as short", r, text, shrinkOf(lower))
		}
	}
}

// A long search finds what a short one finds.
// A search that nobody waits for ends before its first word comes out, wherever the pattern stands.
func TestSearchesEnd(t *testing.T) {
	e, err := newExpression("(a)b?")
	if err != nil {
		t.Fatal(err)
	}
	split := splitStage{pattern: e, behavior: mergedWithNext}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, s := range []stage{split, alphabetStage{split}} {
		w := &watch{ctx: ctx}
		for range words([]stage{s}, strings.Repeat("ab", longSearch/2), true, w) {
			if w.err == nil {
				t.Errorf("%T: the whole text was searched", s)
			}
			break
		}
	}
}

func TestLongSearchesAreTheSame(t *testing.T) {
	text := source(t)[:20_000] + "中文 \U0001f642 é\u0301 \r\n  x"
	for _, pattern := range []string{llama3Text, gpt2Text, `(?<=a)b|\s+(?=\S)`, `(?i)(the)|x`, `(?=b)`, `a|(?=b)`, `x*`, `$|^|中`} {
		e, err := newExpression(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := e.oneByOne(text), e.matches(text); len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: %d matches one by one, %d at once", pattern, len(got), len(want))
		}
	}
}

func TestLastBoundaryOfLongTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	points := []rune{'a', ' ', '\u0301', '\u0308', 'é', '中', '\u1100', '\u1161', '\U0001f642'}
	for range 2000 {
		var text strings.Builder
		for range random.IntN(400) {
			text.WriteRune(points[random.IntN(len(points))])
		}
		text.WriteString(strings.Repeat("\u0301", random.IntN(200)*random.IntN(2)))
		for _, form := range []norm.Form{norm.NFC, norm.NFKD} {
			if got, want := lastBoundary(form, text.String()), form.LastBoundary([]byte(text.String())); got != want {
				t.Fatalf("lastBoundary(%q) = %d, want %d", text.String(), got, want)
			}
		}
	}
}
