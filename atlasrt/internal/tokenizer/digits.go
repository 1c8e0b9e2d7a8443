package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// The patterns that cut a number into groups of three digits from its end. Matching them with a regular expression
// takes quadratic time.
const (
	cutsFromEndText   = `(?=(\d{3})+(?!\d))`
	groupsFromEndText = `\d{1,3}(?=(?:\d{3})*\b)`
)

// knownDigits is the hand-written form of such a pattern and its short name; nil where it is another.
func knownDigits(pattern string, t *classTable) (matcher, string) {
	switch pattern {
	case cutsFromEndText:
		return digitGroups{t, true}, "digit cuts from the end"
	case groupsFromEndText:
		return digitGroups{t, false}, "digit groups from the end"
	}
	return nil, ""
}

// digitGroups matches groups of three digits, counted from the end of a number; its first group may be shorter.
type digitGroups struct {
	classes *classTable
	cuts    bool // empty matches before whole groups; otherwise the groups of numbers that end a word
}

func (d digitGroups) matches(text string) []span {
	var found []span
	for i := 0; i < len(text); {
		_, n := d.classes.at(text, i)
		var ends []int // of the digits of a number
		end := i
		for end < len(text) {
			r, size := utf8.DecodeRuneInString(text[end:])
			if !isDigit(r) {
				break
			}
			end += size
			ends = append(ends, end)
		}
		if len(ends) == 0 {
			i += n
			continue
		}
		found = d.number(found, text, i, ends)
		i = end
	}
	return found
}

// number appends the matches in the number that begins at start.
func (d digitGroups) number(found []span, text string, start int, ends []int) []span {
	end := ends[len(ends)-1]
	if r, n := utf8.DecodeRuneInString(text[end:]); !d.cuts && n > 0 && (isWord(r) || r <= unicode.MaxLatin1 && unicode.Is(unicode.No, r)) {
		return found
	}
	first := len(ends) % 3
	if first > 0 {
		if !d.cuts {
			found = append(found, span{start, ends[first-1]})
		}
		start = ends[first-1]
	}
	for at := first; at < len(ends); at += 3 {
		if d.cuts {
			found = append(found, span{start, start})
		} else {
			found = append(found, span{start, ends[at+2]})
		}
		start = ends[at+2]
	}
	return found
}

// isDigit is the \d of Unicode regular expressions.
func isDigit(r rune) bool { return unicode.Is(unicode.Nd, r) }
