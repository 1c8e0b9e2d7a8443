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
func knownDigits(pattern string) (matcher, string) {
	switch pattern {
	case cutsFromEndText:
		return digitGroups{cuts: true}, "digit cuts from the end"
	case groupsFromEndText:
		return digitGroups{}, "digit groups from the end"
	}
	return nil, ""
}

// digitGroups matches groups of three digits, counted from the end of a number; its first group may be shorter.
type digitGroups struct {
	cuts bool // empty matches before whole groups; otherwise the groups of numbers that end a word
}

func (d digitGroups) matches(text string) []span {
	var found []span
	for i := 0; i < len(text); {
		bounds := []int{i} // of the digits of a number
		r, n := utf8.DecodeRuneInString(text[i:])
		if !isDigit(r) {
			i += n
			continue
		}
		for ; isDigit(r); r, n = utf8.DecodeRuneInString(text[i:]) {
			i += n
			bounds = append(bounds, i)
		}
		if d.cuts || !isWord(r) && !(r <= unicode.MaxLatin1 && unicode.Is(unicode.No, r)) {
			found = d.number(found, bounds)
		}
	}
	return found
}

// number appends the matches in a number whose digits lie between bounds.
func (d digitGroups) number(found []span, bounds []int) []span {
	digits := len(bounds) - 1
	first := digits % 3
	if first > 0 && !d.cuts {
		found = append(found, span{bounds[0], bounds[first]})
	}
	for at := first; at < digits; at += 3 {
		end := bounds[at+3]
		if d.cuts {
			end = bounds[at]
		}
		found = append(found, span{bounds[at], end})
	}
	return found
}

// isDigit is the \d of Unicode regular expressions.
func isDigit(r rune) bool { return unicode.Is(unicode.Nd, r) }
