package tokenizer

import (
	"errors"
	"fmt"
	"strings"
)

// toRegexp2 writes a pattern of HuggingFace's engine (Oniguruma) as regexp2 reads it: possessive quantifiers become
// atomic groups, and what a class leaves out with && is subtracted. Where the two would read a pattern differently, and
// nothing here makes them agree, it is refused.
func toRegexp2(pattern string) (string, error) {
	var out strings.Builder
	atom := -1 // where the last atom begins in out; -1: there is none
	var groups []int
	for i := 0; i < len(pattern); {
		start := out.Len()
		switch c := pattern[i]; {
		case c == '[':
			text, n, err := classText(pattern[i:])
			if err != nil {
				return "", err
			}
			out.WriteString(text)
			i += n
			atom = start
		case c == '\\':
			n := escape(pattern[i:])
			out.WriteString(pattern[i : i+n])
			i += n
			atom = start
		case c == '(':
			groups = append(groups, start)
			out.WriteByte(c)
			i++
			atom = -1
			if strings.HasPrefix(pattern[i:], "?") { // not a quantifier
				out.WriteByte('?')
				i++
			}
		case c == ')' && len(groups) > 0:
			atom = groups[len(groups)-1]
			groups = groups[:len(groups)-1]
			out.WriteByte(c)
			i++
		case strings.IndexByte("*+?", c) >= 0 && atom >= 0:
			out.WriteByte(c)
			i++
			if i < len(pattern) && pattern[i] == '+' {
				whole := out.String()
				out.Reset()
				out.WriteString(whole[:atom] + "(?>" + whole[atom:] + ")")
				i++
			} else if i < len(pattern) && pattern[i] == '?' {
				out.WriteByte('?')
				i++
			}
			atom = -1
		default:
			out.WriteByte(c)
			i++
			if atom = start; c == '|' {
				atom = -1
			}
		}
	}
	return out.String(), nil
}

// escape is the length of the escape that text begins with.
func escape(text string) int {
	if len(text) > 2 && strings.IndexByte("pPx", text[1]) >= 0 && text[2] == '{' {
		if end := strings.IndexByte(text, '}'); end > 0 {
			return end + 1
		}
	}
	return min(2, len(text))
}

// classText translates the class that text begins with, and gives its length. Classes in a class are written out.
func classText(text string) (string, int, error) {
	var out strings.Builder
	out.WriteByte('[')
	depth := 0
	for i := 1; i < len(text); {
		switch {
		case text[i] == '\\':
			n := escape(text[i:])
			out.WriteString(text[i : i+n])
			i += n
		case strings.HasPrefix(text[i:], "&&[^") && depth == 0:
			end := strings.IndexByte(text[i:], ']')
			if end < 0 || !strings.HasPrefix(text[i+end:], "]]") {
				return "", 0, fmt.Errorf("the class %.60q joins more than one && (write it with one)", text)
			}
			inner := text[i+4 : i+end]
			if strings.ContainsAny(inner, "[&") {
				return "", 0, fmt.Errorf("the class %.60q has a class in a class", text)
			}
			out.WriteString("-[" + inner + "]]")
			return out.String(), i + end + 2, nil
		case strings.HasPrefix(text[i:], "&&"):
			return "", 0, fmt.Errorf("the class %.60q has && without [^…] behind it", text)
		case strings.HasPrefix(text[i:], "[:"):
			return "", 0, fmt.Errorf("the class %.60q names a POSIX class (write it as \\p{…})", text)
		case strings.HasPrefix(text[i:], "[^"):
			return "", 0, fmt.Errorf("the class %.60q has [^…] in a class", text)
		case text[i] == '[':
			depth++
			i++
		case text[i] == ']' && depth > 0:
			depth--
			i++
		case text[i] == ']' && i > 1 && !(i == 2 && text[1] == '^'):
			out.WriteByte(']')
			return out.String(), i + 1, nil
		default:
			out.WriteByte(text[i])
			i++
		}
	}
	return "", 0, errors.New("a class has no end")
}
