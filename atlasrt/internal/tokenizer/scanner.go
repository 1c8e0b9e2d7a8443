package tokenizer

import "strings"

// scanner is the length of what a split pattern matches at the start of text, which is not empty; 0 where it matches
// nothing there. It is what a regular expression engine would say, written out by hand.
type scanner func(text string) int

// gpt2Scanner is GPT-2's pattern.
func gpt2Scanner(t *classTable) scanner {
	return func(text string) int {
		if n := contraction(text, false); n > 0 {
			return n
		}
		start := 0
		if text[0] == ' ' {
			start = 1
		}
		c, n := t.at(text, start)
		for _, set := range [...]class{letter, number, mark | punctuation | symbol | other} {
			if c&set != 0 {
				return t.run(text, start+n, set)
			}
		}
		return whitespace(t, text)
	}
}

// cl100kScanner is the pattern of Llama 3 and Qwen: letters says what a word is made of, digits how many stay together.
func cl100kScanner(t *classTable, letters class, digits int) scanner {
	marks := letters & mark
	return func(text string) int {
		if n := contraction(text, true); n > 0 {
			return n
		}
		c, n := t.at(text, 0)
		switch {
		case c&letters != 0:
			return t.run(text, n, letters)
		case c&number != 0:
			return t.runAtMost(text, n, number, digits-1)
		case c != newline:
			if end := t.run(text, n, letters); end > n {
				return end
			}
		}
		if end := symbols(t, text, mark&^marks|punctuation|symbol|other); end > 0 {
			return t.run(text, end, newline)
		}
		return newlinesOrWhitespace(t, text)
	}
}

// casedScanner is the pattern of o200k (contractions end a word) and Tekken (they do not): a word is upper case, then
// lower case, and letters without case count as both.
func casedScanner(t *classTable, contractions bool, digits int) scanner {
	const (
		both = letterOther | mark
		head = upper | both
		tail = lower | both
	)
	// headThenTail is where `head*tail+` from i ends, or i. The tail takes back what the head took too much.
	headThenTail := func(text string, i int) int {
		end := i
		for {
			c, n := t.at(text, i)
			if c == lower {
				return t.run(text, i+n, tail)
			}
			if c&head == 0 {
				return end
			}
			i += n
			if c&both != 0 {
				end = i
			}
		}
	}
	word := func(text string) int {
		first, skip := t.at(text, 0)
		switch {
		case first&(number|newline) != 0:
			return 0
		case first&letter != 0:
			skip = 0
		default:
			if c, _ := t.at(text, skip); c&(letter|mark) == 0 && first != mark {
				return 0
			}
		}
		if end := headThenTail(text, skip); end > skip {
			return end
		}
		if first == mark { // the mark, tried as what precedes the word, can also begin it
			if end := headThenTail(text, 0); end > 0 {
				return end
			}
		}
		if end := t.run(text, skip, head); end > skip {
			return end
		}
		return 0
	}
	return func(text string) int {
		if end := word(text); end > 0 {
			if contractions && end < len(text) {
				end += contraction(text[end:], true)
			}
			return end
		}
		if c, n := t.at(text, 0); c == number {
			return t.runAtMost(text, n, number, digits-1)
		}
		if end := symbols(t, text, mark|punctuation|symbol|other); end > 0 {
			for end < len(text) && strings.IndexByte("\r\n/", text[end]) >= 0 {
				end++
			}
			return end
		}
		return newlinesOrWhitespace(t, text)
	}
}

// deepseekScanner is the last of DeepSeek-V3's three patterns. It matches no number.
func deepseekScanner(t *classTable) scanner {
	const letters = letter | mark
	return func(text string) int {
		c, n := t.at(text, 0)
		if text[0] < 0x80 && c&(punctuation|symbol) != 0 {
			end := 1
			for end < len(text) && isASCIILetter(text[end]) {
				end++
			}
			if end > 1 {
				return end
			}
		}
		switch {
		case c&letters != 0:
			return t.run(text, n, letters)
		case c&(newline|punctuation|symbol) == 0:
			if end := t.run(text, n, letters); end > n {
				return end
			}
		}
		if end := symbols(t, text, punctuation|symbol); end > 0 {
			return t.run(text, end, newline)
		}
		if c&space == 0 {
			return 0
		}
		return newlinesOrWhitespace(t, text)
	}
}

// digitScanner matches up to limit numbers.
func digitScanner(t *classTable, limit int) scanner {
	return func(text string) int { return t.runAtMost(text, 0, number, limit) }
}

// hanKanaScanner is the second of DeepSeek-V3's patterns: [一-龥぀-ゟ゠-ヿ]+.
func hanKanaScanner(text string) int {
	for i, r := range text {
		if (r < 0x4E00 || r > 0x9FA5) && (r < 0x3040 || r > 0x30FF) {
			return i
		}
	}
	return len(text)
}

// symbols is where ` ?[set]+` ends, or 0.
func symbols(t *classTable, text string, set class) int {
	start := 0
	if text[0] == ' ' {
		start = 1
	}
	if end := t.run(text, start, set); end > start {
		return end
	}
	return 0
}

// newlinesOrWhitespace is `\s*[\r\n]+|\s+(?!\S)|\s+`.
func newlinesOrWhitespace(t *classTable, text string) int {
	end := t.run(text, 0, space)
	if last := strings.LastIndexAny(text[:end], "\r\n"); last >= 0 {
		return last + 1
	}
	return whitespace(t, text)
}

// whitespace is `\s+(?!\S)|\s+`: before a word, the run leaves it the last blank.
func whitespace(t *classTable, text string) int {
	end, last := 0, 0
	for {
		c, n := t.at(text, end)
		if c&space == 0 {
			if c == endText || last == 0 {
				return end
			}
			return last
		}
		last = end
		end += n
	}
}

// contraction is the length of 's, 't, 're, 've, 'm, 'll or 'd at the start of text, or 0. Where case does not matter
// U+017F is an s too.
func contraction(text string, anyCase bool) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	fold := func(b byte) byte {
		if anyCase && b >= 'A' && b <= 'Z' {
			return b + 'a' - 'A'
		}
		return b
	}
	switch fold(text[1]) {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(text) > 2 && fold(text[2]) == 'e' {
			return 3
		}
	case 'l':
		if len(text) > 2 && fold(text[2]) == 'l' {
			return 3
		}
	case "ſ"[0]:
		if anyCase && strings.HasPrefix(text[1:], "ſ") {
			return 1 + len("ſ")
		}
	}
	return 0
}

func isASCIILetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }
