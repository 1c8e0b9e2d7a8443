package tokenizer

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// The patterns that have a hand-written scanner, as published files spell them.
const (
	contractionsText = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	whitespaceText   = `|\s*[\r\n]+|\s+(?!\S)|\s+`
	headThenTailText = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
	headOrTailText   = `|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`

	gpt2Text     = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	gpt2FoldText = `'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	llama3Text   = contractionsText + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + whitespaceText
	qwen2Text    = contractionsText + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*` + whitespaceText
	qwen35Text   = contractionsText + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` + whitespaceText
	o200kText    = headThenTailText + contractionsText + `?` + headOrTailText + contractionsText + `?` + `|\p{N}{1,3}` + casedEndText
	tekkenText   = headThenTailText + headOrTailText + `|\p{N}` + casedEndText
	casedEndText = `| ?[^\s\p{L}\p{N}]+[\r\n/]*` + whitespaceText

	oneDigitText    = `\p{N}`
	threeDigitsText = `\p{N}{1,3}`
	hanKanaText     = `[一-龥぀-ゟ゠-ヿ]+`
	deepseekText    = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+" + `|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*` + whitespaceText
)

// lineBreaks makes the two spellings of CR and LF in a pattern, escaped or raw, the same.
var lineBreaks = strings.NewReplacer("\r", `\r`, "\n", `\n`)

// knownScanner is the hand-written form of a pattern and its short name; nil where there is none.
func knownScanner(pattern string, t *classTable) (scanner, string) {
	switch lineBreaks.Replace(pattern) {
	case gpt2Text, gpt2FoldText:
		return gpt2Scanner(t), "gpt-2"
	case llama3Text:
		return cl100kScanner(t, letter, 3), "llama-3"
	case qwen2Text:
		return cl100kScanner(t, letter, 1), "qwen2"
	case qwen35Text:
		return cl100kScanner(t, letter|mark, 1), "qwen35"
	case o200kText:
		return casedScanner(t, true, 3), "o200k"
	case tekkenText:
		return casedScanner(t, false, 1), "tekken"
	case oneDigitText:
		return digitScanner(t, 1), "digit"
	case threeDigitsText:
		return digitScanner(t, 3), "digits"
	case hanKanaText:
		return hanKanaScanner, "han-kana"
	case deepseekText:
		return deepseekScanner(t), "deepseek-v3"
	}
	return nil, ""
}

// span is the half-open byte range of one match.
type span struct{ start, end int }

// matcher finds what a split pattern matches: disjoint, in order. A match may be empty: a place to cut.
type matcher interface {
	matches(text string) []span
}

func (scan scanner) matches(text string) []span {
	var found []span
	for i := 0; i < len(text); {
		n := scan(text[i:])
		if n > 0 {
			found = append(found, span{i, i + n})
			i += n
			continue
		}
		_, n = utf8.DecodeRuneInString(text[i:])
		i += n
	}
	return found
}

// literal matches its own text.
type literal string

func (l literal) matches(text string) []span {
	var found []span
	for i := 0; ; {
		at := strings.Index(text[i:], string(l))
		if at < 0 {
			return found
		}
		found = append(found, span{i + at, i + at + len(l)})
		i += at + len(l)
	}
}

// Bounds on a pattern from a file, whose matching may take exponential time.
const (
	maxPatternBytes = 16 << 10
	matchTimeout    = time.Second
	backtrackSlots  = 1 << 20
)

// Intractable says that the search for a pattern of the tokenizer takes too long on a text.
type Intractable struct {
	Pattern string // as it is searched for
	Bytes   int    // of text
}

// Error names the pattern and says what to change.
func (e *Intractable) Error() string {
	return fmt.Sprintf("the tokenizer's pattern %.100q takes too long on a text of %d bytes (shorten or change it)", e.Pattern, e.Bytes)
}

// expression is a pattern nobody wrote a scanner for. Text on which it exceeds its bounds ends the watched work; without a watch
// it counts as not matched.
type expression struct {
	re    *regexp2.Regexp
	watch *watch // may end a search
}

func newExpression(pattern string) (expression, error) {
	if len(pattern) > maxPatternBytes {
		return expression{}, fmt.Errorf("pattern of %d bytes: at most %d are allowed", len(pattern), maxPatternBytes)
	}
	dialect, err := toRegexp2(pattern)
	if err != nil {
		return expression{}, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	re, err := regexp2.Compile(dialect, regexp2.OptionMaxBacktrackingStackSize(backtrackSlots))
	if err != nil {
		return expression{}, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	re.MatchTimeout = matchTimeout
	return expression{re: re}, nil
}

// longSearch is the length of a text from which a search can be ended: one match at a time takes four times as long.
const longSearch = 1 << 20

func (e expression) matches(text string) []span {
	if !utf8.ValidString(text) { // the engine's offsets would count U+FFFD for each bad byte
		return nil
	}
	if len(text) >= longSearch {
		return e.oneByOne(text)
	}
	indices, err := e.re.FindAllStringIndex(text, -1)
	if err != nil {
		return e.exceeds(text)
	}
	found := make([]span, 0, len(indices))
	for _, at := range indices {
		found = append(found, span{at[0], at[1]})
	}
	return found
}

// oneByOne finds the same until the watch ends it.
func (e expression) oneByOne(text string) []span {
	runes := []rune(text)
	var found []span
	at, start := 0, 0 // a rune, and the byte where it begins
	match, err := e.re.FindRunesMatch(runes)
	for ; err == nil && match != nil; match, err = e.re.FindNextMatch(match) {
		for ; at < match.RuneIndex; at++ {
			start += utf8.RuneLen(runes[at])
		}
		end := start
		for _, r := range runes[at : at+match.RuneLength] {
			end += utf8.RuneLen(r)
		}
		if n := len(found); end > start || n == 0 || found[n-1].end < start { // an empty match right behind another is none
			found = append(found, span{start, end})
		}
		if e.watch.ended(end - start + 1) {
			break
		}
	}
	if err != nil {
		return e.exceeds(text)
	}
	return found
}

// exceeds is what is found in a text on which a bound is exceeded: nothing.
func (e expression) exceeds(text string) []span {
	e.watch.fail(&Intractable{Pattern: e.re.String(), Bytes: len(text)})
	return nil
}
