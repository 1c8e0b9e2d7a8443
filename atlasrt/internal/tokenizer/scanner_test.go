package tokenizer

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// known are the patterns that have a hand-written scanner.
var known = []string{
	gpt2Text, gpt2FoldText, llama3Text, qwen2Text, qwen35Text, o200kText, tekkenText,
	oneDigitText, threeDigitsText, hanKanaText, deepseekText,
}

// probes has a character of every class, and those that patterns name.
var probes = []rune("aéAÉǅʰ中か\u0301\u0903１2Ⅷ \t\u00a0\n\r\u2028-/'’$+\x01\u200b\ufffd\U0001f642\U00010400sſtSTvVreREmlLdD_")

func isolatedPieces(m matcher, text string) []string {
	return splitStage{pattern: m, behavior: isolated}.split(nil, text, true)
}

func TestScannersAgreeWithTheirPatterns(t *testing.T) {
	table := newClassTable()
	random := rand.New(rand.NewPCG(1, 2))
	var texts []string
	few := probes[:27]
	for _, a := range few {
		for _, b := range few {
			for _, c := range few {
				texts = append(texts, string([]rune{a, b, c}))
			}
		}
	}
	for range 20_000 {
		var text strings.Builder
		for range 1 + random.IntN(16) {
			text.WriteRune(probes[random.IntN(len(probes))])
		}
		texts = append(texts, text.String())
	}
	for range 5_000 {
		var text strings.Builder
		for range 1 + random.IntN(16) {
			if r := rune(random.IntN(0x30000)); r < 0xD800 || r > 0xDFFF {
				text.WriteRune(r)
			}
		}
		texts = append(texts, text.String())
	}
	for _, pattern := range known {
		scan, name := knownScanner(pattern, table)
		engine, err := newExpression(pattern)
		if err != nil {
			t.Fatal(err)
		}
		wrong := 0
		for _, text := range texts {
			got, want := isolatedPieces(scan, text), isolatedPieces(engine, text)
			if !slices.Equal(got, want) {
				if wrong++; wrong <= 5 {
					t.Errorf("%s: %+q\n got %+q\nwant %+q", name, text, got, want)
				}
			}
		}
	}
}

func TestScannersCoverBytesThatAreNotUTF8(t *testing.T) {
	table := newClassTable()
	for _, pattern := range known {
		scan, name := knownScanner(pattern, table)
		for _, text := range []string{"\xff", "a\x80b", " \xe2\x82", "\xf0\x9f\x98 1\xc3", "'\xc5"} {
			if got := strings.Join(isolatedPieces(scan, text), ""); got != text {
				t.Errorf("%s: pieces of %q join to %q", name, text, got)
			}
		}
	}
}

func TestPatternsAreKnownWithRawLineBreaks(t *testing.T) {
	raw := strings.NewReplacer(`\r`, "\r", `\n`, "\n")
	if _, name := knownScanner(raw.Replace(qwen2Text), newClassTable()); name != "qwen2" {
		t.Errorf("got %q, want qwen2", name)
	}
	if scan, name := knownScanner(qwen2Text+"|x", newClassTable()); scan != nil {
		t.Errorf("an unknown pattern is taken for %q", name)
	}
}

// source is this package's own code: English and Go.
func source(t testing.TB) string {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(data)
	}
	return text.String()
}

func BenchmarkScan(b *testing.B) {
	text := source(b)
	for _, pattern := range known[2:7] {
		scan, name := knownScanner(pattern, newClassTable())
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				for i := 0; i < len(text); {
					i += scan(text[i:])
				}
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	text := source(b)
	for _, c := range published {
		b.Run(c.name, func(b *testing.B) {
			tokenizer := open(b, c.name)
			b.SetBytes(int64(len(text)))
			b.ResetTimer()
			for b.Loop() {
				tokenizer.Encode(text, true)
			}
		})
	}
}
