package tokenizer

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// stage is one step of pre-tokenization: it cuts text into pieces, none empty, which it appends to pieces.
// first says that text begins the input.
type stage interface {
	split(pieces []string, text string, first bool) []string
}

// words are the pieces of text after all stages, each of which cuts the pieces of the one before. They are cut as they
// are asked for where the stages have scanners, and w may end the search of those that have none.
func words(stages []stage, text string, first bool, w *watch) iter.Seq[string] {
	return func(yield func(string) bool) {
		if text != "" {
			cut(stages, text, first, w, yield)
		}
	}
}

// cut yields the words of text until yield returns false.
func cut(stages []stage, text string, first bool, w *watch, yield func(string) bool) bool {
	if len(stages) == 0 {
		return yield(text)
	}
	stage, rest := stages[0], stages[1:]
	each := func(piece string) bool {
		begins := first
		first = false
		return cut(rest, piece, begins, w, yield)
	}
	if scan, ok := isolating(stage); ok {
		if len(rest) == 0 {
			each = yield
		}
		return isolate(text, scan, each)
	}
	for _, piece := range watchedStage(stage, w).split(nil, text, first) {
		if !each(piece) {
			return false
		}
	}
	return true
}

// behavior says where the matches of a Split go.
type behavior string

const (
	removed            behavior = "Removed"
	isolated           behavior = "Isolated"
	mergedWithPrevious behavior = "MergedWithPrevious"
	mergedWithNext     behavior = "MergedWithNext"
	contiguous         behavior = "Contiguous"
)

func parseBehavior(name string) (behavior, error) {
	switch b := behavior(name); b {
	case removed, isolated, mergedWithPrevious, mergedWithNext, contiguous:
		return b, nil
	}
	return "", fmt.Errorf("unknown behavior %q", name)
}

// splitStage cuts at the matches of a pattern.
type splitStage struct {
	pattern  matcher
	behavior behavior
	invert   bool
}

func (s splitStage) split(pieces []string, text string, _ bool) []string {
	if scan, ok := isolating(s); ok {
		isolate(text, scan, func(piece string) bool {
			pieces = append(pieces, piece)
			return true
		})
		return pieces
	}
	parts := s.parts(text)
	switch s.behavior {
	case removed:
		parts = slices.DeleteFunc(parts, func(p part) bool { return p.match })
	case mergedWithPrevious:
		parts = mergeParts(parts, func(left, right part) bool { return right.match && !left.match })
	case mergedWithNext:
		parts = mergeParts(parts, func(left, right part) bool { return left.match && !right.match })
	case contiguous:
		parts = mergeParts(parts, func(left, right part) bool { return right.match == left.match })
	}
	for _, part := range parts {
		if part.start < part.end { // patterns may match where there is no text
			pieces = append(pieces, text[part.start:part.end])
		}
	}
	return pieces
}

// isolating is the scanner of a stage that isolates what it matches.
func isolating(s stage) (scanner, bool) {
	split, ok := s.(splitStage)
	if !ok || split.behavior != isolated {
		return nil, false
	}
	scan, ok := split.pattern.(scanner)
	return scan, ok
}

// isolate yields the matches of scan and what lies between them, until yield returns false.
func isolate(text string, scan scanner, yield func(string) bool) bool {
	start := 0
	for i := 0; i < len(text); {
		n := scan(text[i:])
		if n == 0 {
			_, n = utf8.DecodeRuneInString(text[i:])
			i += n
			continue
		}
		if start < i && !yield(text[start:i]) {
			return false
		}
		if !yield(text[i : i+n]) {
			return false
		}
		i += n
		start = i
	}
	return start == len(text) || yield(text[start:])
}

// part is a stretch of text that is a match or lies between two.
type part struct {
	span
	match bool
}

// parts covers text with matches and what lies between them; invert swaps the two.
func (s splitStage) parts(text string) []part {
	var parts []part
	end := 0
	for _, m := range s.pattern.matches(text) {
		if end < m.start {
			parts = append(parts, part{span{end, m.start}, s.invert})
		}
		parts = append(parts, part{m, !s.invert})
		end = m.end
	}
	if end < len(text) {
		parts = append(parts, part{span{end, len(text)}, s.invert})
	}
	return parts
}

// mergeParts joins neighbours where join says so; left is the neighbour as it was before any merge.
func mergeParts(parts []part, join func(left, right part) bool) []part {
	var merged []part
	for i, p := range parts {
		if i > 0 && join(parts[i-1], p) {
			merged[len(merged)-1].end = p.end
			continue
		}
		merged = append(merged, p)
	}
	return merged
}

// prefixStage is the add_prefix_space of ByteLevel.
type prefixStage struct{}

func (prefixStage) split(pieces []string, text string, _ bool) []string {
	if !strings.HasPrefix(text, " ") {
		text = " " + text
	}
	return append(pieces, text)
}

// alphabetStage is a stage that sees the text in the alphabet of byte-level models, and only cuts it.
type alphabetStage struct{ inner stage }

func (a alphabetStage) split(pieces []string, text string, first bool) []string {
	for _, piece := range a.inner.split(nil, toAlphabet(text), first) {
		raw, ok := fromAlphabet(piece)
		if !ok {
			panic("BUG: a stage made text that is not of the alphabet")
		}
		pieces = append(pieces, raw)
	}
	return pieces
}

// metaspaceStage writes blanks as replacement and cuts before each.
type metaspaceStage struct {
	replacement string
	prepend     string // "always", "first" or "never"
	cut         bool
}

func (m metaspaceStage) split(pieces []string, text string, first bool) []string {
	text = strings.ReplaceAll(text, " ", m.replacement)
	if (m.prepend == "always" || m.prepend == "first" && first) && !strings.HasPrefix(text, m.replacement) {
		text = m.replacement + text
	}
	if !m.cut {
		return append(pieces, text)
	}
	return splitStage{pattern: literal(m.replacement), behavior: mergedWithNext}.split(pieces, text, first)
}

// isPunctuation is what Punctuation splits at: ASCII punctuation and symbols, and Unicode's P.
func isPunctuation(r rune) bool {
	return r < utf8.RuneSelf && (unicode.IsPunct(r) || unicode.IsSymbol(r)) || unicode.IsPunct(r)
}

// isWord is the \w of Unicode regular expressions.
func isWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}

// oneOf matches one code point for which is holds.
func oneOf(is func(rune) bool) scanner {
	return func(text string) int {
		if r, n := utf8.DecodeRuneInString(text); is(r) {
			return n
		}
		return 0
	}
}

// runOf matches a run of code points for which is holds.
func runOf(is func(rune) bool) scanner {
	return func(text string) int {
		for i, r := range text {
			if !is(r) {
				return i
			}
		}
		return len(text)
	}
}

// wordsAndSymbols is the `\w+|[^\w\s]+` of Whitespace.
func wordsAndSymbols(text string) int {
	if n := runOf(isWord)(text); n > 0 {
		return n
	}
	return runOf(func(r rune) bool { return !isWord(r) && !unicode.IsSpace(r) })(text)
}
